"""Torch as some work needs it, and afterwards as it was: modules that are only tried out, numbers of threads, how
the smallest numbers are taken."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def undisturbed(module: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode, without gradients; afterwards every part's mode and torch's random numbers are as before."""
    modes = {part: part.training for part in module.modules()}
    try:
        with torch.no_grad(), torch.random.fork_rng():
            module.eval()
            yield
    finally:
        for part, training in modes.items():
            part.training = training


def cores() -> int:
    """How many processor cores this process may use."""
    there = getattr(os, "sched_getaffinity", None)  # which some systems lack
    return len(there(0)) if there is not None else os.cpu_count() or 1


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """This many threads for torch and the CPU engine, and afterwards as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Numbers below 1e-38 are 0 for torch on this thread: they are slow to compute with. Afterwards as before."""
    before = float(torch.tensor(1.2e-38) * 0.5) == 0  # torch tells nobody
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
