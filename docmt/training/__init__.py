"""Training: batches, loss, schedule, checkpoints, the loop."""
