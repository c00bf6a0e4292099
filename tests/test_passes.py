"""Every pass keeps every value: checked by slow reasoning on the rows before and after it."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import fields
from functools import cache

import numpy as np
import pytest

from nsfrc.compiler import ir, passes
from nsfrc.compiler.grounded import NOTHING, GroundProgram
from nsfrc.compiler.passes import PIPELINES
from nsfrc.compiler.passes.greedy import MOST_FACTORS, Products
from nsfrc.compiler.plan import lower
from nsfrc.compiler.verify import verify_ground, verify_plan
from nsfrc.errors import NsfrcError
from tests import slow
from tests.amount import sample
from tests.examples import SHIPPED, SMALL, grounded, random_typed, shipped, small

# Rows after multiset and after value numbering, products of the last stage: at most these.
LIMITS = {
    "twopairs": (168, 78, 114),
    "threepairs": (720, 225, 344),
    "nine_circles": (253, 253, 332),
    "red_triangle": (390, 210, 330),
    "online_pair": (240, 180, 256),
    "clevr_hans7": (5913, 5913, 7272),
}
TOLERANCE = 1e-12
PIPELINE = PIPELINES[ir.PAPER]
NAMES = tuple(one.name for one in PIPELINE)
RANDOM = tuple(f"random {seed}" for seed in range(sample(16, 40)))


@cache
def checked(name: str) -> ir.Program:
    if name in SHIPPED:
        return shipped(name).program
    return small(name) if name in SMALL else random_typed(int(name.split()[1]))


@cache
def start(name: str) -> GroundProgram:
    return grounded(checked(name))


@cache
def stages(name: str, skip: frozenset[str] = frozenset()) -> dict[str, GroundProgram]:
    """The program after each pass, by the pass's name."""
    return {"ground": start(name), **dict(passes.run(start(name), ir.PAPER, skip))}


def assert_same_values(before: GroundProgram, after: GroundProgram, steps: int = 3) -> None:
    V = slow.valuation(before)
    difference = np.abs(slow.row_steps(before, V, steps) - slow.row_steps(after, V, steps))
    assert difference.max() <= TOLERANCE


def test_the_passes() -> None:
    assert NAMES == ("live", "multiset", "merge_equal", "needed", "share")
    assert set(passes.NAMES) == {one.name for pipeline in PIPELINES.values() for one in pipeline}


@pytest.mark.parametrize("name", [*SMALL, *RANDOM, "twopairs", "closeby", "red_triangle"])
def test_grounding_computes_what_the_index_tensor_does(name: str) -> None:
    V = slow.valuation(start(name))
    wanted = slow.dense_steps(slow.index_tensor(checked(name)), V, 3)
    assert np.abs(slow.row_steps(start(name), V, 3) - wanted).max() <= TOLERANCE


@pytest.mark.parametrize("name", [*SMALL, *RANDOM])
def test_every_pass_keeps_every_value(name: str) -> None:
    found = list(stages(name).values())
    for before, after in itertools.pairwise(found):
        verify_ground(after)
        assert_same_values(before, after)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_pass_keeps_every_value_of_shipped_programs(name: str) -> None:
    found = list(stages(name).values())
    V = slow.valuation(found[0], batch=2)
    steps = 1 if name == "clevr_hans7" else 2
    results = [slow.row_steps(program, V, steps) for program in found]
    for program, result in zip(found, results, strict=True):
        verify_ground(program)
        assert np.abs(result - results[0]).max() <= TOLERANCE


@pytest.mark.parametrize("name", [*SMALL, *RANDOM[:8], "twopairs"])
@pytest.mark.parametrize("skipped", NAMES)
def test_every_pass_can_be_left_out(name: str, skipped: str) -> None:
    found = stages(name, frozenset([skipped]))
    assert list(found) == ["ground", *(n for n in NAMES if n != skipped)]
    last = found[list(found)[-1]]
    verify_ground(last)
    verify_plan(lower(last), stages(name)["live"])
    assert_same_values(start(name), last)


@pytest.mark.parametrize("name", [*list(SMALL)[:4], *RANDOM[:4]])
def test_every_pass_alone(name: str) -> None:
    for one in PIPELINE:
        after = one.run(start(name))
        verify_ground(after)
        verify_plan(lower(after), stages(name)["live"])
        assert_same_values(start(name), after)
        assert stages(name, frozenset(NAMES) - {one.name})[one.name].rows == after.rows


@pytest.mark.parametrize("name", SHIPPED)
def test_plans_of_shipped_programs_are_legal(name: str) -> None:
    plan = lower(stages(name)["share"])
    verify_plan(plan, stages(name)["live"])
    assert plan.rows == stages(name)["share"].rows
    assert plan.products == stages(name)["share"].products


@pytest.mark.parametrize("name", LIMITS)
def test_rows_and_products(name: str) -> None:
    multiset, number, products = LIMITS[name]
    found = stages(name)
    assert found["multiset"].rows <= multiset
    assert found["merge_equal"].rows <= number
    assert found["share"].rows <= number
    assert found["share"].products <= products


@pytest.mark.parametrize("name", [*SHIPPED, *SMALL, *RANDOM[:10]])
def test_no_pass_makes_anything_larger(name: str) -> None:
    found = list(stages(name).values())
    for before, after in itertools.pairwise(found):
        assert after.rows <= before.rows
        assert after.active <= before.active
        assert after.products <= before.products


