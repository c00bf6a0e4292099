"""Lowering of `anchored` programs: heads in the order of their dependencies, as tables that an engine runs.

One array X holds all values, one row each: 0, 1, the inputs, the heads, the nodes (shared products), the choices
(see `choices`). Blocks are run one after the other. A plain block computes its choices, its nodes, then its heads, each
once, from what earlier blocks left. A recursive block holds components whose members depend on each other: its nodes
and heads are computed again and again, all heads of a round from the values of the round before.

    path(X,Y) :- edge(X,Y).   path(X,Z) :- edge(X,Y), path(Y,Z).   loop(X) :- path(X,Y), path(Y,X).
    block 0  recursive: the atoms of path that lead to one place are a component; as many rounds as it has atoms
    block 1  plain: loop

Components and their atoms are those of the ground program (`GroundProgram.cycle`), not of what passes left of it, so
that no pass changes in how many rounds something is computed.
"""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

import numpy as np

from nsfrc.compiler.choices import Choices
from nsfrc.compiler.graph import components, grouped
from nsfrc.compiler.grounded import NOTHING, GroundProgram, distinct
from nsfrc.compiler.ir import ANCHORED
from nsfrc.compiler.plan import Plan, common_factor_left, lower, small, two_factors
from nsfrc.records import dataclass

ZERO, ONE, FIRST_INPUT = 0, 1, 2  # rows of X
PASSED = -1  # the place of an atom that is not in X: its value is its V0


class LevelSizes(NamedTuple):
    """Ground atoms, clauses; rows of X that are inputs and heads; whether non-neural atoms start as declared."""

    G: int
    C: int
    inputs: int
    heads: int
    declared: bool


@dataclass(frozen=True, eq=False)
class LevelPlan:
    """Tables of a lowered `anchored` program.

    X: rows 0 and 1 are constants, then `inputs`, then `heads` in the order of their blocks, then nodes and choices
    likewise.
    input_atom [inputs]: whose V0 it is.  head_atom [heads]: its atom, or the first of equal ones.
    head_start_value [heads]: V0 of a head where the program declares it; what V0 says counts if not `declared`.
    node_left, node_right [nodes]: rows of X; a node uses earlier nodes only.
    choice_by, choice_no, choice_yes [choices]: rows of X; the choice is no + by·(yes − no), `by` at most 1. It uses
    earlier choices, inputs, and heads of earlier blocks.
    row_left, row_right [rows]: rows of X whose product is a reason for a head; head by head, clause by clause.
    run_start [runs + 1], run_times [runs]: rows of one head and clause that count equally often, and how often.
    pair_start [pairs + 1]: runs of one clause for one head.  pair_clause [pairs].  head_start [heads + 1]: its pairs.
    block_nodes, block_choices, block_heads [blocks + 1]: what a block computes; a recursive one has no choices.
    block_rounds [blocks]: 0 for a plain block, else the rounds that suffice for every chain within a recursive one.
    place [G]: row of X of every atom, or PASSED.  targets [n]: atoms.  constant [G]: starting value, NaN where neural.
    """

    sizes: LevelSizes
    input_atom: np.ndarray
    head_atom: np.ndarray
    head_start_value: np.ndarray
    node_left: np.ndarray
    node_right: np.ndarray
    choice_by: np.ndarray
    choice_no: np.ndarray
    choice_yes: np.ndarray
    row_left: np.ndarray
    row_right: np.ndarray
    run_start: np.ndarray
    run_times: np.ndarray
    pair_start: np.ndarray
    pair_clause: np.ndarray
    head_start: np.ndarray
    block_nodes: np.ndarray
    block_choices: np.ndarray
    block_heads: np.ndarray
    block_rounds: np.ndarray
    place: np.ndarray
    targets: np.ndarray
    constant: np.ndarray

    G = property(lambda self: self.sizes.G)
    C = property(lambda self: self.sizes.C)
    inputs = property(lambda self: self.sizes.inputs)
    heads = property(lambda self: self.sizes.heads)
    declared = property(lambda self: self.sizes.declared)

    @property
    def rows(self) -> int:
        return len(self.row_left)

    @property
    def nodes(self) -> int:
        return len(self.node_left)

    @property
    def choices(self) -> int:
        return len(self.choice_by)

    @property
    def blocks(self) -> int:
        return len(self.block_rounds)

    @property
    def first_head(self) -> int:
        return FIRST_INPUT + self.inputs

    @property
    def first_node(self) -> int:
        return self.first_head + self.heads

    @property
    def first_choice(self) -> int:
        return self.first_node + self.nodes

    @property
    def values(self) -> int:
        """Rows of X."""
        return self.first_choice + self.choices

    @property
    def products(self) -> int:
        """Multiplications of one round; a row with a constant 1 needs none."""
        return self.nodes + int(((self.row_left != ONE) & (self.row_right != ONE)).sum())

    @property
    def rounds(self) -> int:
        """The most rounds that a recursive block takes by itself; 0 where nothing depends on itself."""
        return int(self.block_rounds.max(initial=0))

    @property
    def nbytes(self) -> int:
        return sum(table.nbytes for table in self.tables().values())

    def tables(self) -> dict[str, np.ndarray]:
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "sizes"}

    @classmethod
    def from_tables(cls, sizes: LevelSizes, tables: dict[str, np.ndarray]) -> LevelPlan:
        return cls(sizes, **{f.name: tables[f.name] for f in fields(cls) if f.name != "sizes"})


