"""Triton kernels: one step of reasoning and its gradients in phases, run as one launch or one a phase.

`layout` says what they are compiled for and needs no Triton; `maths` has soft-or and memory; `step` and `derive` are
the phases of a step, `gradients` and `factors` those backwards; `program` and `clause` are the kernels made of them,
with their launchers.
"""
