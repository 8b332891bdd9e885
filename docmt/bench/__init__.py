"""Acceptance of a GPU: one command that shows whether it computes what a CPU does, and how fast."""
