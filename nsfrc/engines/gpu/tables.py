"""A plan in the form the Triton kernels read, and the layout they are compiled for.

The kernels gather: what is summed (rows of a pair, pairs of a clause, uses of a factor) is a list of
segments, sorted by falling length so that those worked on together are of like length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from nsfrc.compiler.plan import Plan
from nsfrc.engines.base import head_of, kept_slots, starting_values
from nsfrc.kernels.layout import Band, Floats, Indices, Layout, Power, Rows, Sizes

WIDTHS = 4 ** np.arange(12)
SECTOR = 8  # words that memory moves at a time
ROUNDS = np.array([2, *[4] * 11])  # of a width, before the next one is taken


@dataclass(frozen=True, eq=False)
class Tables:
    """indices (int32) and floats (float32) hold all tables end to end; `at` and `of` say where each begins."""

    indices: np.ndarray
    floats: np.ndarray
    at: Indices
    of: Floats
    plan: Plan
    kept: int
    levels: int
    parts: int
    outputs: int
    split: bool
    part_counts: np.ndarray
    clause_counts: np.ndarray
    use_counts: np.ndarray


@dataclass(frozen=True, eq=False)
class Segments:
    """Entries grouped by an owner: owners by falling count, where each one's entries begin, and their order."""

    owner: np.ndarray
    start: np.ndarray
    count: np.ndarray
    order: np.ndarray


def segments(owners: np.ndarray, rank: np.ndarray | None = None) -> Segments:
    """Group entries by owner [entries]; owners of lower rank (by owner) come first."""
    order = np.argsort(owners, kind="stable")
    owner, start, count = np.unique(owners[order], return_index=True, return_counts=True)
    first = np.lexsort((owner, -count) if rank is None else (owner, -count, rank[owner]))
    return Segments(owner[first], start[first], count[first], order)


def pack(plan: Plan, targets_only: bool, rows_of_part: int | None = None) -> Tables:
    """Tables of a plan. rows_of_part: share the rows of longer pairs out to parts of at most this many."""
    kept = kept_slots(plan, targets_only)
    level, place = _levels(plan)
    left, right = (place[table.astype(np.int64)] for table in (plan.row_left, plan.row_right))
    run_rows = np.diff(plan.run_start.astype(np.int64)).astype(np.int64)
    power, times = (np.repeat(table, run_rows) for table in (plan.run_power, plan.run_times))
    pair_rows = np.diff(plan.run_start.astype(np.int64)[plan.pair_start]).astype(np.int64)
    pair = np.arange(len(pair_rows)).repeat(pair_rows)
    outputs = plan.slot_of[plan.targets if targets_only else slice(None)].astype(np.int64)
    part_pair, part_start, part_count = _parts(pair_rows, rows_of_part)
    by_length = np.argsort(-part_count, kind="stable")
    uses = _uses(left, right, plan.active)
    integers: dict[str, Any] = {
        "member": plan.members,
        "head_of": head_of(plan),
        "rank": np.argsort(np.argsort(plan.members, kind="stable")),
        "output": outputs,
        "asked_start": np.searchsorted(np.sort(outputs), np.arange(kept + 1)),
        "asked": np.argsort(outputs, kind="stable"),
        "gradient": _gradient_slots(plan, kept),
        "row": entries(left, right, power, times),
        "part": entries(by_length, part_start[by_length], part_count[by_length],
                         plan.pair_padding[part_pair[by_length]]),
        "part_pair": part_pair, "pair_parts": np.searchsorted(part_pair, np.arange(len(pair_rows) + 1)),
        "use": entries(uses.owner, uses.start, uses.count, np.zeros_like(uses.count)),
        "use_of": entries(*(column[uses.order] for column in (
            np.concatenate([right, left]), np.tile(pair, 2), np.tile(power, 2), np.tile(times, 2)))),
        **_clause_tables(plan), **_node_tables(plan, level, place),
    }
    floats = {"constant": starting_values(plan.constant), "padding": plan.pair_padding}
    return Tables(
        indices=_join(integers, Indices._fields, np.int32), floats=_join(floats, Floats._fields, np.float32),
        at=Indices(*_starts(integers, Indices._fields)), of=Floats(*_starts(floats, Floats._fields)),
        plan=plan, kept=kept, levels=int(level.max(initial=0)), parts=len(part_pair), outputs=len(outputs),
        split=rows_of_part is not None, part_counts=part_count[by_length],
        clause_counts=integers["clause"][2::4], use_counts=uses.count,
    )


