"""A plan in the form the kernels read.

A plan crosses as two flat arrays and their layout, and is taken apart on the other side (`reading`) into the named
tables the kernels use. What else they are told is one record of whole numbers: addresses, sizes and choices.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from nsfrc.compiler.plan import Plan
from nsfrc.engines.base import head_of, starting_values

# float32 lanes of a 512-bit register; tiles are filled up to a multiple of it. What is left over of a row goes through
# vectors of four, which take longer than all that is spare here.
VECTOR = 16
# Up to this many lanes a vector of rows of one example beats a vector of examples.
FEW_LANES = 4
# What kernels say; else the number of an example that they cannot reason about.
FINE, OTHER_START, NO_MEMORY = -1, -2, -3
NOT_RUN = -4  # what is said in a kernel's place where it did not run


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


class Fixed(NamedTuple):
    """What all calls with one plan and run share: the first numbers of a record."""

    indices: int  # addresses of `Packed`
    floats: int
    layout: int
    base: int  # address of gamma, k and unit: `engines.base.base_two`
    outputs: int  # address of the atoms asked for, uint32
    output_count: int
    atoms: int  # G
    clauses: int  # C
    steps: int
    whole_batch: int  # whether Z is the batch's
    targets_only: int
    neural_only: int


class Own(NamedTuple):
    """What is one call's own, for kernels of either semantics: the other numbers of a record.

    Addresses are of float32, row after row, unless said; 0 where there is nothing.
    """

    V0: int  # [B, G]
    examples: int  # B
    first: int  # the examples to reason about …
    last: int  # … before this one
    tile: int
    weights: int  # [M, C]
    mixtures: int  # M; 0: clauses as given
    must_start_so: int  # whether atoms that are not neural must start as the program says
    past: int  # what is kept for the way back: `paper` [steps + 1, kept, B], `anchored` [kept, B]
    kept: int
    beside: int  # `paper`: Z of V [steps, B], kept too; `anchored`: rounds until blocks settled, int64 [tiles, blocks]
    beside_rows: int
    out: int  # [B, outputs]; its gradient when it goes backwards
    g_V0: int  # [B, G]
    g_weights: int  # [M, C], float64; `paper` over the batch: one after another for each chunk of the part
    seat: int  # address of `Seat`


class Seat(NamedTuple):
    """What a part of a batch that shares its Z knows of the others, see `meeting`. Whole numbers of 64 bits."""

    parts: int
    part: int
    barrier: int  # address of a function that returns when all parts have called it …
    gate: int  # … with this: the address of `native.GATE` numbers
    board: int  # float64 [parts, width]
    width: int
    rows: int  # [row_count, B]; only backwards
    row_count: int
    chunk: int  # the weights' gradient is summed by so many examples, however many parts there are


def board_width(clauses: int, heads: int) -> int:
    """How much a part has to say: see `meeting`."""
    return 8 + 2 * clauses + 2 * heads


RECORD = struct.Struct(f"{len(Fixed._fields) + len(Own._fields)}q")
