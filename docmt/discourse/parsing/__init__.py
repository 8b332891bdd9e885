"""RST parsing: transition system, baselines, the linear and the neural parser, adapters, evaluation."""
