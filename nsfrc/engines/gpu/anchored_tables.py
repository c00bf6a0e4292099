"""A level plan in the form the table-driven kernels of `anchored` read, and the layout they are compiled for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nsfrc.compiler.levels import FIRST_INPUT, PASSED, LevelPlan
from nsfrc.engines.gpu.anchored_phases import GROUP, Lists, Phase, Work, work_of
from nsfrc.engines.gpu.anchored_shapes import Shape
from nsfrc.engines.gpu.tables import entries
from nsfrc.kernels.anchored_layout import AnchoredFloats, AnchoredInts, AnchoredLayout, AnchoredRows, AnchoredSizes


@dataclass(frozen=True, eq=False)
class AnchoredTables:
    """ints (int32) and floats (float32) hold all tables end to end; `at` and `of` say where each begins."""

    ints: np.ndarray
    floats: np.ndarray
    at: AnchoredInts
    of: AnchoredFloats
    n: AnchoredSizes
    row: AnchoredRows
    plan: LevelPlan
    soft: bool

    def kept(self, steps: int | None) -> int:
        """Rows of X that the backward pass needs. steps: as in `Run`."""
        rounds = self.plan.block_rounds.astype(np.int64) if steps is None else steps
        return self.row.past + int((_members(self.plan) * (rounds + 1)).sum())

    def layout(self, shape: Shape, warm: bool) -> AnchoredLayout:
        """What kernels are compiled for: these tables and tiles of a shape."""
        plan = self.plan
        return AnchoredLayout(
            tall=shape.tall, few=shape.few, wide=shape.wide, n=self.n, at=self.at, of=self.of, row=self.row,
            first_head=plan.first_head, first_node=plan.first_node, first_pair=plan.values,
            declared=plan.declared, soft=self.soft, recursive=plan.rounds > 0,
            once=self.at.times == self.at.use, warm=warm,  # without a table of it
        )


def pack(plan: LevelPlan, targets_only: bool, soft: bool) -> AnchoredTables:
    """Tables of a plan. soft: for clause weights [M, C]."""
    work = work_of(plan, soft)
    sums, uses, adds = work.sums, work.uses, work.adds
    row = _rows(plan, work, soft)
    ints: dict[str, Any] = {
        **_sum_tables(work.sums),
        "use": entries(uses.column(1), uses.column(0), uses.starts()[:-1], np.diff(uses.starts())),
        "use_of": entries(*(uses.entry(number) for number in (0, 2, 3, 1))), "choice": _choices(plan, work),
        "node": entries(plan.node_left, plan.node_right),
        "input_atom": plan.input_atom, "head_atom": plan.head_atom, **_block_tables(plan, work),
        **_pair_tables(plan, soft), **_output_tables(plan, targets_only, row),
        "add_row": adds.column(0), "add_start": adds.starts(), "add_piece": adds.entry(0),
    }
    floats = {"head_value": plan.head_start_value}
    n = AnchoredSizes(
        atoms=plan.G, clauses=plan.C, inputs=plan.inputs, heads=plan.heads, nodes=plan.nodes,
        choices=plan.choices, pairs=len(plan.pair_clause) if soft else 0, values=work.values, sums=sums.count,
        blocks=len(work.forward), outputs=len(ints["output"]), asked=len(ints["asked_row"]),
    )
    return AnchoredTables(
        ints=_joined(ints, AnchoredInts._fields, np.int32), floats=_joined(floats, AnchoredFloats._fields, np.float32),
        at=AnchoredInts(*_starts(ints, AnchoredInts._fields)),
        of=AnchoredFloats(*_starts(floats, AnchoredFloats._fields)), n=n, row=row, plan=plan, soft=soft,
    )


def _rows(plan: LevelPlan, work: Work, soft: bool) -> AnchoredRows:
    """Give every quantity its rows; what is not needed has none."""
    top = work.values + (plan.heads if plan.rounds else 0)
    statistics = work.sums.count + (plan.heads if soft else 0)
    taken = work.values + work.pieces
    start = taken + plan.nodes + work.sums.count
    return AnchoredRows(
        fresh=work.values, top=top, inverse=top + statistics, past=top + 2 * statistics,
        partial=work.values, taken=taken, start=start, chosen=start + (0 if plan.declared else plan.heads),
    )


def _members(plan: LevelPlan) -> np.ndarray:
    """[blocks]: heads of recursive blocks, 0 for others."""
    return np.where(plan.block_rounds > 0, np.diff(plan.block_heads.astype(np.int64)), 0)


def _block_tables(plan: LevelPlan, work: Work) -> dict[str, Any]:
    members = _members(plan)
    past = members * (plan.block_rounds.astype(np.int64) + 1)
    tables: dict[str, Any] = {
        "block_heads": plan.block_heads, "block_rounds": plan.block_rounds,
        "block_members": np.cumsum(members) - members, "block_past": np.cumsum(past) - past,
    }
    for name, blocks in (("phase", work.forward), ("back", work.backward)):
        phases: list[Phase] = [phase for block in blocks for phase in block]
        tables[name] = np.array([(*phase, 0) for phase in phases], dtype=np.int64).ravel()
        tables[f"block_{name}s"] = np.cumsum([0, *map(len, blocks)])
    return tables


def _choices(plan: LevelPlan, work: Work) -> np.ndarray:
    """Choices in the order of their phases."""
    order = np.concatenate([np.empty(0, np.int64), *work.choices])
    return entries(plan.first_choice + order, plan.choice_by[order], plan.choice_no[order], plan.choice_yes[order])


def _sum_tables(sums: Lists) -> dict[str, Any]:
    """Lists of reasons in groups of GROUP, filled up with reasons of 0; the first group is of nobody, all of it 0."""
    starts = sums.starts()
    groups = -(-np.diff(starts) // GROUP)
    first = 1 + np.cumsum(groups) - groups
    owner = np.repeat(np.arange(sums.count), np.diff(starts))
    place = GROUP * first[owner] + np.arange(len(owner)) - starts[owner]
    tables = {}
    for number, name in enumerate(("left", "right", "times")):
        tables[name] = np.zeros(GROUP * (1 + int(groups.sum())), dtype=np.int64)
        tables[name][place] = sums.entry(number)
    once = bool((sums.entry(2) == 1).all())
    return {"sum": entries(sums.column(0), first, groups, 0), **tables, **({"times": []} if once else {})}


def _pair_tables(plan: LevelPlan, soft: bool) -> dict[str, Any]:
    """Pairs by head and by clause; hard weights need neither."""
    if not soft:
        return {name: [] for name in ("pair_start", "pair_clause", "pair_head", "clause_start", "clause_pair")}
    pairs: np.ndarray = np.diff(plan.head_start.astype(np.int64))
    return {
        "pair_start": plan.head_start, "pair_clause": plan.pair_clause,
        "pair_head": np.repeat(np.arange(plan.heads), pairs),
        "clause_start": np.searchsorted(np.sort(plan.pair_clause), np.arange(plan.C + 1)),
        "clause_pair": np.argsort(plan.pair_clause, kind="stable"),
    }


def _output_tables(plan: LevelPlan, targets_only: bool, row: AnchoredRows) -> dict[str, Any]:
    """Where outputs come from, and gradients of V0."""
    atoms = plan.targets.astype(np.int64) if targets_only else np.arange(plan.G)
    place = plan.place[atoms].astype(np.int64)
    outputs = np.argsort(place, kind="stable")
    outputs = outputs[place[outputs] >= FIRST_INPUT]  # constants have no gradient
    asked, start = np.unique(place[outputs], return_index=True)
    atom_row, atom_output = np.full(plan.G, -1), np.full(plan.G, -1)
    atom_row[plan.input_atom] = FIRST_INPUT + np.arange(plan.inputs)
    if not plan.declared:
        atom_row[plan.head_atom] = row.start + np.arange(plan.heads)
    atom_output[atoms[place == PASSED]] = np.flatnonzero(place == PASSED)
    return {
        "output": np.where(place == PASSED, -1 - atoms, place),
        "asked_row": asked, "asked_start": np.append(start, len(outputs)), "asked": outputs,
        "atom_row": atom_row, "atom_output": atom_output,
    }


def _joined(tables: dict[str, Any], names: tuple[str, ...], dtype: type) -> np.ndarray:
    return np.concatenate([np.asarray(tables[name]).astype(dtype) for name in names])


def _starts(tables: dict[str, Any], names: tuple[str, ...]) -> list[int]:
    return np.cumsum([0, *(len(tables[name]) for name in names[:-1])]).tolist()
