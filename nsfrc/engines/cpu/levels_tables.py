"""An `anchored` plan in the form its kernels read, and what one call is about."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nsfrc.compiler.levels import LevelPlan
from nsfrc.engines.base import NEURAL
from nsfrc.engines.cpu.maths import INNER


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


@njit(**INNER)
def unpack(indices, floats, layout):
    """The tables of a packed plan, as views."""
    at = layout
    ends = layout[20:].reshape((3, at[19] + 1))
    return Levels(
        indices[at[0] : at[1]], indices[at[1] : at[2]], indices[at[2] : at[3]], indices[at[3] : at[4]],
        indices[at[4] : at[5]], indices[at[5] : at[6]], indices[at[6] : at[7]], indices[at[7] : at[8]],
        indices[at[8] : at[9]], indices[at[9] : at[10]], indices[at[10] : at[11]], indices[at[11] : at[12]],
        indices[at[12] : at[13]], floats[: at[14]], floats[at[14] :],
        ends[0], ends[1], ends[2], at[15], at[16], at[17], at[18],
    )


class Arguments(NamedTuple):
    """One call, as kernels see it. base: γ, k and unit as numbers of 32 bits, see `engines.base.base_two`.

    declared [G]: where atoms start, NEURAL for those that are.
    rounds [blocks]: -1 for a plain block. past_start [blocks + 1]: rows of `past` that a block fills: its heads, of a
    recursive one those of every round from the start on. past [rows, B]: empty where nobody differentiates.
    settled [tiles, blocks]: after how many rounds nothing changed any more.
    place, atom [outputs]: row of X and atom of what is asked for.
    """

    indices: np.ndarray
    floats: np.ndarray
    layout: np.ndarray
    base: np.ndarray
    declared: np.ndarray
    V0: np.ndarray
    first: int
    last: int
    tile: int
    weights: np.ndarray
    hard: bool
    rounds: np.ndarray
    past_start: np.ndarray
    past: np.ndarray
    settled: np.ndarray
    place: np.ndarray
    atom: np.ndarray


class Fixed(NamedTuple):
    """What all calls of one plan and run share: few arrays, because each costs time in every call from Python."""

    indices: np.ndarray
    floats: np.ndarray
    numbers: np.ndarray  # float32: base, then declared
    counts: np.ndarray  # int64: blocks, outputs; then rounds, past_start, place, atom and layout end to end


def fix(
    packed: Packed, base: np.ndarray, declared: np.ndarray, rounds: np.ndarray, past_start: np.ndarray,
    place: np.ndarray, atom: np.ndarray,
) -> Fixed:
    counts = [np.array([len(rounds), len(place)]), rounds, past_start, place, atom, packed.layout]
    return Fixed(packed.indices, packed.floats, np.concatenate([base, declared]).astype(np.float32),
                 np.concatenate(counts).astype(np.int64))


@njit(**INNER)
def read(indices, floats, numbers, counts, V0, first, last, tile, weights, past, settled):
    """A call's arguments from what is `Fixed` and what is its own; weights without rows: clauses as given."""
    blocks, outputs = counts[0], counts[1]
    starts = 2 + blocks
    places = starts + blocks + 1
    return Arguments(
        indices, floats, counts[places + 2 * outputs :], numbers[:3], numbers[3:], V0, first, last, tile, weights,
        weights.shape[0] == 0, counts[2:starts], counts[starts:places], past, settled,
        counts[places : places + outputs], counts[places + outputs : places + 2 * outputs],
    )
