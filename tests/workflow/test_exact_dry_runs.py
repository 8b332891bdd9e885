"""Snakemake plans exactly the jobs whose fingerprints changed: dry runs of a finished study."""

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


def outputs(jobs):
    """The artifacts that the default target needs, by file."""
    needed = ancestors(final_outputs(jobs.plan.study))
    return {file: artifact for artifact in needed if artifact.rules for file in artifact.files}


@pytest.mark.slow
def test_dry_runs_plan_what_changed(finished):
    values = smoke_values()
    before = outputs(Jobs(values))
    for change in changes(values):
        after = outputs(Jobs(merge(values, change)))
        changed = {
            file
            for file, artifact in after.items()
            if file not in before or before[file].fingerprint != artifact.fingerprint
        }
        done = snakemake(finished.folder, "--dry-run", config=finished.config(change))
        assert done.returncode == 0, done.stderr
        planned = {file for job in read_jobs(done.stdout + done.stderr) for file in job.outputs} & {*after}
        assert {file for file in changed if after[file].is_kept} <= planned, change
        assert not {file for file in planned - changed if after[file].is_kept}, change