AnyPlan = Plan | LevelPlan


def lower_as(semantics: str, program: GroundProgram, declared_start: bool = True) -> AnyPlan:
    """The plan of an optimised program. declared_start: non-neural atoms start as the program says."""
    return lower_levels(program, declared_start) if semantics == ANCHORED else lower(program)


def lower_levels(program: GroundProgram, declared: bool) -> LevelPlan:
    """Lay an `anchored` program out as blocks. declared: whether non-neural atoms start as the program says."""
    nodes, rows = two_factors(program)
    order = _Order(program, nodes, rows)
    nodes, rows = order.nodes, order.rows
    heads, node_order = order.head_order, order.node_order
    inputs = order.inputs(declared)
    first_head = FIRST_INPUT + len(inputs)
    place = np.full(program.slots + len(nodes) + 1, PASSED, dtype=np.int64)
    if declared:
        place[: program.slots] = np.where(program.neural[program.members], PASSED,
                                          np.where(program.initial[program.members] > 0, ONE, ZERO))
    place[[program.false, program.true, NOTHING]] = ZERO, ONE, ONE
    place[inputs] = FIRST_INPUT + np.arange(len(inputs))
    place[heads] = first_head + np.arange(len(heads))
    first_node = first_head + len(heads)
    place[program.slots + node_order] = first_node + np.arange(len(node_order))
    choices = Choices(first_node + len(node_order), first_head)
    block_choices = [0]
    for counted in order.counts:
        for head, sources, wanted in counted:
            place[head] = choices.count(place[sources], wanted)
        block_choices.append(len(choices))
    tables = _row_tables(program, place[rows], heads)
    members = program.members[heads]
    return LevelPlan(
        sizes=LevelSizes(program.G, program.C, len(inputs), len(heads), declared),
        input_atom=small(program.members[inputs]),
        head_atom=small(members),
        head_start_value=program.initial[members].astype(np.float32),
        node_left=small(place[nodes[node_order, 0]]),
        node_right=small(place[nodes[node_order, 1]]),
        **choices.tables(),
        **tables,
        block_nodes=small(order.block_nodes),
        block_choices=small(np.array(block_choices)),
        block_heads=small(order.block_heads),
        block_rounds=small(order.block_rounds),
        place=place[program.slot_of].astype(np.int32),
        targets=small(program.targets),
        constant=np.where(program.neural, np.nan, program.initial).astype(np.float32),
    )