def layout(
    tables: Tables, tall: int, wide: int, mixtures: int, *, hard: bool, neural_only: bool, gradient: bool
) -> Layout:
    """What kernels are compiled for: these tables, tiles of tall × wide, M mixtures."""
    plan, exact = tables.plan, hard and not neural_only
    sizes = Sizes(
        atoms=plan.G, slots=plan.slots, active=plan.active, kept=tables.kept, nodes=plan.nodes, levels=tables.levels,
        powers=len(plan.powers), pairs=len(plan.pair_clause), parts=tables.parts, clauses=plan.C,
        heads=len(plan.heads), mixtures=1 if hard else mixtures, outputs=tables.outputs,
    )
    return Layout(
        tall=tall, wide=wide, n=sizes, at=tables.at, of=tables.of,
        row=_rows(sizes, tables.split, hard, exact, gradient),
        powers=tuple(Power(place, n, max(n - 1, 0)) for place, n in enumerate(plan.powers.tolist())),
        sums=bands(tables.part_counts, tall), clauses=bands(tables.clause_counts, tall),
        uses=bands(tables.use_counts, tall),
        true=plan.true, false=plan.false, length=plan.L,
        power_bits=max(plan.L, int(plan.powers.max(initial=0))).bit_length(), log_s=math.log2(plan.S),
        split=tables.split, hard=hard, neural_only=neural_only, exact=exact, gradient=gradient,
    )


