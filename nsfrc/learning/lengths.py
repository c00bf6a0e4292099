"""How many bits it takes to write a clause down, whatever the order in which its literals were found.

A clause is told as sets of objects and, of each set, what holds of it:

    color(A, red), shape(A, triangle), closeby(A, B)      {A}: red, triangle;  {A, B}: close by

Which literal it is costs `Relation.bits`, which argument is which object another log2(n!) where that matters, and what
comes next `NEXT`. What is said of one set is said in any order, and the sets come in any order: a code that names one
order wastes what all the others take, so the probabilities of all orders are added. The length of a clause is then a
property of what it says, and as probabilities all clauses together are no more than 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import comb, lgamma, log, log2

import numpy as np

from nsfrc.learning.relations import Relation
from nsfrc.learning.tables import Literal, Table

NEXT = log2(3)  # another literal of the same objects, one of others, or the end


@cache
def factorial_bits(n: int) -> float:
    """log2(n!)"""
    return lgamma(n + 1) / log(2)


@lru_cache(maxsize=1 << 17)
def sets_bits(sets: tuple[int, ...]) -> float:
    """Bits to say which objects some different sets have; sets: of variables, as bits, in rising order.

    A set takes any of the objects that were spoken of before it, and new ones, which have no name yet, for the rest.
    """
    known = [0] * (1 << len(sets))
    chance = [0.0] * len(known)
    chance[0] = 1.0
    for done, there in enumerate(chance):
        before = known[done].bit_count()
        for i, one in enumerate(sets):
            if not done >> i & 1:
                more = done | 1 << i
                known[more] = known[done] | one
                chance[more] += there / sum(comb(before, old) for old in range(one.bit_count() + 1))
    return -log2(chance[-1])


@dataclass(frozen=True)
class Length:
    """The parts of a clause's length. said: how many literals each set of variables has; content: bits of these."""

    said: dict[int, int]
    content: float

    @classmethod
    def of(cls, literals: Sequence[Literal], relations: Sequence[Relation]) -> Length:
        said = Counter(sum(1 << a for a in args) for _, args in literals)
        bits = sum(literal_bits(relations[relation]) for relation, _ in literals)
        return cls(said, bits - sum(factorial_bits(n) for n in said.values()))

    @property
    def bits(self) -> float:
        return self.content + sets_bits(tuple(sorted(one for one in self.said if one)))

    def with_one_more(self, table: Table | None, rows: np.ndarray, own: np.ndarray, several: np.ndarray) -> np.ndarray:
        """Bits of the clause with one more of some literals of a table, None for those of whole examples.

        own: bits of these literals; several: how many each of them is, two for a pair.
        """
        masks, place = (table.sets, table.set_of[rows]) if table is not None else ([0], np.zeros(len(rows), np.int64))
        base = np.zeros((len(masks), 2))
        for i in np.unique(place).tolist():
            mask, there = masks[i], self.said.get(masks[i], 0)
            around = sets_bits(tuple(sorted({one for one in self.said if one} | ({mask} - {0}))))
            for n in (1, 2):
                order = factorial_bits(there + n) - factorial_bits(there) - factorial_bits(n)
                base[i, n - 1] = self.content + around - order
        return np.asarray(base[place, several - 1] + own)


def literal_bits(relation: Relation) -> float:
    """Bits of one literal, apart from which objects it speaks of."""
    several = len(relation.parts) or 1
    return relation.bits + several * NEXT + (0.0 if relation.symmetric else factorial_bits(relation.arity))


def cost_of(literals: Sequence[Literal], relations: Sequence[Relation]) -> float:
    """Bits of a clause."""
    return Length.of(literals, relations).bits
