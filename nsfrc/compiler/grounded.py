"""The ground program that the passes rewrite: clauses as rows of slots.

A *slot* is a place in the running valuation. At first every ground atom has its own; value
numbering lets atoms that are always equal share one. A *row* is one substitution of one clause
for one head: `true^power` times the product of its factors, counted `multiplicity` times. A *pair*
is a clause with one of its heads. Rows a pair has fewer than `S` are padding: all false.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from nsfrc.compiler import ir
from nsfrc.compiler.herbrand import FALSE, TRUE, Herbrand
from nsfrc.records import dataclass

NOTHING = -1  # fills up factor columns; a product over nothing is 1
BLOCK = 8192  # rows that are looked at together: what is in between then stays in the processor's cache


@dataclass(frozen=True, eq=False)
class Counts:
    """Slots that look at finished values of others: how many of them hold.

    head [n]: the slot that count i is the value of.  start [n + 1], source: the slots that it counts.
    wanted_start [n + 1], wanted: True for 0, 1, … of them where it holds; the last entry stands for all larger numbers.

        \\+ p        source p                wanted yes, no
        N >= 2      source p1, p2, p3       wanted no, no, yes
    """

    head: np.ndarray
    start: np.ndarray
    source: np.ndarray
    wanted_start: np.ndarray
    wanted: np.ndarray

    @classmethod
    def of(cls, heads: Sequence[int], sources: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> Counts:
        return cls(
            np.array(heads, dtype=np.int32), _starts(sources),
            np.concatenate([np.zeros(0, np.int32), *sources]).astype(np.int32),
            _starts(wanted), np.concatenate([np.zeros(0, bool), *wanted]),
        )

    def __len__(self) -> int:
        return len(self.head)

    def __iter__(self) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Head, sources and what is wanted of every count."""
        for i, head in enumerate(self.head):
            yield (int(head), self.source[self.start[i] : self.start[i + 1]],
                   self.wanted[self.wanted_start[i] : self.wanted_start[i + 1]])

    @property
    def head_of_source(self) -> np.ndarray:
        return np.repeat(self.head, np.diff(self.start))

    def keep(self, which: np.ndarray) -> Counts:
        """Some of the counts: which [n], True for those."""
        if which.all():
            return self
        kept = [one for one, yes in zip(self, which, strict=True) if yes]
        return Counts.of(*map(list, zip(*kept, strict=True))) if kept else NO_COUNTS

    def renamed(self, slots: np.ndarray) -> Counts:
        """With every slot s as slots[s]."""
        return replace(self, head=slots[self.head].astype(np.int32), source=slots[self.source].astype(np.int32))


def _starts(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)


NO_COUNTS = Counts.of((), (), ())


@dataclass(frozen=True, eq=False)
class GroundProgram:
    """Clauses × heads × substitutions, stored as rows.

    clauses: those of the program, C of them; S, L: as in the paper's index tensor.
    initial [G]: 0 or 1 where nothing neural decides; neural [G]: True where V0 is an input.
    targets [n]: atoms whose value is the prediction.
    slot_of [G]: slot of each atom; members [slots]: the first atom of each slot.
    pair_clause, pair_head [pairs]: clause and head slot; pair_start [pairs + 1]: first row of each.
    factors [rows, width]: slots, or nodes counted on from the number of slots; NOTHING fills up.
    power, multiplicity [rows].  nodes [n, 2]: products that rows and later nodes use.
    components [C, L]: which body atoms of a clause hang together by variables the head leaves free;
    a row's factors stand in the order of its clause's body.
    active: slots from here on are in no row, head no clause and are no target.
    counts: atoms whose value is how likely it is that so many others hold, in the place of rows.
    cycle [G]: atoms that depend on each other share a number, NOTHING for all others and under `paper`. They are
    computed in rounds, by default as many as they are.
    """

    herbrand: Herbrand = field(repr=False)
    clauses: tuple[ir.Clause, ...]
    S: int
    L: int
    initial: np.ndarray
    neural: np.ndarray
    targets: np.ndarray
    slot_of: np.ndarray
    members: np.ndarray
    pair_clause: np.ndarray
    pair_head: np.ndarray
    pair_start: np.ndarray
    factors: np.ndarray
    power: np.ndarray
    multiplicity: np.ndarray
    nodes: np.ndarray
    components: np.ndarray
    active: int
    cycle: np.ndarray
    counts: Counts = NO_COUNTS

    @property
    def C(self) -> int:
        return len(self.clauses)

    @property
    def G(self) -> int:
        return self.herbrand.size

    @property
    def slots(self) -> int:
        return len(self.members)

    @property
    def rows(self) -> int:
        return len(self.power)

    @property
    def pairs(self) -> int:
        return len(self.pair_clause)

    @property
    def false(self) -> int:
        return int(self.slot_of[FALSE])

    @property
    def true(self) -> int:
        return int(self.slot_of[TRUE])

    @property
    def pair_of_row(self) -> np.ndarray:
        return np.repeat(np.arange(self.pairs), np.diff(self.pair_start))

    @cached_property
    def cycle_sizes(self) -> np.ndarray:
        """How many atoms each cycle has: [cycles]. Passes change rows and slots, but not this."""
        return np.bincount(self.cycle[self.cycle != NOTHING])

    @cached_property
    def rounds(self) -> int:
        """Rounds in which whatever depends on itself is computed by default, at most."""
        return int(self.cycle_sizes.max(initial=0))

    def suffice(self, steps: int | None) -> bool:
        """Whether this many rounds are the default ones or more."""
        return steps is None or steps >= self.rounds

    @property
    def products(self) -> int:
        """Multiplications that one step needs: the nodes, and what is left to do in every row."""
        factors = int(np.count_nonzero(self.factors != NOTHING))
        return len(self.nodes) + factors - (self.rows - len(rows_of(NOTHING, self.factors)))

    def with_rows(self, keep: np.ndarray, **changes: np.ndarray) -> GroundProgram:
        """Keep some rows (indices, in pair order) and drop pairs that are left without any."""
        pair = self.pair_of_row[keep]
        first = np.flatnonzero(np.append(True, pair[1:] != pair[:-1])[: len(pair)])
        kept = pair[first]
        rows = {"factors": self.factors.take(keep, axis=0), "power": self.power[keep],
                "multiplicity": self.multiplicity[keep]}
        return replace(
            self,
            pair_clause=self.pair_clause[kept],
            pair_head=self.pair_head[kept],
            pair_start=np.append(first, len(pair)).astype(np.int64),
            **{**rows, **changes},
        )


def distinct(values: np.ndarray) -> np.ndarray:
    """Each value once, in increasing order: `np.unique`, which imports all of numpy.ma."""
    values = np.sort(values)
    return values[np.append(True, values[1:] != values[:-1])] if len(values) else values


def over_factors(
    reduce: np.ufunc, table: np.ndarray, factors: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """`reduce` of `table`'s entries for the factors of each row, or of some rows; the last entry is NOTHING's."""
    count = len(factors) if rows is None else len(rows)
    result = np.empty(count, dtype=table.dtype)
    for first in range(0, count, BLOCK):
        block = slice(first, first + BLOCK)
        some = factors[block] if rows is None else factors.take(rows[block], axis=0)
        reduce.reduce(table.take(some.T, mode="wrap"), axis=0, out=result[block])  # NOTHING, -1, finds the last one
    return result


def rows_of(factor: int, factors: np.ndarray) -> np.ndarray:
    """Rows that have this factor in every column; most are told by their first."""
    rows = np.flatnonzero(factors[:, 0] == factor)
    return rows[(factors.take(rows, axis=0) == factor).all(axis=1)]
