"""Triton kernels for the GPU; there are none yet, and the engines are `cpu` and `reference`."""
