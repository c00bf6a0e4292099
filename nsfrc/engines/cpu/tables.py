"""A plan in the form the kernels read.

Calling a compiled function costs time for every argument, so a plan crosses as two flat arrays and
their layout, and is taken apart on the other side into the named tables the kernels use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nsfrc.compiler.plan import Plan
from nsfrc.engines.base import head_of, starting_values


class Tables(NamedTuple):
    """See `plan.Plan`; indices are uint32, because numba checks signed ones for wrap-around."""

    members: np.ndarray
    slot_of: np.ndarray
    node_left: np.ndarray
    node_right: np.ndarray
    row_left: np.ndarray
    row_right: np.ndarray
    group_start: np.ndarray  # [groups + 1]: rows of a group, which share their run and left factor
    run_start: np.ndarray  # [runs + 1]: groups of a run
    run_power: np.ndarray
    powers: np.ndarray
    pair_start: np.ndarray
    pair_clause: np.ndarray
    clause_start: np.ndarray  # [C + 1]: pairs of a clause
    heads: np.ndarray
    head_start: np.ndarray
    head_pairs: np.ndarray
    head_of: np.ndarray  # [active]: number of the head a slot is, or `len(heads)`
    order: np.ndarray  # [slots]: slots in atom order
    run_times: np.ndarray
    pair_padding: np.ndarray
    constant: np.ndarray  # [G]: starting value, or NEURAL
    log_s: np.float32  # log S
    L: int
    false: int
    true: int


_INDICES = Tables._fields[:18]
_FLOATS = Tables._fields[18:21]


class Packed(NamedTuple):
    """A plan as kernel arguments: tables end to end, and where each begins; the last three are sizes."""

    indices: np.ndarray  # uint32
    floats: np.ndarray  # float32
    layout: np.ndarray  # int64


def pack(plan: Plan) -> Packed:
    run_start = plan.run_start.astype(np.int64)
    new_left = np.flatnonzero(np.diff(plan.row_left.astype(np.int64))) + 1
    group_start = np.union1d(run_start, new_left)
    own = {
        "group_start": group_start,
        "run_start": np.searchsorted(group_start, run_start),
        "clause_start": np.searchsorted(plan.pair_clause, np.arange(plan.C + 1)),
        "head_of": head_of(plan)[: plan.active],
        "order": np.argsort(plan.members, kind="stable"),
    }
    indices = [np.asarray(own.get(name, getattr(plan, name, None)), dtype=np.uint32) for name in _INDICES]
    own["constant"] = starting_values(plan.constant)
    floats = [np.asarray(own.get(name, getattr(plan, name)), dtype=np.float32) for name in _FLOATS]
    floats.append(np.array([np.log(plan.S)], dtype=np.float32))
    starts = [*np.cumsum([0, *map(len, indices)]), *np.cumsum([0, *map(len, floats)])]
    sizes = [plan.L, plan.false, plan.true]
    return Packed(np.concatenate(indices), np.concatenate(floats), np.array([*starts, *sizes], dtype=np.int64))


@njit(nogil=True)
def unpack(indices, floats, layout):
    """The tables of a packed plan, as views."""
    at, of = layout[:19], layout[19:24]
    return Tables(
        indices[at[0] : at[1]], indices[at[1] : at[2]], indices[at[2] : at[3]], indices[at[3] : at[4]],
        indices[at[4] : at[5]], indices[at[5] : at[6]], indices[at[6] : at[7]], indices[at[7] : at[8]],
        indices[at[8] : at[9]], indices[at[9] : at[10]], indices[at[10] : at[11]], indices[at[11] : at[12]],
        indices[at[12] : at[13]], indices[at[13] : at[14]], indices[at[14] : at[15]], indices[at[15] : at[16]],
        indices[at[16] : at[17]], indices[at[17] : at[18]],
        floats[of[0] : of[1]], floats[of[1] : of[2]], floats[of[2] : of[3]], floats[of[3]],
        layout[24], layout[25], layout[26],
    )
