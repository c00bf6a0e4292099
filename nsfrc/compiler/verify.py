"""Legality of ground programs and plans: run between passes in the tests, and on every file loaded.

Kernels trust indices without checking them, so nothing reaches an engine that this has not seen.
"""

from __future__ import annotations

import numpy as np

from nsfrc.compiler.grounded import NOTHING, GroundProgram
from nsfrc.compiler.levels import PASSED, LevelPlan
from nsfrc.compiler.plan import Plan

_LARGEST = 2**31 - 1  # indices are stored in 32 bits


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
    _require(values.shape == (count,) and values.dtype == np.float32, f"{name} have the wrong shape")
    _require(bool((np.isfinite(values) & (values >= least)).all()), f"{name} are out of range")


def verify_ground(program: GroundProgram) -> None:
    """Check shapes, ranges and sums of a ground program; raises Invalid."""
    g, rows, pairs = program.G, program.rows, program.pairs
    _require(program.S >= 1 and program.L >= 1, "S and L must be at least 1")
    for name in ("initial", "neural", "slot_of"):
        _require(getattr(program, name).shape == (g,), f"{name} has the wrong length")
    kinds = program.initial.dtype.kind + program.neural.dtype.kind
    _require(kinds == "fb", "starting values have the wrong kind")
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
    _require(program.cycle.shape == (g,), "cycles have the wrong length")
    _indices(program.cycle, g, "cycles", NOTHING)
    _verify_counts(program)


def _verify_counts(program: GroundProgram) -> None:
    counts = program.counts
    _indices(counts.head, program.active, "heads of counts")
    _indices(counts.source, program.active, "what is counted")
    _require(len(np.unique(counts.head)) == len(counts), "an atom is counted in two ways")
    _require(not np.isin(counts.head, program.pair_head).any(), "an atom has both clauses and a count")
    _require(not program.neural[program.members[counts.head]].any(), "a count is neural")
    _require(counts.start.shape == counts.wanted_start.shape == (len(counts) + 1,), "counts have the wrong length")
    _require(bool((np.diff(counts.start) >= 0).all()) and int(counts.start[-1]) == len(counts.source),
             "what is counted does not add up")
    _require(bool((np.diff(counts.wanted_start) > 0).all()) and int(counts.wanted_start[-1]) == len(counts.wanted),
             "what counts want does not add up")


def verify_plan(plan: Plan, program: GroundProgram) -> None:
    """Check a plan's tables against each other and against the program it is for; raises Invalid."""
    _verify_slots(plan, program)
    _verify_products(plan)
    _verify_pairs(plan)
    _indices(plan.targets, plan.G, "targets")
    _require(bool(np.array_equal(plan.targets, program.targets)), "the plan has other targets")
    _require(bool((plan.slot_of[plan.targets] < plan.active).all()), "a target is not computed")


def _verify_slots(plan: Plan, program: GroundProgram) -> None:
    _require(all(type(size) is int and 0 <= size <= _LARGEST for size in plan.sizes), "sizes are out of range")
    expected = (program.G, program.C, program.S, program.L)
    _require(expected == (plan.G, plan.C, plan.S, plan.L), "the plan is for another program")
    _require(plan.slot_of.shape == plan.constant.shape == (plan.G,), "atoms have the wrong length")
    _require(plan.members.shape == (plan.slots,), "members have the wrong length")
    _require(0 < plan.active <= plan.slots, "more active slots than slots")
    _indices(plan.slot_of, plan.slots, "slots")
    _indices(plan.members, plan.G, "members")
    _require(bool((plan.slot_of[plan.members] == np.arange(plan.slots)).all()), "members are not in their slots")
    expected_constant = np.where(program.neural, np.nan, program.initial)
    _require(plan.constant.dtype == np.float32, "starting values are not fractions of 32 bits")
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


def verify_levels(plan: LevelPlan, program: GroundProgram) -> None:
    """Check the tables of an `anchored` plan against each other and against its program; raises Invalid."""
    _require(all(isinstance(size, int) and 0 <= size <= _LARGEST for size in plan.sizes), "sizes are out of range")
    _require(isinstance(plan.declared, bool), "it is not clear how atoms start")
    _require((plan.G, plan.C) == (program.G, program.C), "the plan is for another program")
    _require(plan.input_atom.shape == (plan.inputs,) and plan.head_atom.shape == (plan.heads,), "atoms are missing")
    _indices(plan.input_atom, plan.G, "inputs")
    _indices(plan.head_atom, plan.G, "heads")
    _require(not program.neural[plan.head_atom].any(), "a head is neural")
    _require(bool(program.neural[plan.input_atom].all()) or not plan.declared, "an input is not neural")
    _counts(plan.head_start_value, plan.heads, 0, "starting values of heads")
    _require(bool((plan.head_start_value <= 1).all()), "starting values of heads are out of range")
    expected = np.where(program.neural, np.nan, program.initial)
    _require(plan.constant.dtype == np.float32 and plan.constant.shape == (plan.G,), "starting values are missing")
    known = np.isnan(plan.constant) == np.isnan(expected)  # what follows from facts alone counts as a fact
    _require(bool(known.all()) and bool((np.nan_to_num(plan.constant) >= np.nan_to_num(expected)).all())
             and bool(np.isin(plan.constant[~program.neural], (0, 1)).all()), "the plan starts elsewhere")
    _require(bool(np.array_equal(plan.targets, program.targets)), "the plan has other targets")
    _require(plan.place.shape == (plan.G,), "places have the wrong length")
    _indices(plan.place, plan.values, "places", PASSED)
    _require(not ((plan.place >= plan.first_node) & (plan.place < plan.first_choice)).any(), "an atom is a product")
    _indices(plan.targets, plan.G, "targets")
    _require(bool((plan.place[plan.targets] != PASSED).all()), "a target is not computed")
    _verify_blocks(plan)
    _verify_rounds(plan, program)
    _verify_reasons(plan, program)


