"""RST parsing: transition system, baselines, the neural parser, adapters, evaluation."""
