"""Fixtures for tests that start Slurm."""

from slurm_fixtures import alone, cluster, expected, expected_of_two, prepared, running_cluster, study

__all__ = ["alone", "cluster", "expected", "expected_of_two", "prepared", "running_cluster", "study"]
