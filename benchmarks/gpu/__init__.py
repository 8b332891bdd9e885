"""GPU acceptance: one command that compares results with a CPU and measures speed."""