def _row_tables(program: GroundProgram, rows: np.ndarray, heads: np.ndarray) -> dict[str, np.ndarray]:
    """Rows by head, clause and multiplicity, and where those begin."""
    rows = common_factor_left(rows)
    rows = np.where((rows[:, 0] == ONE)[:, None], rows[:, ::-1], rows)
    rank = np.empty(program.slots, dtype=np.int64)
    rank[heads] = np.arange(len(heads))
    pair = program.pair_of_row
    head, clause = rank[program.pair_head[pair]], program.pair_clause[pair].astype(np.int64)
    order = np.lexsort((rows[:, 1], rows[:, 0], program.multiplicity, clause, head))
    key = np.stack([head, clause, program.multiplicity], axis=1)[order]
    runs = np.flatnonzero(np.r_[True, (np.diff(key, axis=0) != 0).any(axis=1)][: len(order)])
    pairs = np.flatnonzero(np.r_[True, (np.diff(key[:, :2], axis=0) != 0).any(axis=1)][: len(order)])
    return {
        "row_left": small(rows[order, 0]),
        "row_right": small(rows[order, 1]),
        "run_start": small(np.append(runs, len(order))),
        "run_times": key[runs, 2].astype(np.float32),
        "pair_start": small(np.append(np.searchsorted(runs, pairs), len(runs))),
        "pair_clause": small(key[pairs, 1]),
        "head_start": small(np.searchsorted(key[pairs, 0], np.arange(len(heads) + 1))),
    }