@pytest.mark.parametrize("name", ["twopairs", "recursion", "filters", "several clauses, one head", *RANDOM[:6]])
def test_passes_are_pure(name: str) -> None:
    program = start(name)
    for rewrite in (one.run for one in PIPELINE):
        arrays = {f.name: getattr(program, f.name) for f in fields(program)
                  if isinstance(getattr(program, f.name), np.ndarray)}
        copies = {field: array.copy() for field, array in arrays.items()}
        writable = {field: array.flags.writeable for field, array in arrays.items()}
        for array in arrays.values():
            array.setflags(write=False)
        after = rewrite(program)
        again = rewrite(program)
        for field, array in arrays.items():
            assert (array == copies[field]).all()
            assert (getattr(after, field) == getattr(again, field)).all()
            if writable[field]:
                array.setflags(write=True)
        program = after


@pytest.mark.parametrize("name", [*SMALL, *RANDOM[:10]])
def test_running_a_pass_again_changes_nothing(name: str) -> None:
    found = stages(name)
    for one in PIPELINE:
        if one.name == "share":  # which ends with two factors a row, and has nothing to start from
            continue
        once = found[one.name]
        twice = one.run(once)
        assert (twice.rows, twice.slots, twice.active) == (once.rows, once.slots, once.active)


def test_live_keeps_heads_only() -> None:
    names = start("twopairs").herbrand.names()
    live = stages("twopairs")["live"]
    heads = {names[g].split("(")[0] for g in live.pair_head}
    assert heads == {"kp", "same_shape_pair", "same_color_pair", "diff_color_pair"}
    assert live.pairs == 1 + 3 * 12


def test_multiset_counts_equal_rows() -> None:
    program = stages("nine_circles")["multiset"]
    assert set(program.multiplicity.tolist()) == {1, 6}


def test_number_merges_symmetric_heads_and_facts() -> None:
    program = stages("twopairs")["merge_equal"]
    slot = dict(zip(program.herbrand.names(), program.slot_of.tolist(), strict=True))
    assert slot["same_shape_pair(obj1,obj2)"] == slot["same_shape_pair(obj2,obj1)"]
    assert slot["same_shape_pair(obj1,obj2)"] != slot["same_shape_pair(obj1,obj3)"]
    assert slot["diff_color(red,blue)"] == slot["true"]
    assert slot["color(obj1,red)"] != slot["color(obj2,red)"]


def test_number_keeps_apart_what_starts_differently() -> None:
    program = stages("a derived fact")["merge_equal"]
    slot = dict(zip(program.herbrand.names(), program.slot_of.tolist(), strict=True))
    assert len({slot["good(red)"], slot["good(blue)"], slot["true"], slot["false"]}) == 4


def test_absent_facts_move_with_false() -> None:
    program = stages("background and absent facts")["merge_equal"]
    slot = dict(zip(program.herbrand.names(), program.slot_of.tolist(), strict=True))
    assert slot["likes(blue,1)"] == slot["false"] != slot["likes(blue,3)"] == slot["true"]


def test_goal_puts_what_is_not_needed_last() -> None:
    program = stages("clevr_hans3")["needed"]
    names = program.herbrand.names()
    passive = {names[program.members[s]] for s in range(program.active, program.slots)}
    assert "color(obj1,gray)" in passive
    assert not any(name.startswith(("in(", "kp", "shape(")) for name in passive)


def test_unknown_passes_are_refused() -> None:
    with pytest.raises(NsfrcError, match="no pass called 'shares': did you mean share"):
        list(passes.run(start("recursion"), ir.PAPER, ["shares"]))
    with pytest.raises(NsfrcError, match="the passes are live, multiset"):
        list(passes.run(start("recursion"), ir.PAPER, ["xyzzy"]))


def test_long_bodies_are_halved_before_their_pairs_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    counted = Products._share
    monkeypatch.setattr(Products, "_share", lambda self, rows: seen.append(rows.shape[1]) or counted(self, rows))
    products = Products(1000)
    rows = np.stack([np.arange(900), np.arange(900) + 50]).astype(np.int64)
    assert products.shrink(rows).shape == (2, 2)
    assert max(seen) <= MOST_FACTORS
    assert len(products.nodes()) < 2 * 899  # equal stretches share


def shrunk_slowly(rows: list[list[int]], slots: int) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """Rows of two factors and the nodes: all pairs counted anew in every round, which replaces each row's first choice
    where that is the first choice of all rows with the pair."""
    nodes: list[tuple[int, int]] = []
    while True:
        pairs = [list(itertools.combinations(sorted(row), 2)) if len(row) > 2 else [] for row in rows]
        count = Counter(pair for of_row in pairs for pair in of_row)
        choice = [min(of_row, key=lambda pair: (-count[pair], pair)) if of_row else None for of_row in pairs]
        wins = {pair for pair in choice if pair and all(mine == pair for mine, of_row in zip(choice, pairs, strict=True)
                                                        if pair in of_row)}
        nodes += sorted(wins - set(nodes))
        if not wins:
            return rows, nodes
        for row, pair in zip(rows, choice, strict=True):
            if pair in wins:
                row.remove(pair[0])
                row.remove(pair[1])
                row.append(slots + nodes.index(pair))


@pytest.mark.parametrize("seed", range(sample(20, 200)))
def test_common_pairs_are_those_of_counting_anew_in_every_round(seed: int) -> None:
    rng = np.random.default_rng(seed)
    slots, width = int(rng.integers(3, 12)), int(rng.integers(3, 8))
    rows = rng.integers(-1, slots, (int(rng.integers(1, 60)), width))  # factors that repeat, and places that are empty
    products = Products(slots)
    found = products.shrink(rows)
    wanted, nodes = shrunk_slowly([[int(f) for f in row if f != NOTHING] for row in rows], slots)
    assert products.nodes().tolist() == [list(node) for node in nodes]
    assert [sorted(int(f) for f in row if f != NOTHING) for row in found] == [sorted(row) for row in wanted]
