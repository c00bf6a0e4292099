"""How often the loops of the Triton kernels run, from the tables they run on.

A count is a pair [useful, done]: entries that a plan has, and entries that tiles have, masked ones included. A
formula in `benchmarks.phases` is written once and gives both.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise

import numpy as np

from nsfrc.engines.gpu.tables import Tables
from nsfrc.kernels.layout import Band, Layout

Count = np.ndarray | int


def masked(count: Count) -> Count:
    """What a masked load or store moves, of entries so many: the useful ones."""
    return count if isinstance(count, int) else count[[0, 0]]


@dataclass(frozen=True)
class Work:
    """What is done for one example; each a count. A subtraction is an addition; a negation is free.

    Operations are those of the source: maxima, selections and the arithmetic of addresses are left
    out, and so is what a compiler may merge or drop.

    mul, add, exp, log, div: on float32. near_read, near_write: values of the workspace.
    far_read, far_write: values of V0, the outputs and V of earlier steps, and their gradients.
    table: entries of tables read by an instance, for all examples of its tile together.
    """

    mul: Count = 0
    add: Count = 0
    exp: Count = 0
    log: Count = 0
    div: Count = 0
    near_read: Count = 0
    near_write: Count = 0
    far_read: Count = 0
    far_write: Count = 0
    table: Count = 0

    def __add__(self, other: Work) -> Work:
        return Work(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __mul__(self, times: int) -> Work:
        return Work(*(getattr(self, f.name) * times for f in fields(self)))

    __rmul__ = __mul__

    def part(self, which: int) -> dict[str, int]:
        """Plain numbers; which: 0 for the useful ones, 1 for all that is done."""
        return {f.name: int(np.broadcast_to(getattr(self, f.name), 2)[which]) for f in fields(self)}


@dataclass(frozen=True)
class Segments:
    """Loops over bands: entries; segments and rounds, each of so many segments; and tiles."""

    entries: np.ndarray
    segments: np.ndarray
    rounds: np.ndarray
    tiles: int
    bands: int

    @property
    def summed(self) -> np.ndarray:
        """Additions of a sum over the entries of each round."""
        return self.entries - self.rounds


@dataclass(frozen=True)
class Lists:
    """A list of entries for every row of a tile, read one entry a turn: entries; turns, each of a tile; and
    the rows that are looked up at every turn, whether their list has ended or not."""

    entries: np.ndarray
    turns: int
    looked_up: int


@dataclass(frozen=True, eq=False)
class Loops:
    """The loops of one layout and its tables."""

    layout: Layout
    tables: Tables

    def flat(self, n: int) -> np.ndarray:
        """n rows in tiles."""
        return np.array([n, self.tiles(n) * self.layout.tall])

    def tiles(self, n: int) -> int:
        return -(-n // self.layout.tall)

    def folded(self, n: int) -> np.ndarray:
        """Rows of the tile into which n rows were added or compared, and which is then reduced to one."""
        return np.array([min(n, self.layout.tall), self.layout.tall])

    @cached_property
    def rows(self) -> Segments:
        return self._segments(self.layout.sums, self.tables.part_counts)

    @cached_property
    def pairs_of_clauses(self) -> Segments:
        return self._segments(self.layout.clauses, self.tables.clause_counts)

    @cached_property
    def uses(self) -> Segments:
        return self._segments(self.layout.uses, self.tables.use_counts)

    @cached_property
    def nodes(self) -> np.ndarray:
        """Nodes, in tiles that end with a level."""
        return self._sum([self.flat(n) for n in np.diff(self._table("level", self.layout.n.levels + 1)).tolist()])

    @cached_property
    def asked(self) -> Lists:
        """Outputs of kept slots."""
        return self._lists([np.diff(self._table("asked_start", self.layout.n.kept + 1))])

    @cached_property
    def pairs_of_heads(self) -> Lists:
        """The last head stands for all atoms that head nothing."""
        return self._lists([np.diff(self._table("head_start", self.layout.n.heads + 2))])

    @cached_property
    def parts_of_pairs(self) -> Lists:
        return self._lists([np.diff(self._table("pair_parts", self.layout.n.pairs + 1))])

    @cached_property
    def fed(self) -> tuple[np.ndarray, int, Lists]:
        """Factors of nodes, in tiles that end with a level; those tiles; and the nodes of each factor."""
        ends = self._table("fed_level", self.layout.n.levels + 1)
        counts = self._table("fed_count", int(ends[-1]))
        levels = [counts[a:b] for a, b in pairwise(ends)]
        return self._sum([self.flat(len(x)) for x in levels]), sum(self.tiles(len(x)) for x in levels), \
            self._lists(levels)

    @cached_property
    def with_gradient(self) -> int:
        """Atoms that receive the gradient of a slot."""
        mine = self._table("gradient", self.layout.n.atoms) >= 0
        if self.layout.neural_only:
            mine &= np.isnan(self.tables.plan.constant)
        return int(mine.sum())

    def _table(self, name: str, size: int) -> np.ndarray:
        start = getattr(self.tables.at, name)
        return self.tables.indices[start: start + size]

    def _segments(self, bands: tuple[Band, ...], counts: np.ndarray) -> Segments:
        """Bands are cut into tiles; a tile takes as many rounds as its first segment, the longest."""
        entries, segments, rounds, tiles = np.zeros(2, int), np.zeros(2, int), np.zeros(2, int), 0
        for width, first, last in bands:
            height = self.layout.tall // width
            mine = counts[first:last]
            longest = -(-mine[::height] // width)
            tiles += len(longest)
            segments += [len(mine), len(longest) * height]
            rounds += [int((-(-mine // width)).sum()), int(longest.sum()) * height]
            entries += [int(mine.sum()), int(longest.sum()) * self.layout.tall]
        return Segments(entries, segments, rounds, tiles, len(bands))

    def _lists(self, groups: list[np.ndarray]) -> Lists:
        tall, entries, turns, looked_up = self.layout.tall, 0, 0, 0
        for counts in groups:
            for first in range(0, len(counts), tall):
                tile = counts[first: first + tall]
                entries, turns = entries + int(tile.sum()), turns + int(tile.max())
                looked_up += int(tile.max()) * len(tile)
        return Lists(np.array([entries, turns * tall]), turns, looked_up)

    @staticmethod
    def _sum(counts: list[np.ndarray]) -> np.ndarray:
        return np.sum(counts, axis=0) if counts else np.zeros(2, int)
