"""Comparisons of a device with the CPU: rows of `docmt bench gpu`, and tests for GPUs."""
