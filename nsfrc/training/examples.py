"""What a concept is learnt from: labelled examples, how they are made, and what is measured of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

Draw = Callable[[int, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Concept:
    """How examples of a concept are made and measured. gap: between the measured values of the two classes.

    An example is k points of d coordinates. positive, negative: (count, rng) → points [count, k, d]; noise: standard
    deviation of a perception's points; measure: points [n, k, d] → [n], or [n, m] where m numbers have a weight each,
    which `terms` names. boundary: for one number, how to say where the two classes part.
    """

    positive: Draw
    negative: Draw
    measure: Callable[[torch.Tensor], torch.Tensor]
    gap: float
    noise: float
    boundary: str = ""
    terms: tuple[str, ...] = ()
