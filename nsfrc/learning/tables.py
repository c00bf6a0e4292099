"""Literals as bits over all assignments of objects to variables, a table for each number of variables."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, permutations

import numpy as np

from nsfrc.engines.cpu.cache import kernel_cache
from nsfrc.learning.relations import Relation

with kernel_cache():
    from nsfrc.learning import kernels

MOST_BYTES = 400_000_000  # of all tables together; more variables are then not tried
MOST_ORDERS = 120  # orders of arguments of one relation

Literal = tuple[int, tuple[int, ...]]  # a relation, and which variable each of its arguments is


@dataclass(frozen=True, eq=False)
class Table:
    """All literals over k variables: bits [literals, words], each filled when it is first asked for.

    every: the bits of a clause without literals, 1 for each assignment and 0 beyond the last. needed: the variables of
    each literal, as bits; rising: whether its variables stand in their order. relation, arity: of each literal.
    """

    tables: Tables
    k: int
    literals: list[Literal]
    bits: np.ndarray
    starts: np.ndarray
    every: np.ndarray
    needed: np.ndarray
    rising: np.ndarray
    relation: np.ndarray
    arity: np.ndarray
    filled: np.ndarray
    newer: dict[Literal, np.ndarray] = field(default_factory=dict)

    @cached_property
    def row(self) -> dict[Literal, int]:
        return {literal: i for i, literal in enumerate(self.literals)}

    @cached_property
    def sets(self) -> list[int]:
        """The sets of variables that literals have, as bits."""
        found: list[int] = np.unique(self.needed).tolist()
        return found

    @cached_property
    def set_of(self) -> np.ndarray:
        """[literals]: which of `sets`."""
        return np.searchsorted(np.array(self.sets, dtype=np.int64), self.needed)

    def ready(self, rows: np.ndarray) -> np.ndarray:
        """The bits of all literals, of which `rows` are right."""
        for row in rows[~self.filled[rows]].tolist():
            relation, args = self.literals[row]
            self.tables.fill(self.bits[row], self.k, self.starts, relation, args)
            self.filled[row] = True
        return self.bits

    def of(self, literal: Literal) -> np.ndarray:
        """The bits of one literal, also of one whose relation is newer than the table."""
        row = self.row.get(literal)
        if row is not None:
            found: np.ndarray = self.ready(np.array([row]))[row]
            return found
        if literal not in self.newer:
            self.newer[literal] = np.zeros_like(self.every)
            self.tables.fill(self.newer[literal], self.k, self.starts, *literal)
        return self.newer[literal]


class Tables:
    """Makes tables when they are first needed. present [B, E]: the objects of each example."""

    def __init__(self, relations: list[Relation], present: np.ndarray) -> None:
        self.relations = relations
        self.B, self.E = present.shape
        self.counts = present.sum(axis=1)
        # The objects that are there first, in their order.
        self.objects = np.argsort(~present, axis=1, kind="stable").astype(np.int64)
        self._tables: dict[int, Table] = {}
        self._outdated = False
        self._assignments: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.whole = [i for i, one in enumerate(relations) if one.arity == 0]
        columns = [relations[i].values[:, 0] for i in self.whole]
        self.whole_bits = np.array(columns, dtype=bool).reshape(len(columns), self.B)
        self.whole_row: dict[Literal, int] = {(relation, ()): i for i, relation in enumerate(self.whole)}
        self.keys = np.asarray(np.random.default_rng(1).integers(1, 2**63, size=(self.B,), dtype=np.uint64))

    def literals(self, k: int) -> list[Literal]:
        """All ways to put k variables into relations; equal ones once."""
        found: list[Literal] = []
        for i, one in enumerate(self.relations):
            if not 0 < one.arity <= k:
                continue
            ways = list((combinations if one.symmetric else permutations)(range(k), one.arity))
            if len(ways) <= MOST_ORDERS:
                found += [(i, args) for args in ways]
        return found

    def words(self, k: int) -> np.ndarray:
        """How many words each example has."""
        assignments = np.ones(self.B, dtype=np.int64)
        for i in range(k):
            assignments *= np.maximum(self.counts - i, 0)
        return -(-assignments // 64)

    def add(self, relation: Relation) -> int:
        """One more relation, which searches that begin later have; literals that were there keep their names."""
        self.relations.append(relation)
        self._outdated = True
        return len(self.relations) - 1

    def renew(self) -> None:
        """Have tables for all relations from now on."""
        if self._outdated:
            self._tables.clear()
            self._outdated = False

    def fits(self, k: int) -> bool:
        """Whether a table of k variables is worth its memory, and anybody has so many objects."""
        if k in self._tables:
            return True
        words = int(self.words(k).sum())
        used = sum(table.bits.nbytes for table in self._tables.values())
        return words > 0 and used + words * 8 * len(self.literals(k)) <= MOST_BYTES

    def table(self, k: int) -> Table:
        if k not in self._tables:
            self._tables[k] = self._make(k)
        return self._tables[k]

    def _make(self, k: int) -> Table:
        literals = self.literals(k)
        starts = np.concatenate([[0], np.cumsum(self.words(k))]).astype(np.int64)
        every = np.zeros(starts[-1], dtype=np.uint64)
        self._assignments[k] = _assignments(int(self.counts.max(initial=0)), k)
        nothing = np.zeros(0, dtype=np.int64)
        kernels.fill(every, np.ones((self.B, 1), dtype=bool), nothing, nothing, self.objects, self.counts,
                     *self._assignments[k], starts)
        return Table(
            self, k, literals, np.zeros((len(literals), starts[-1]), dtype=np.uint64), starts, every,
            needed=np.array([sum(1 << a for a in args) for _, args in literals], dtype=np.int64),
            rising=np.array([list(args) == sorted(args) for _, args in literals], dtype=bool),
            relation=np.array([one for one, _ in literals], dtype=np.int64),
            arity=np.array([len(args) for _, args in literals], dtype=np.int64),
            filled=np.zeros(len(literals), dtype=bool),
        )

    def fill(self, out: np.ndarray, k: int, starts: np.ndarray, relation: int, args: tuple[int, ...]) -> None:
        """Write the bits of a literal over k variables."""
        one = self.relations[relation]
        steps = np.array([self.E ** (one.arity - 1 - j) for j in range(one.arity)], dtype=np.int64)
        kernels.fill(out, one.values, steps, np.array(args, dtype=np.int64), self.objects, self.counts,
                     *self._assignments[k], starts)


def _assignments(most: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """For every n up to `most` the ways to give k variables different ones of n objects, and where they begin."""
    parts = [np.array(list(permutations(range(n), k)), dtype=np.int64).reshape(-1, k) for n in range(most + 1)]
    return np.concatenate(parts), np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
