"""Fixtures of the tests that start a Slurm."""

from slurm_fixtures import cluster, expected, expected_of_two, prepared, study

__all__ = ["cluster", "expected", "expected_of_two", "prepared", "study"]