def _verify_blocks(plan: LevelPlan) -> None:
    """What is computed uses only what is there: earlier blocks, and, in a recursive block, the round before."""
    blocks = plan.blocks
    for name, ends, total in (("nodes", plan.block_nodes, plan.nodes), ("choices", plan.block_choices, plan.choices),
                              ("heads", plan.block_heads, plan.heads)):
        _require(ends.shape == (blocks + 1,), f"blocks of {name} have the wrong length")
        _indices(ends, total + 1, f"blocks of {name}")
        steps = np.diff(ends.astype(np.int64))
        _require(int(ends[0]) == 0 and int(ends[-1]) == total and bool((steps >= 0).all()),
                 f"blocks of {name} do not add up")
    _indices(plan.block_rounds, _LARGEST, "rounds")
    _require(plan.node_left.shape == plan.node_right.shape == (plan.nodes,), "nodes have the wrong length")
    head_block, node_block, choice_block = (
        np.searchsorted(ends, np.arange(total), side="right") - 1
        for ends, total in ((plan.block_heads, plan.heads), (plan.block_nodes, plan.nodes),
                            (plan.block_choices, plan.choices))
    )
    block = np.concatenate([np.full(plan.first_head, -1), head_block, node_block, choice_block])
    recursive = plan.block_rounds > 0
    _verify_choices(plan, block, choice_block, recursive)
    places = plan.first_node + np.arange(plan.nodes)
    for side in (plan.node_left, plan.node_right):
        _indices(side, plan.values, "factors of nodes")
        _require(bool(((side < places) | (side >= plan.first_choice)).all()), "a node uses a later node")
        _in_time(block[side], node_block, recursive, side >= plan.first_node)
    row_head = np.repeat(head_block, _rows_of_heads(plan)) if plan.rows else head_block[:0]
    for side in (plan.row_left, plan.row_right):
        _require(side.shape == (plan.rows,), "rows have the wrong length")
        _indices(side, plan.values, "factors of rows")
        _in_time(block[side], row_head, recursive, side >= plan.first_node)


def _verify_choices(plan: LevelPlan, block: np.ndarray, own: np.ndarray, recursive: np.ndarray) -> None:
    """A choice looks at finished values: inputs, heads of earlier blocks, and earlier choices."""
    _require(not recursive[own].any(), "a recursive block has choices")
    places = plan.first_choice + np.arange(plan.choices)
    for side in (plan.choice_by, plan.choice_no, plan.choice_yes):
        _require(side.shape == (plan.choices,), "choices have the wrong length")
        _indices(side, plan.values, "values of choices")
        is_head, is_choice = side < plan.first_node, side >= plan.first_choice
        in_time = np.where(is_head, block[side] < own, is_choice & (side < places))
        _require(bool(in_time.all()), "a choice uses what is not computed yet")


def _verify_rounds(plan: LevelPlan, program: GroundProgram) -> None:
    """A head takes as many rounds as its cycle has atoms, or none where the facts cut it."""
    rounds = plan.block_rounds[np.searchsorted(plan.block_heads, np.arange(plan.heads), side="right") - 1]
    expected = np.append(program.cycle_sizes, 0)[program.cycle[plan.head_atom]]
    fits = (rounds == expected) | ((rounds == 0) & plan.declared)
    _require(bool(fits.all()), "rounds are not those of the program")


def _in_time(used: np.ndarray, user: np.ndarray, recursive: np.ndarray, is_node: np.ndarray) -> None:
    """used, user: blocks. Of its own block a user may use nodes, and heads where it is recursive."""
    own = (used == user) & (is_node | recursive[user])
    # A recursive block's nodes hold the round before the last, so that nobody else may use them.
    stale = is_node & (used >= 0) & recursive[used] & (used != user)
    _require(bool((((used < user) | own) & ~stale).all()), "something is used before it is computed")


def _rows_of_heads(plan: LevelPlan) -> np.ndarray:
    """How many rows each head has."""
    pairs, runs = len(plan.pair_clause), len(plan.run_times)
    _starts(plan.run_start, runs, plan.rows, "runs")
    _starts(plan.pair_start, pairs, runs, "pairs")
    _starts(plan.head_start, plan.heads, pairs, "heads")
    return np.diff(plan.run_start.astype(np.int64)[plan.pair_start][plan.head_start])


def _verify_reasons(plan: LevelPlan, program: GroundProgram) -> None:
    _rows_of_heads(plan)
    _counts(plan.run_times, len(plan.run_times), 1, "multiplicities")
    _indices(plan.pair_clause, plan.C, "clauses of pairs")
    if len(plan.pair_clause):
        by_run = plan.run_times.astype(np.float64) * np.diff(plan.run_start.astype(np.int64))
        total = np.add.reduceat(by_run, plan.pair_start[:-1].astype(np.int64))
        _require(bool((total <= program.S * (1 + 1e-5)).all()), "a head has more than S substitutions")
