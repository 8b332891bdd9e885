"""Measurements of speed and memory, comparisons with other code, and the acceptance of a GPU."""
