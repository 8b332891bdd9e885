"""A simulated CUDA device. Tensors report `cuda:0` and compute on the CPU, and operations of a GPU are counted."""
