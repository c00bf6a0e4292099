"""The ground program that the passes rewrite: clauses as rows of slots.

A *slot* is a place in the running valuation. At first every ground atom has its own; value
numbering lets atoms that are always equal share one. A *row* is one substitution of one clause
for one head: `true^power` times the product of its factors, counted `multiplicity` times. A *pair*
is a clause with one of its heads. Rows a pair has fewer than `S` are padding: all false.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from nsfrc.herbrand import FALSE, TRUE, Herbrand

NOTHING = -1  # fills up factor columns; a product over nothing is 1


@dataclass(frozen=True, eq=False)
class GroundProgram:
    """Clauses × heads × substitutions, stored as rows.

    clauses: text of every clause, C of them; S, L: as in the paper's index tensor.
    initial [G]: 0 or 1 where nothing neural decides; neural [G]: True where V0 is an input.
    targets [n]: atoms whose value is the prediction.
    slot_of [G]: slot of each atom; members [slots]: the first atom of each slot.
    pair_clause, pair_head [pairs]: clause and head slot; pair_start [pairs + 1]: first row of each.
    factors [rows, width]: slots, or nodes counted on from the number of slots; NOTHING fills up.
    power, multiplicity [rows].  nodes [n, 2]: products that rows and later nodes use.
    components [C, L]: which body atoms of a clause hang together by variables the head leaves free;
    a row's factors stand in the order of its clause's body.
    active: slots from here on are in no row, head no clause and are no target.
    """

    herbrand: Herbrand = field(repr=False)
    clauses: tuple[str, ...]
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

    @property
    def products(self) -> int:
        """Multiplications that one step needs: the nodes, and what is left to do in every row."""
        width = (self.factors != NOTHING).sum(axis=1)
        return len(self.nodes) + int(np.maximum(width - 1, 0).sum())

    def with_rows(self, keep: np.ndarray, **changes: np.ndarray) -> GroundProgram:
        """Keep some rows (indices, in pair order) and drop pairs that are left without any."""
        pair = self.pair_of_row[keep]
        kept, counts = np.unique(pair, return_counts=True)
        rows = {"factors": self.factors[keep], "power": self.power[keep], "multiplicity": self.multiplicity[keep]}
        return replace(
            self,
            pair_clause=self.pair_clause[kept],
            pair_head=self.pair_head[kept],
            pair_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            **{**rows, **changes},
        )
