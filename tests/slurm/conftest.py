"""Fixtures of the tests that start a Slurm."""

from slurm_fixtures import cluster, expected, prepared, study

__all__ = ["cluster", "expected", "prepared", "study"]
