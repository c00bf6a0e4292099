"""The CPU engine: numba kernels over a plan, lanes of examples side by side."""
