"""Damaged, emptied, swapped or reordered files in all stages are named or harmless. No result changes silently."""

import collections

import pytest
from damage import DAMAGES, Laboratory
from studies import snakemake


@pytest.fixture
def dry_run(finished):
    done = snakemake(finished.folder, "--forceall", "--dry-run", "--printshellcmds", config=finished.config())
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("n_trials", [12, pytest.param(600, marks=pytest.mark.slow)])
def test_no_damage_changes_a_result_silently(finished, dry_run, n_trials, tmp_path, capsys):
    laboratory = Laboratory(finished.folder, tmp_path / "study", dry_run=dry_run, capsys=capsys, seed=n_trials)
    assert len(laboratory.rules) > 20
    trials = laboratory.run(n_trials)
    bad = [trial for trial in trials if trial.outcome not in ("named", "harmless")]
    assert not bad
    outcomes = collections.Counter((trial.damage, trial.outcome) for trial in trials)
    assert all(outcomes[damage, "named"] > n_trials / len(DAMAGES) / 3 for damage in DAMAGES), outcomes
    if n_trials > 500:
        # A rule that reads few of its files, such as `instances_count`, can be missed by chance.
        for rule in set(laboratory.rules) - {trial.job.rule for trial in trials if trial.outcome == "named"}:
            assert "named" in {trial.outcome for trial in laboratory.run(100, [rule])}, rule


@pytest.mark.slow
def test_the_trial_sees_silent_damage(finished, dry_run, tmp_path, capsys):
    """Without recorded checksums, some damage is silent, so this test would fail if checksums were not compared."""
    laboratory = Laboratory(finished.folder, tmp_path / "study", dry_run=dry_run, capsys=capsys, seed=1)
    for record in laboratory.folder.rglob(".checksums/*"):
        record.unlink()
    laboratory.jobs = [job for job in laboratory.jobs if job.rule == "evaluate_run"]
    laboratory.rules = ["evaluate_run"]
    outcomes = collections.Counter(trial.outcome for trial in laboratory.run(60))
    assert outcomes["silent"] > 2, outcomes
