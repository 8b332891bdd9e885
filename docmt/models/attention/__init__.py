"""Attention as data: the keys that queries see, for every system, and one primitive that computes it."""
