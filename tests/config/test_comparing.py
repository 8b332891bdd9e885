"""`docmt diff`: what two configurations differ in, and what runs again."""

import json

import pytest
from smoke_study import SMOKE, smoke_config, smoke_study, smoke_values

from docmt.cli.main import main
from docmt.config.comparing import MISSING, Change, changed_values, compare_configs

VALUES = smoke_values()


def compare(changes):
    return compare_configs(smoke_config(), smoke_config(changes))


def rules(artifacts):
    return {artifact.rules[0] for artifact in artifacts}


def test_changed_new_and_gone_keys():
    changes = list(changed_values({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 5, "c": 2}, "e": {"f": 1}}))
    assert changes == [Change(("a", "b"), 1, 5), Change(("e",), MISSING, {"f": 1}), Change(("d",), 3, MISSING)]
    assert [str(change) for change in changes] == ["a.b: 1 → 5", "e: new", "d: gone"]
    values = {"a": {"b": 1, "c": 2}, "d": 3}
    for change in changes:
        values = change.apply(values)
    assert values == {"a": {"b": 5, "c": 2}, "e": {"f": 1}}


def test_each_key_names_its_own_jobs():
    comparison = compare({"decoding": {"beam_size": 7}, "text": {"bpe_merges": 120}})
    found = {".".join(change.key): rules(jobs) for change, jobs in comparison.changes}
    assert set(found) == {"decoding.beam_size", "text.bpe_merges"}
    assert "translate" in found["decoding.beam_size"]
    assert not {"train", "contrast"} & found["decoding.beam_size"]
    assert {"learn_bpe", "train", "contrast"} <= found["text.bpe_merges"]
    assert "generate_corpus" not in found["text.bpe_merges"]
    assert rules(comparison.again) == set.union(*found.values())
    assert comparison.added == []


def test_a_new_system_is_new_and_an_old_one_stays():
    changes = {"systems": {"second": VALUES["systems"]["rst_mix"]}}
    comparison = compare(changes)
    assert {"train", "translate"} <= rules(comparison.added)
    assert "train" not in rules(comparison.again)
    (back,) = compare_configs(smoke_config(changes), smoke_config()).changes
    assert str(back[0]) == "systems.second: gone"


def test_loggers_run_nothing_again_and_are_in_no_fingerprint():
    comparison = compare({"training": {"scratch": {"loggers": ["csv"]}}})
    assert [(str(change), jobs) for change, jobs in comparison.changes] == [
        ("training.scratch.loggers: [] → ['csv']", [])
    ]
    assert comparison.again == comparison.added == []


def test_jobs_are_counted_once():
    study = smoke_study()
    comparison = compare({"training": {"scratch": {"learning_rate": 0.5}}})
    trained = [artifact for artifact in comparison.again if artifact.rules == ("train",)]
    assert len(trained) == len(study.trained)
    assert comparison.n_jobs == 84
    other = compare({"discourse": {"trees": {"parsed": {"n_shards": 3}}}})
    assert other.n_jobs == 86, "each third of the training text is a job"
    assert {"build_instances", "train", "translate"} <= rules(other.again), "of inputs with other names"


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, ["the two configurations mean the same: nothing runs again"]),
        ({"report": {"title": "Other"}}, ["report.title: Smoke test → Other"]),
    ],
)
def test_the_command(changes, lines, tmp_path, capsys):
    new = tmp_path / "new.json"
    new.write_text(json.dumps(smoke_values(changes)))
    assert main(["diff", str(SMOKE), str(new)]) == 0
    text = capsys.readouterr().out
    assert all(line in text for line in lines)
    assert main(["diff", str(SMOKE), str(tmp_path / "missing.yaml")]) == 2


def test_a_default_that_was_never_written_can_go():
    assert Change(("a", "b"), 1, MISSING).apply({"a": {}}) == {"a": {}}
    assert Change(("a", "b"), 1, MISSING).apply({"a": {"b": 1, "c": 2}}) == {"a": {"c": 2}}
