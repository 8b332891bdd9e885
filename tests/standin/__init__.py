"""A CUDA device that is not there: tensors say `cuda:0` and compute on the CPU, and what a GPU would do is counted."""
