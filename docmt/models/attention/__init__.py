"""Attention as data: which keys each query sees, for every system, and one primitive that computes it."""
