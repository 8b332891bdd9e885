"""Snakemake plans exactly the jobs with changed fingerprints, in dry runs of a finished study."""

import pytest
from rerun_oracle import Jobs, keys, nested, other_values
from smoke_study import smoke_values
from studies import snakemake

from docmt.config.artifacts.base import ancestors
from docmt.config.artifacts.study import final_outputs
from docmt.config.loading import merge
from docmt.errors import UserError
from docmt.snakemake import read_jobs

N_CHANGES = 40


def changes(values):
    """Changes of single keys, evenly drawn from all keys."""
    every = []
    for path, annotation, value in keys(Jobs(values).config):
        for new in other_values(annotation, value):
            try:
                Jobs(merge(values, nested(path, new)))
            except (UserError, OSError):
                continue
            every.append(nested(path, new))
            break
    return [every[i * len(every) // N_CHANGES] for i in range(N_CHANGES)]


def outputs(artifacts):
    """Artifacts that rules make, by file."""
    return {file: artifact for artifact in artifacts if artifact.rules for file in artifact.files}


def changed_artifacts(before, final):
    """Artifacts with a changed fingerprint. New inputs of an unchanged artifact, for example shards, are not needed."""
    waiting, changed = list(final), {}
    while waiting:
        artifact = waiting.pop()
        fingerprints = {before[file].fingerprint if file in before else None for file in artifact.files}
        if tuple(artifact.files) not in changed and fingerprints != {artifact.fingerprint}:
            changed[tuple(artifact.files)] = artifact
            waiting += artifact.sources()
    return changed.values()


@pytest.mark.slow
def test_dry_runs_plan_what_changed(finished):
    values = smoke_values()
    before = outputs(ancestors(final_outputs(Jobs(values).plan.study)))
    for change in changes(values):
        final = final_outputs(Jobs(merge(values, change)).plan.study)
        lasting_files = {file for file, artifact in outputs(ancestors(final)).items() if artifact.is_kept}
        changed = {*outputs(changed_artifacts(before, final))} & lasting_files
        done = snakemake(finished.folder, "--dry-run", config=finished.config(change))
        assert done.returncode == 0, done.stderr
        planned = {file for job in read_jobs(done.stdout + done.stderr) for file in job.outputs} & lasting_files
        assert planned == changed, change
