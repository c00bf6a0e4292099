"""Legality of ground programs and plans: run between passes in the tests, and on every file loaded.

Kernels trust indices without checking them, so nothing reaches an engine that this has not seen.
"""

from __future__ import annotations

import numpy as np

from nsfrc.grounded import NOTHING, GroundProgram
from nsfrc.plan import Plan


class Invalid(Exception):
    """A table breaks a rule; the message names it."""


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise Invalid(rule)


def _indices(values: np.ndarray, limit: int, name: str, least: int = 0, dimensions: int = 1) -> None:
    _require(values.ndim == dimensions, f"{name} have the wrong shape")
    _require(values.dtype.kind in "iu", f"{name} are not whole numbers")
    if values.size:
        _require(least <= int(values.min()) and int(values.max()) < limit, f"{name} are out of range")


def _starts(values: np.ndarray, count: int, total: int, name: str) -> None:
    """Start offsets of `count` consecutive, non-empty ranges that cover `total` things."""
    _require(values.shape == (count + 1,), f"{name} have the wrong length")
    _indices(values, total + 1, name)
    steps = np.diff(values.astype(np.int64))
    _require(int(values[0]) == 0 and int(values[-1]) == total and bool((steps > 0).all()), f"{name} do not add up")


def _counts(values: np.ndarray, count: int, least: int, name: str) -> None:
    """How often something counts: finite numbers stored as fractions, because engines multiply by them."""
    _require(values.shape == (count,) and values.dtype.kind == "f", f"{name} have the wrong shape")
    _require(bool((np.isfinite(values) & (values >= least)).all()), f"{name} are out of range")


def verify_ground(program: GroundProgram) -> None:
    """Check shapes, ranges and sums of a ground program; raises Invalid."""
    g, rows, pairs = program.G, program.rows, program.pairs
    _require(program.S >= 1 and program.L >= 1, "S and L must be at least 1")
    for name in ("initial", "neural", "slot_of"):
        _require(getattr(program, name).shape == (g,), f"{name} has the wrong length")
    kinds = program.initial.dtype.kind + program.neural.dtype.kind
    _require(kinds == "fb", "starting values are of another kind")
    _require(bool(np.isin(program.initial, (0, 1)).all()), "a starting value is neither 0 nor 1")
    _require(program.initial[0] == 0 and program.initial[1] == 1, "false must start at 0 and true at 1")
    _indices(program.slot_of, program.slots, "slots")
    _indices(program.members, g, "members")
    own = program.slot_of[program.members] == np.arange(program.slots)
    _require(bool(own.all()), "members are not in their slots")
    _require(program.pair_clause.shape == program.pair_head.shape == (pairs,), "pairs have the wrong length")
    _indices(program.pair_clause, program.C, "clauses of pairs")
    _indices(program.pair_head, program.slots, "heads of pairs")
    _require(bool((np.diff(program.pair_clause) >= 0).all()), "pairs are not in clause order")
    code = program.pair_clause.astype(np.int64) * program.slots + program.pair_head
    _require(len(np.unique(code)) == pairs, "a clause has the same head twice")
    _starts(program.pair_start, pairs, rows, "row ranges")
    _indices(program.factors, program.slots + len(program.nodes), "factors", NOTHING, dimensions=2)
    _require(len(program.factors) == rows, "factors have the wrong shape")
    _require(program.power.shape == program.multiplicity.shape == (rows,), "rows have the wrong length")
    _indices(program.power, program.L + 1, "powers")
    _require(bool((program.multiplicity > 0).all()), "a row counts less than once")
    _require(program.components.shape == (program.C, program.L), "components have the wrong shape")
    _indices(program.components, program.L, "components", dimensions=2)
    _indices(program.targets, g, "targets")
    limit = program.slots + np.arange(len(program.nodes))
    _require(bool((program.nodes < limit[:, None]).all() and (program.nodes >= 0).all()), "a node uses a later node")
    times = np.zeros(pairs, dtype=np.int64)
    np.add.at(times, program.pair_of_row, program.multiplicity)
    _require(bool((times <= program.S).all()), "a head has more than S substitutions")
    _require(program.active <= program.slots, "more active slots than slots")
    used = program.factors[(program.factors != NOTHING) & (program.factors < program.slots)]
    _indices(used, program.active, "factors among the active slots")
    _indices(program.pair_head, program.active, "heads among the active slots")