class _Order:
    """In which block every head and node is computed.

    Vertices are slots, then nodes. An input has level 0. A node has the level of its highest factor and is computed at
    the start of the next one, and so is a count; a head comes one level after the highest of its factors. A recursive
    component comes one level after whatever it uses from outside; nodes within it belong to it, with a copy for those
    who use them later.
    """

    def __init__(self, program: GroundProgram, nodes: np.ndarray, rows: np.ndarray) -> None:
        self.program, self.nodes, self.rows = program, nodes, rows
        self.heads = distinct(program.pair_head).astype(np.int64)
        self.head_of_row = program.pair_head[program.pair_of_row].astype(np.int64)
        self.recursive = self._recursive_components()
        self._copy_shared_nodes()
        self.level = self._levels()
        self._blocks()

    def inputs(self, declared: bool) -> np.ndarray:
        """Slots that rows and nodes use, or that are asked for, and that are not computed."""
        program = self.program
        wanted = np.zeros(program.slots + len(self.nodes) + 1, dtype=bool)
        wanted[self.rows] = wanted[self.nodes] = wanted[program.counts.source] = True
        wanted[program.slot_of[program.targets]] = True
        wanted = wanted[: program.slots]
        wanted[self.heads] = wanted[program.counts.head] = wanted[[program.false, program.true]] = False
        if declared:
            wanted &= program.neural[program.members]
        return np.flatnonzero(wanted)

    def _edges(self) -> tuple[np.ndarray, np.ndarray]:
        """From heads and nodes to the factors they are computed from."""
        slots, count = self.program.slots, len(self.nodes)
        sources = np.concatenate([np.repeat(self.head_of_row, self.rows.shape[1]),
                                  np.repeat(slots + np.arange(count), 2)])
        targets = np.concatenate([self.rows.ravel(), self.nodes.ravel()])
        real = targets != NOTHING
        return sources[real], targets[real]

    def _recursive_components(self) -> np.ndarray:
        """The recursive component of every vertex, NOTHING for those that are in none: [slots + nodes].

        A node belongs to a component if it is made of members and members are made of it.
        """
        n = self.program.slots + len(self.nodes)
        cycle = self.program.cycle[self.program.members[self.heads]]
        if (cycle == NOTHING).all():
            return np.full(n, NOTHING, dtype=np.int64)
        # A vertex more for every cycle, to and from each of its heads, holds together what passes cut.
        members, hubs = self.heads[cycle != NOTHING], n + cycle[cycle != NOTHING]
        sources, targets = map(np.concatenate, zip(self._edges(), (members, hubs), (hubs, members), strict=True))
        component = components(*grouped(sources, targets, n + len(self.program.cycle_sizes)))
        number = np.full(len(component), NOTHING, dtype=np.int64)
        number[component[hubs]] = hubs - n
        return number[component[:n]]

    def _copy_shared_nodes(self) -> None:
        """Give those outside a recursive component nodes of their own, made of its final values."""
        slots, count = self.program.slots, len(self.nodes)
        owner = np.append(self.recursive, NOTHING)
        inside = owner[slots:-1] != NOTHING
        if not inside.any():
            return
        foreign_rows, foreign_nodes = (
            (factors >= slots) & (owner[factors] != NOTHING) & (owner[factors] != user[:, None])
            for factors, user in ((self.rows, owner[self.head_of_row]), (self.nodes, owner[slots:-1]))
        )
        wanted = np.zeros(count, dtype=bool)
        wanted[self.rows[foreign_rows] - slots] = wanted[self.nodes[foreign_nodes] - slots] = True
        for number in range(count - 1, -1, -1):  # a node uses earlier ones only
            if wanted[number]:
                below = self.nodes[number][self.nodes[number] >= slots] - slots
                wanted[below[inside[below]]] = True
        copy_of = np.arange(slots + count)
        copy_of[slots + np.flatnonzero(wanted)] = slots + count + np.arange(int(wanted.sum()))
        copies = copy_of[self.nodes[wanted]]
        self.rows = np.where(foreign_rows, copy_of[self.rows], self.rows)
        self.nodes = np.concatenate([np.where(foreign_nodes, copy_of[self.nodes], self.nodes), copies])
        self.recursive = np.append(self.recursive, np.full(len(copies), NOTHING))

    def _levels(self) -> np.ndarray:
        """[slots + nodes]; by going over all edges until nothing changes, which takes as many rounds as levels."""
        slots, counts = self.program.slots, self.program.counts
        level = np.zeros(slots + len(self.nodes), dtype=np.int64)
        sources, targets = self._edges()
        within = (self.recursive[sources] != NOTHING) & (self.recursive[sources] == self.recursive[targets])
        sources, targets = sources[~within], targets[~within]
        step = (sources < slots).astype(np.int64)  # a node waits for its factors, but takes no level of its own
        step = np.append(step, np.zeros(len(counts.source), np.int64))  # nor does a count
        sources, targets = np.append(sources, counts.head_of_source), np.append(targets, counts.source)
        members = np.flatnonzero(self.recursive != NOTHING)
        step[self.recursive[sources] != NOTHING] = 1
        _, group = np.unique(self.recursive[members], return_inverse=True)
        level[self.heads] = 1
        while True:
            reached = level.copy()
            np.maximum.at(reached, sources, level[targets] + step)
            if len(members):
                highest = np.ones(int(group.max()) + 1, dtype=np.int64)
                np.maximum.at(highest, group, reached[members])
                reached[members] = highest[group]
            if (reached == level).all():
                return level
            level = reached

    def _blocks(self) -> None:
        """Plain heads level by level, each level followed by its recursive components, those of one size together."""
        slots, counted = self.program.slots, self.program.counts.head
        rounds = np.append(self.program.cycle_sizes, 0)[self.recursive]  # what is in no component takes none
        # A plain node is computed one level after its factors; a component's own with the component.
        level = self.level.copy()
        level[slots:] += rounds[slots:] == 0
        level[counted] += 1
        keys = np.stack([level, rounds], axis=1)
        computed = np.concatenate([self.heads, slots + np.arange(len(self.nodes)), counted])
        found, block = np.unique(keys[computed], axis=0, return_inverse=True)
        head_block, node_block, count_block = np.split(block.ravel(), np.cumsum([len(self.heads), len(self.nodes)]))
        blocks = np.arange(len(found) + 1)
        self.head_order = self.heads[np.argsort(head_block, kind="stable")]
        depth = _depths(self.nodes, slots)  # a copy may stand after a node that uses it
        self.node_order = np.lexsort((depth, node_block))
        self.block_heads = np.searchsorted(np.sort(head_block), blocks)
        self.block_nodes = np.searchsorted(np.sort(node_block), blocks)
        self.block_rounds = found[:, 1]
        self.counts = [self._in_order(count_block == number) for number in range(len(found))]

    def _in_order(self, which: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """The counts of a block: one that counts another comes after it."""
        counts = self.program.counts.keep(which)
        depth = np.zeros(self.program.slots, dtype=np.int64)
        depth[counts.head] = 1
        while True:
            deeper = depth.copy()
            np.maximum.at(deeper, counts.head_of_source, depth[counts.source] + 1)
            if (deeper == depth).all():
                return sorted(counts, key=lambda one: depth[one[0]])
            depth = deeper


def _depths(nodes: np.ndarray, slots: int) -> np.ndarray:
    """How many nodes lie below each node: [nodes]."""
    depth = np.zeros(len(nodes), dtype=np.int64)
    while True:
        below = np.where(nodes >= slots, depth[np.maximum(nodes - slots, 0)] + 1, 0).max(axis=1, initial=0)
        if (below == depth).all():
            return depth
        depth = below
