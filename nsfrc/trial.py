"""Trying out a module of the user's without leaving a trace in it."""

from __future__ import annotations

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