def bands(counts: np.ndarray, tall: int) -> tuple[Band, ...]:
    """Cut segments, by falling length, into bands; each is worked on `width` entries of a segment at a time.

    Lengths that take up to 4 rounds of a width share a band. A band with few segments is worked on more entries at
    a time, so that a tile is filled by entries where it is not by segments.
    """
    widths = np.minimum(WIDTHS[np.searchsorted(ROUNDS * WIDTHS, counts)], tall)
    starts = np.flatnonzero(np.diff(widths, prepend=0))
    found: list[Band] = []
    for first, last in pairwise([*starts, len(counts)]):
        width = int(widths[first])
        while 2 * width * (last - first) <= tall and width < counts[first]:
            width *= 2
        rounds = -(-counts[first: last: tall // width] // width)
        found.append(Band(width, int(first), int(last), int(rounds[0]) * width if (rounds == rounds[0]).all() else 0))
    return tuple(found)


def _levels(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Level of every row of X as the plan numbers them (0: no node), and the number that kernels give it:
    nodes are sorted by level."""
    first = plan.active + 1
    level = np.zeros(first + plan.nodes, dtype=np.int64)
    for node, (a, b) in enumerate(zip(plan.node_left.tolist(), plan.node_right.tolist(), strict=True)):
        level[first + node] = max(level[a], level[b]) + 1
    place = np.arange(len(level))
    place[first + np.argsort(level[first:], kind="stable")] = np.arange(first, len(level))
    return level, place


def _node_tables(plan: Plan, level: np.ndarray, place: np.ndarray) -> dict[str, np.ndarray]:
    first, levels = plan.active + 1, int(level.max(initial=0))
    order = np.argsort(level[first:], kind="stable")
    left, right = (place[table.astype(np.int64)][order] for table in (plan.node_left, plan.node_right))
    sorted_level = np.sort(level)  # slots first: all are of level 0
    fed = segments(np.concatenate([left, right]), rank=-sorted_level)
    bounds = np.searchsorted(sorted_level[first:], np.arange(1, levels + 2))
    ranges = np.searchsorted(-sorted_level[fed.owner], -np.arange(levels, -1, -1) + 1)
    return {
        "level": entries(bounds[:-1], bounds[1:]), "node": entries(left, right),
        "fed": entries(fed.owner, fed.start, fed.count, np.zeros_like(fed.count)),
        "fed_level": entries(ranges[:-1], ranges[1:]),
        "fed_by": entries(np.tile(np.arange(first, len(level)), 2)[fed.order],
                           np.concatenate([right, left])[fed.order]),
    }


def _clause_tables(plan: Plan) -> dict[str, np.ndarray]:
    start = np.searchsorted(plan.pair_clause, np.arange(plan.C + 1))
    count = np.diff(start)
    by_count = np.argsort(-count, kind="stable")
    head_start = plan.head_start.astype(np.int64)
    pair_head = np.empty(len(plan.pair_clause), dtype=np.int64)
    pair_head[plan.head_pairs] = np.repeat(np.arange(len(plan.heads)), np.diff(head_start))
    return {
        "pair": entries(plan.pair_clause, pair_head),
        "pair_rank": np.arange(len(pair_head)) - start[plan.pair_clause] + 1,
        "clause": entries(by_count, start[:-1][by_count], count[by_count], np.zeros_like(count)),
        "head": entries(head_start, np.append(head_start[1:], head_start[-1])),
        "head_pair": entries(plan.head_pairs, plan.pair_clause[plan.head_pairs]),
    }


def _parts(pair_rows: np.ndarray, most: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pair, first row and number of rows of every part; parts of a pair are as equal as they can be."""
    count = np.ones_like(pair_rows) if most is None else np.maximum(1, -(-pair_rows // most))
    pair = np.repeat(np.arange(len(pair_rows)), count)
    number = np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count)
    rows, parts = pair_rows[pair], count[pair]
    first = np.repeat(np.cumsum(pair_rows) - pair_rows, count)
    begin, end = rows * number // parts, rows * (number + 1) // parts
    return pair, first + begin, end - begin


def _uses(left: np.ndarray, right: np.ndarray, one: int) -> Segments:
    """Rows by each of their factors; the constant 1 needs no gradient."""
    owners = np.concatenate([left, right])
    found = segments(owners)
    keep = found.owner != one
    return Segments(found.owner[keep], found.start[keep], found.count[keep], found.order)


def _gradient_slots(plan: Plan, kept: int) -> np.ndarray:
    """[G]: the slot whose gradient an atom receives; one atom of a slot has all of it. -1 of atoms that start the slots
    whose largest alone is kept, -2 of all others."""
    gradient = np.full(plan.G, -2, dtype=np.int64)
    own = plan.slots if kept == plan.slots else plan.active
    gradient[plan.members[:own]] = np.arange(own)
    gradient[plan.members[own:]] = -1
    return gradient


def _rows(n: Sizes, split: bool, hard: bool, exact: bool, gradient: bool) -> Rows:
    """Give every quantity its rows; what is not needed has none."""
    more, mixtures = int(gradient), 0 if hard else n.mixtures
    x, heads = n.active + 1 + n.nodes, n.heads + 1
    sizes = {
        "x": x, "rest": n.kept - n.active, "scale": n.powers, "slope": more * n.powers, "bottom": 1, "pair": n.pairs,
        "part": n.parts if split else 0, "clause_z": n.clauses, "mixed": mixtures, "derived": heads, "derived_z": 1,
        "value_z": 1, "start_false": int(exact), "g_value": more * n.kept, "g_x": more * x,
        "g_derived": more * heads, "g_pair": more * n.pairs,
        "g_absent": more * n.clauses, "g_z": more * n.clauses, "claim": more * n.clauses, "g_true": more,
        "g_false": more, "by_true": more * n.parts, "g_mixed": more * mixtures, "chosen": more * mixtures * heads,
    }
    rows = dict(zip((*sizes, "end"), np.cumsum([0, *sizes.values()]).tolist(), strict=True))
    if not split:
        rows["part"] = rows["pair"]  # a part is a pair
    return Rows(**rows)


def entries(*columns: np.ndarray | int) -> np.ndarray:
    """Entries of several whole numbers each, one after another."""
    whole = np.stack(np.broadcast_arrays(*(np.asarray(column).astype(np.int64) for column in columns)), axis=1).ravel()
    assert whole.max(initial=0) < 2**31, "more rows than memory has"
    return whole


def _join(tables: dict[str, Any], names: tuple[str, ...], dtype: type) -> np.ndarray:
    """Tables end to end, each filled up with zeros so that the next one begins with a sector of memory."""
    whole: list[np.ndarray] = [np.asarray(tables[name]).astype(dtype) for name in names]
    return np.concatenate([np.pad(table, (0, -len(table) % SECTOR)) for table in whole])


def _starts(tables: dict[str, Any], names: tuple[str, ...]) -> list[int]:
    sizes = [-(-len(tables[name]) // SECTOR) * SECTOR for name in names[:-1]]
    return np.cumsum([0, *sizes]).tolist()
