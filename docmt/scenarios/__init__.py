"""Comparisons between a device and the CPU: rows for `docmt bench gpu`, and GPU tests."""
