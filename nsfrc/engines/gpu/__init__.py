"""The GPU engine: plans as tables for the Triton kernels, launches, and the operator torch sees."""
