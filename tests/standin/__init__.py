"""A CUDA device that is not there: tensors that say `cuda:0` and compute on the CPU, and counters of what a GPU would do."""
