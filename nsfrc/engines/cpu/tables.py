"""A plan in the form the kernels read: one named tuple of arrays of fixed types."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nsfrc.plan import Plan


class Constants(NamedTuple):
    """gamma as the kernels use it: exp(x/gamma) is 2^(x·k), and `unit` is 1/k."""

    gamma: np.float32
    k: np.float32
    unit: np.float32


def constants_of(gamma: float) -> Constants:
    """Round k so that k·unit is as near to 1 as float32 allows.

    A value near 1 goes through both factors at every step, so the error of their product would add
    up; moving k by some units in the last place only changes gamma in the seventh digit.
    """
    nearest = np.float32(1 / (np.log(2) * gamma))
    steps = np.arange(-16, 17, dtype=np.int32)
    candidates = (np.array([nearest]).view(np.int32) + steps).view(np.float32)
    units = (1 / candidates.astype(np.float64)).astype(np.float32)
    best = np.argmin(np.abs(candidates.astype(np.float64) * units - 1))
    return Constants(np.float32(gamma), candidates[best], units[best])


class Tables(NamedTuple):
    """See `plan.Plan`; indices are uint32, because numba checks signed ones for wrap-around."""

    members: np.ndarray
    slot_of: np.ndarray
    node_left: np.ndarray
    node_right: np.ndarray
    row_left: np.ndarray
    row_right: np.ndarray
    row_times: np.ndarray
    run_start: np.ndarray
    run_power: np.ndarray
    powers: np.ndarray
    pair_start: np.ndarray
    pair_clause: np.ndarray
    pair_padding: np.ndarray
    clause_start: np.ndarray  # [C + 1]: pairs of a clause
    heads: np.ndarray
    head_start: np.ndarray
    head_pairs: np.ndarray
    head_of: np.ndarray  # [active]: number of the head a slot is, or `len(heads)`
    S: int
    L: int
    active: int
    slots: int
    false: int
    true: int


def tables_of(plan: Plan) -> Tables:
    index = {
        name: np.ascontiguousarray(getattr(plan, name), dtype=np.uint32)
        for name in ("members", "slot_of", "node_left", "node_right", "row_left", "row_right", "run_start",
                     "run_power", "powers", "pair_start", "pair_clause", "heads", "head_start", "head_pairs")
    }
    head_of = np.full(plan.active, len(plan.heads), dtype=np.uint32)
    head_of[plan.heads] = np.arange(len(plan.heads))
    return Tables(
        **index,
        row_times=np.ascontiguousarray(plan.row_times, dtype=np.float32),
        pair_padding=np.ascontiguousarray(plan.pair_padding, dtype=np.float32),
        clause_start=np.searchsorted(plan.pair_clause, np.arange(plan.C + 1)).astype(np.uint32),
        head_of=head_of,
        S=plan.S, L=plan.L, active=plan.active, slots=plan.slots, false=plan.false, true=plan.true,
    )
