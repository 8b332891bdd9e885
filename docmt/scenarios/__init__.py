"""What docmt computes on a device, compared with the CPU: rows of `docmt bench gpu`, and tests for GPUs."""
