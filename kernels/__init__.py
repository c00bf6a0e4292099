"""Triton kernels: one step of reasoning and its gradients in phases, run as one launch or one a phase.

`layout` says what they are compiled for and needs no Triton; `maths`, `step` and `gradients` are the
phases; `program` and `clause` are the kernels and their launchers.
"""
