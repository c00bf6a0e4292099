"""An `anchored` plan in the form its kernels read, and what one call is about."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from nsfrc.compiler.levels import LevelPlan
from nsfrc.engines.base import NEURAL
from nsfrc.engines.cpu.tables import Own


class Levels(NamedTuple):
    """See `levels.LevelPlan`; indices are uint32, because numba checks signed ones for wrap-around."""

    input_atom: np.ndarray
    head_atom: np.ndarray
    node_left: np.ndarray
    node_right: np.ndarray
    row_left: np.ndarray
    row_right: np.ndarray
    run_start: np.ndarray
    pair_start: np.ndarray
    pair_clause: np.ndarray
    head_start: np.ndarray
    choice_by: np.ndarray
    choice_no: np.ndarray
    choice_yes: np.ndarray
    run_times: np.ndarray
    head_value: np.ndarray  # [heads]: where a head starts, or NEURAL where V0 says it
    block_nodes: np.ndarray  # int64, as what is counted with
    block_choices: np.ndarray
    block_heads: np.ndarray
    first_head: int
    first_node: int
    first_choice: int
    most_pairs: int  # of a head


_INDICES = Levels._fields[:13]


class Packed(NamedTuple):
    """A plan as kernel arguments: tables end to end, and where each begins; then what is counted with."""

    indices: np.ndarray  # uint32
    floats: np.ndarray  # float32
    layout: np.ndarray  # int64


def pack(plan: LevelPlan) -> Packed:
    indices = [getattr(plan, name).astype(np.uint32) for name in _INDICES]
    starts = plan.head_start_value if plan.declared else np.full(plan.heads, NEURAL, dtype=np.float32)
    floats = [plan.run_times, starts]
    most_pairs = int(np.diff(plan.head_start.astype(np.int64)).max(initial=0))
    layout = [*np.cumsum([0, *map(len, indices)]), len(plan.run_times), plan.first_head, plan.first_node,
              plan.first_choice, most_pairs, plan.blocks, *plan.block_nodes.tolist(), *plan.block_choices.tolist(),
              *plan.block_heads.tolist()]
    return Packed(np.concatenate(indices), np.concatenate(floats), np.array(layout, dtype=np.int64))


class Arguments(NamedTuple):
    """One call, as kernels see it.

    declared [G]: where atoms start, NEURAL for those that are.
    rounds [blocks]: -1 for a plain block. past_start [blocks + 1]: rows of `past` that a block fills: its heads, of a
    recursive one those of every round from the start on. past [rows, B]: empty where nobody differentiates.
    settled [tiles, blocks]: after how many rounds nothing changed any more.
    place, atom [outputs]: row of X and atom of what is asked for.
    """

    declared: np.ndarray
    V0: np.ndarray
    first: int
    last: int
    tile: int
    weights: np.ndarray
    hard: bool
    must_start_so: bool
    rounds: np.ndarray
    past_start: np.ndarray
    past: np.ndarray
    settled: np.ndarray
    place: np.ndarray
    atom: np.ndarray
    out: np.ndarray
    g_V0: np.ndarray
    g_weights: np.ndarray


class Fixed(NamedTuple):
    """What all calls of one plan and run share: the first numbers of a record."""

    indices: int  # addresses of `Packed`
    floats: int
    layout: int
    base: int  # address of γ, k and unit
    declared: int  # address, float32 [atoms]
    atoms: int  # G
    clauses: int  # C
    rounds: int  # addresses, int64 as all that follow
    past_start: int
    blocks: int
    place: int
    atom: int
    outputs: int  # how many


RECORD = struct.Struct(f"{len(Fixed._fields) + len(Own._fields)}q")