def verify_plan(plan: Plan, program: GroundProgram) -> None:
    """Check a plan's tables against each other and against the program it is for; raises Invalid."""
    _verify_slots(plan, program)
    _verify_products(plan)
    _verify_pairs(plan)
    _indices(plan.targets, plan.G, "targets")
    _require(bool(np.array_equal(plan.targets, program.targets)), "the plan has other targets")
    _require(bool((plan.slot_of[plan.targets] < plan.active).all()), "a target is not computed")


def _verify_slots(plan: Plan, program: GroundProgram) -> None:
    _require(plan.sizes.shape == (9,) and plan.sizes.dtype.kind == "i", "sizes have the wrong shape")
    expected = (program.G, program.C, program.S, program.L)
    _require(expected == (plan.G, plan.C, plan.S, plan.L), "the plan is for another program")
    _require(plan.slot_of.shape == plan.constant.shape == (plan.G,), "atoms have the wrong length")
    _require(plan.members.shape == (plan.slots,), "members have the wrong length")
    _require(0 < plan.active <= plan.slots, "more active slots than slots")
    _indices(plan.slot_of, plan.slots, "slots")
    _indices(plan.members, plan.G, "members")
    _require(bool((plan.slot_of[plan.members] == np.arange(plan.slots)).all()), "members are not in their slots")
    _require(plan.merged == (plan.slots < plan.G), "it is not clear whether slots are merged")
    expected_constant = np.where(program.neural, np.nan, program.initial)
    _require(plan.constant.dtype.kind == "f", "starting values are not fractions")
    _require(bool(np.array_equal(plan.constant, expected_constant, equal_nan=True)), "the plan starts elsewhere")
    _require(plan.slot_of[0] == plan.false < plan.active, "false is not where it should be")
    _require(plan.slot_of[1] == plan.true < plan.active, "true is not where it should be")


def _verify_products(plan: Plan) -> None:
    _require(plan.node_left.shape == plan.node_right.shape == (plan.nodes,), "nodes have the wrong length")
    for side in (plan.node_left, plan.node_right):
        _indices(side, plan.active + 1 + plan.nodes, "factors of nodes")
        _require(bool((side < plan.active + 1 + np.arange(plan.nodes)).all()), "a node uses a later node")
    for side in (plan.row_left, plan.row_right):
        _require(side.shape == (plan.rows,), "rows have the wrong length")
        _indices(side, plan.active + 1 + plan.nodes, "factors of rows")


def _verify_pairs(plan: Plan) -> None:
    runs, pairs, heads = len(plan.run_power), len(plan.pair_clause), len(plan.heads)
    _starts(plan.run_start, runs, plan.rows, "runs")
    _counts(plan.run_times, runs, 1, "multiplicities")
    _indices(plan.run_power, len(plan.powers), "powers of runs")
    _indices(plan.powers, plan.L + 1, "powers")
    _require(bool((np.diff(plan.powers.astype(np.int64)) > 0).all()), "powers are not in order")
    _starts(plan.pair_start, pairs, runs, "pairs")
    _indices(plan.pair_clause, plan.C, "clauses of pairs")
    _require(bool((np.diff(plan.pair_clause.astype(np.int64)) >= 0).all()), "pairs are not in clause order")
    _counts(plan.pair_padding, pairs, 0, "paddings")
    if pairs:
        by_run = plan.run_times.astype(np.float64) * np.diff(plan.run_start.astype(np.int64))
        total = np.add.reduceat(by_run, plan.pair_start[:-1].astype(np.int64)) + plan.pair_padding
        _require(bool(np.allclose(total, plan.S, rtol=1e-5)), "the substitutions of a head do not add up to S")
    _indices(plan.heads, plan.active, "heads")
    _require(bool((np.diff(plan.heads.astype(np.int64)) > 0).all()), "heads are not in order")
    _starts(plan.head_start, heads, pairs, "heads")
    _require(plan.head_pairs.shape == (pairs,), "pairs of heads have the wrong length")
    _indices(plan.head_pairs, pairs, "pairs of heads")
    _require(bool((np.bincount(plan.head_pairs, minlength=pairs) == 1).all()), "pairs of heads do not add up")
