"""What engines share that run a plan: soft-or with base 2, starting values as numbers, and who heads what."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from nsfrc.compiler.plan import Plan

if TYPE_CHECKING:
    from nsfrc.program import Program

NEURAL = -1.0  # marks atoms whose starting value is an input; kernels do not compare with NaN


def starting_values(constant: np.ndarray) -> np.ndarray:
    """What atoms start at when they are not neural, and NEURAL for those that are: [G]. constant: NaN for these."""
    return np.nan_to_num(constant, nan=NEURAL).astype(np.float32)


def head_of(plan: Plan) -> np.ndarray:
    """[slots]: number of the head a slot is, or the number of heads."""
    found = np.full(plan.slots, len(plan.heads), dtype=np.int64)
    found[plan.heads] = np.arange(len(plan.heads))
    return found


def kept_slots(plan: Plan, targets_only: bool) -> int:
    """Slots whose V is kept: the active ones and all passive ones, or, for targets, one for the largest of these."""
    passive = plan.slots - plan.active
    return plan.active + (min(passive, 1) if targets_only else passive)


@lru_cache
def base_two(gamma: float) -> np.ndarray:
    """[gamma, k, unit]: exp(x/gamma) is 2^(x·k), and unit is 1/k.

    k is rounded so that k·unit is as near to 1 as float32 allows: a value near 1 goes through both
    at every step, so the error of their product would add up, while moving k by some units in the
    last place only changes gamma in the seventh digit.
    """
    nearest = np.array([1 / (np.log(2) * gamma)], dtype=np.float32)
    candidates = (nearest.view(np.int32) + np.arange(-16, 17, dtype=np.int32)).view(np.float32)
    units = (1 / candidates.astype(np.float64)).astype(np.float32)
    best = np.argmin(np.abs(candidates.astype(np.float64) * units - 1))
    return np.array([gamma, candidates[best], units[best]], dtype=np.float32)


def not_finite(program: Program, row: int, atom: int, value: float) -> str:
    """What to say of an entry of V0 that is NaN or infinite."""
    return f"V0[{row}, {atom}], {program.atoms[atom]}, is {value}; it must be finite"


def negative(program: Program, row: int, atom: int, value: float) -> str:
    """What to say of an entry of V0 below 0, which `anchored` gives no meaning to."""
    return f"V0[{row}, {atom}], {program.atoms[atom]}, is {value}; values go from 0 to 1, as a sigmoid gives them"
