"""The plan: an immutable set of numpy tables that an engine runs.

One step of reasoning works on an array `X` of values, one row each: the active slots, a constant 1,
then the nodes (products). `tables()` and `from_tables()` are the form the artifact stores.
"""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

import numpy as np

from nsfrc.compiler.grounded import NOTHING, GroundProgram
from nsfrc.records import dataclass


class Sizes(NamedTuple):
    """G, C, S, L as in the paper; slots, those that take part in a step, and where false and true are among them."""

    G: int
    C: int
    S: int
    L: int
    slots: int
    active: int
    false: int
    true: int


@dataclass(frozen=True, eq=False)
class Plan:
    """Tables of a lowered program; index arrays use the smallest unsigned type that fits.

    slot_of [G]: slot of each atom.  members [slots]: the first atom of each slot.
    node_left, node_right [nodes]: rows of X; node i is row `active + 1 + i`.
    row_left, row_right [rows]: rows of X whose product is the row; equal left factors stand together.
    run_start [runs + 1]: rows of a run, which share a pair, a power and a multiplicity.
    run_power [runs]: into `powers`; run_times [runs]: multiplicity.
    powers [n]: the powers of `true` that occur.
    pair_start [pairs + 1]: runs of a pair; pair_clause [pairs], ascending; pair_padding [pairs]: all-false rows.
    heads [n]: slots that head clauses; head_start [n + 1], head_pairs: their pairs.
    targets [n]: atoms.  constant [G]: starting value, NaN where neural.
    """

    sizes: Sizes
    slot_of: np.ndarray
    members: np.ndarray
    node_left: np.ndarray
    node_right: np.ndarray
    row_left: np.ndarray
    row_right: np.ndarray
    run_start: np.ndarray
    run_power: np.ndarray
    run_times: np.ndarray
    powers: np.ndarray
    pair_start: np.ndarray
    pair_clause: np.ndarray
    pair_padding: np.ndarray
    heads: np.ndarray
    head_start: np.ndarray
    head_pairs: np.ndarray
    targets: np.ndarray
    constant: np.ndarray

    G = property(lambda self: self.sizes.G)
    C = property(lambda self: self.sizes.C)
    S = property(lambda self: self.sizes.S)
    L = property(lambda self: self.sizes.L)
    slots = property(lambda self: self.sizes.slots)
    active = property(lambda self: self.sizes.active)
    false = property(lambda self: self.sizes.false)
    true = property(lambda self: self.sizes.true)

    @property
    def merged(self) -> bool:
        """Whether some atoms share a slot."""
        return self.sizes.slots < self.sizes.G

    @property
    def rows(self) -> int:
        return len(self.row_left)

    @property
    def nodes(self) -> int:
        return len(self.node_left)

    @property
    def products(self) -> int:
        """Multiplications of one step; a row with a constant 1 needs none."""
        return self.nodes + int(((self.row_left != self.active) & (self.row_right != self.active)).sum())

    @property
    def nbytes(self) -> int:
        return sum(table.nbytes for table in self.tables().values())

    def tables(self) -> dict[str, np.ndarray]:
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "sizes"}

    @classmethod
    def from_tables(cls, sizes: Sizes, tables: dict[str, np.ndarray]) -> Plan:
        return cls(sizes, **{f.name: tables[f.name] for f in fields(cls) if f.name != "sizes"})


def lower(program: GroundProgram) -> Plan:
    """Lay a ground program out as tables. Rows with more than two factors become chains of nodes."""
    nodes, rows = two_factors(program)
    place = _places(program, len(nodes))
    nodes, rows = place[nodes], common_factor_left(place[rows])
    pair = program.pair_of_row
    key = np.stack([pair, program.power, program.multiplicity], axis=1)
    order = np.lexsort((rows[:, 1], rows[:, 0], program.multiplicity, program.power, pair))
    key = key[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(key, axis=0) != 0).any(axis=1)][: len(order)])
    powers, run_power = np.unique(key[starts, 1], return_inverse=True)
    heads, which = np.unique(program.pair_head, return_inverse=True)
    times = np.zeros(program.pairs, dtype=np.int64)
    np.add.at(times, pair, program.multiplicity)
    return Plan(
        sizes=Sizes(program.G, program.C, program.S, program.L, program.slots, program.active, program.false,
                    program.true),
        slot_of=small(program.slot_of),
        members=small(program.members),
        node_left=small(nodes[:, 0]),
        node_right=small(nodes[:, 1]),
        row_left=small(rows[order, 0]),
        row_right=small(rows[order, 1]),
        run_start=small(np.append(starts, len(order))),
        run_power=small(run_power),
        run_times=key[starts, 2].astype(np.float32),
        powers=small(powers),
        pair_start=small(np.searchsorted(key[starts, 0], np.arange(program.pairs + 1))),
        pair_clause=small(program.pair_clause),
        pair_padding=(program.S - times).astype(np.float32),
        heads=small(heads),
        head_start=small(np.append(0, np.cumsum(np.bincount(which, minlength=len(heads))))),
        head_pairs=small(np.argsort(which, kind="stable")),
        targets=small(program.targets),
        constant=np.where(program.neural, np.nan, program.initial).astype(np.float32),
    )


def common_factor_left(rows: np.ndarray) -> np.ndarray:
    """Put the factor that more rows have on the left, where an engine multiplies it once for all of them."""
    uses = np.bincount(rows.ravel()) if rows.size else np.zeros(1, dtype=np.int64)
    swap = uses[rows[:, 1]] > uses[rows[:, 0]]
    return np.where(swap[:, None], rows[:, ::-1], rows)


def two_factors(program: GroundProgram) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and rows [rows, 2] of a program that `share` may not have run on."""
    nodes, rows = program.nodes.astype(np.int64), -np.sort(-program.factors.astype(np.int64), axis=1)
    while rows.shape[1] > 2:
        wide = rows[:, -1] != NOTHING
        fresh = program.slots + len(nodes) + np.arange(int(wide.sum()))
        nodes = np.concatenate([nodes, rows[wide][:, -2:]])
        rows = rows[:, :-1].copy()
        rows[wide, -1] = fresh
    if rows.shape[1] < 2:
        rows = np.concatenate([rows, np.full((len(rows), 2 - rows.shape[1]), NOTHING)], axis=1)
    return nodes, rows


def _places(program: GroundProgram, nodes: int) -> np.ndarray:
    """Row of X for a slot or node of the ground program; the last entry, for NOTHING, is the constant 1."""
    place = np.arange(program.slots + nodes + 1, dtype=np.int64)
    place[program.slots:] += 1 - (program.slots - program.active)
    place[NOTHING] = program.active
    return place


def small(values: np.ndarray) -> np.ndarray:
    """The same whole numbers in the smallest unsigned type that holds them."""
    largest = int(values.max(initial=0))
    return values.astype(np.min_scalar_type(largest))
