"""Acceptance of a GPU: one command that compares its results with a CPU and measures its speed."""
