"""Level plans: legal, in order, and the same values whatever passes ran and whatever is asked."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import nsfrc
from nsfrc.compiler import passes
from nsfrc.compiler.levels import LevelPlan
from nsfrc.compiler.verify import verify_ground, verify_levels
from tests.amount import sample
from tests.anchored.plan_runner import run
from tests.anchored.programs import RULES, text
from tests.anchored.support import PASSES, VARIANTS, compiled, mixtures, plan_without, valuations

SOME = tuple((name,) for name in PASSES)
RANDOM = tuple(range(sample(3, 6)))


@pytest.mark.parametrize(("number", "name"), tuple(enumerate([*RULES, *RANDOM])))
def test_all_plans_are_legal_and_agree(number: int, name: str | int) -> None:
    """Whatever is asked and whatever passes are left out: plans give the values that the reference has."""
    program, skips = compiled(name), sample(((), SOME[number % len(SOME)]), ((), PASSES, *SOME))
    V0 = valuations(program, 1, seed=3)
    for hard, steps in ((True, None), (False, None), (True, 1)):
        W = None if hard else mixtures(program, 2).softmax(dim=1).numpy()
        reasoner = program.reasoner("reference", steps=steps, gamma=0.2)
        expected = reasoner.engine(V0, None if hard else mixtures(program, 2).softmax(dim=1), reasoner.run)[0].numpy()
        as_given = hard and program.ground.suffice(steps)
        for declared, targets_only, skip in product((True, False), (True, False), skips):
            plan = plan_without(program, skip, declared, targets_only, as_given)
            verify_levels(plan, program.ground)
            found = run(plan, V0[0].numpy(), 0.2, steps, W)
            atoms = program.ground.targets if targets_only else np.arange(plan.G)
            assert found[atoms] == pytest.approx(expected[atoms], abs=1e-9), (declared, targets_only, skip)


@pytest.mark.parametrize("name", [*RULES, *RANDOM])
def test_passes_keep_ground_programs_legal(name: str | int) -> None:
    program = compiled(name)
    for declared, targets_only, as_given in VARIANTS:
        for _, after in passes.run(program.ground, "anchored", declared_start=declared, targets_only=targets_only,
                                   as_given=as_given):
            verify_ground(after)


def used_by(plan: LevelPlan, head: int) -> list[int]:
    """Rows of X that a head is computed from, nodes and choices spelt out."""
    runs = plan.pair_start[plan.head_start[head]], plan.pair_start[plan.head_start[head + 1]]
    waiting = [int(side[row]) for row in range(plan.run_start[runs[0]], plan.run_start[runs[1]])
               for side in (plan.row_left, plan.row_right)]
    found = []
    while waiting:
        one = waiting.pop()
        if one < plan.first_node:
            found.append(one)
        elif one >= plan.first_choice:
            choice = one - plan.first_choice
            waiting += [int(side[choice]) for side in (plan.choice_by, plan.choice_no, plan.choice_yes)]
        else:
            waiting += [int(plan.node_left[one - plan.first_node]), int(plan.node_right[one - plan.first_node])]
    return found


def block_of(ends: np.ndarray, number: int) -> int:
    return int(np.searchsorted(ends, number, side="right")) - 1


@pytest.mark.parametrize("name", [*RULES, *RANDOM])
def test_blocks_are_in_the_order_of_dependencies(name: str | int) -> None:
    plan = compiled(name).level_plan(declared_start=False, targets_only=False)
    for head in range(plan.heads):
        mine = block_of(plan.block_heads, head)
        for one in used_by(plan, head):
            if one >= plan.first_head:
                theirs = block_of(plan.block_heads, one - plan.first_head)
                assert theirs < mine or (theirs == mine and plan.block_rounds[mine] > 0)


def test_levels_are_as_few_as_they_can_be() -> None:
    plan = compiled("levels").lowered
    assert plan.block_rounds.tolist() == [0] * 5  # a, b, c, d, kp
    assert plan.rounds == 0


def test_rounds_are_the_atoms_of_a_component() -> None:
    program = compiled("paths")
    for key in VARIANTS:
        plan = program.level_plan(*key)
        # The paths to one place depend on each other: three components of two atoms, in one block.
        heads = np.diff(plan.block_heads)
        assert plan.block_rounds[heads > 0].tolist() == [2, 0]
        assert heads[heads > 0].tolist() == [6, 1]


def test_recursion_without_a_cycle_needs_no_rounds() -> None:
    program = nsfrc.compile(source="""
        :- type(number, 0..5). :- type(object, slots(1)). :- neural(start(number)). :- neural(go(number)).
        :- target(count(5)).
        count(N) :- start(N).
        count(N) :- count(M), go(N), N is M + 1.
    """)
    for key in VARIANTS:
        assert program.level_plan(*key).rounds == 0
    assert program.lowered.blocks == 6


def products(plan: LevelPlan, block: int) -> list[tuple[int, int]]:
    nodes = range(plan.block_nodes[block], plan.block_nodes[block + 1])
    return [(int(plan.node_left[node]), int(plan.node_right[node])) for node in nodes]


def test_products_that_a_recursive_block_shares_are_copied() -> None:
    """Those of the last round are made of the round before; who comes later needs the final values."""
    plan = compiled("products shared with what is recursive").lowered
    recursive = [block for block in range(plan.blocks) if plan.block_rounds[block]]
    assert len(recursive) == 1
    inside = set(products(plan, recursive[0]))
    later = {pair for block in range(recursive[0] + 1, plan.blocks) for pair in products(plan, block)}
    assert inside & later
    nodes = plan.first_node + np.arange(plan.block_nodes[recursive[0]], plan.block_nodes[recursive[0] + 1])
    for head in range(plan.block_heads[recursive[0] + 1], plan.heads):
        rows = slice(plan.run_start[plan.pair_start[plan.head_start[head]]],
                     plan.run_start[plan.pair_start[plan.head_start[head + 1]]])
        assert not np.isin(plan.row_left[rows], nodes).any() and not np.isin(plan.row_right[rows], nodes).any()


def test_equal_atoms_are_computed_once() -> None:
    program = compiled("two orders of one pair")
    assert (program.lowered.heads, plan_without(program, ("merge_equal",)).heads) == (4, 7)
    assert program.level_plan(declared_start=False, targets_only=True).heads == 7  # V0 may tell them apart
    assert program.level_plan(declared_start=True, targets_only=False).place[program.index("pair(obj2,obj1)")] == (
        program.level_plan(declared_start=True, targets_only=False).place[program.index("pair(obj1,obj2)")])


def test_merging_within_a_cycle_leaves_its_rounds() -> None:
    program = nsfrc.compile(source="""
        :- type(object, slots(3)). :- type(color, [red, green, blue]).
        :- neural(lit(object)). :- pred(on(color)). :- target(on(red)).
        on(_C) :- lit(_O).
        on(_C) :- lit(_O), on(_D).
    """)
    assert program.ground.rounds == 3
    assert (program.lowered.heads, program.lowered.rounds) == (1, 3)


def test_what_follows_from_facts_is_settled() -> None:
    program = compiled("what follows from facts")
    plan = program.lowered
    assert plan.place[program.index("small(2)")] == 1 and plan.place[program.index("small(4)")] == 0
    assert plan.heads == 1 and plan.products == 6  # kp(img), from an object and one of two sizes
    # Clause weights count reasons less than once, so that nothing is sure that a clause derives.
    soft = program.level_plan(declared_start=True, targets_only=True)
    assert soft.place[program.index("small(2)")] >= soft.first_head


def test_facts_may_cut_a_cycle() -> None:
    program = compiled("paths along facts")
    assert program.ground.rounds > 0
    assert program.lowered.rounds == 0
    assert program.level_plan(declared_start=True, targets_only=True).rounds == program.ground.rounds
    assert program.level_plan(declared_start=False, targets_only=True).rounds == program.ground.rounds


def test_a_cycle_of_which_something_is_left_keeps_its_rounds() -> None:
    program = compiled("facts that cut half of a cycle")
    assert program.ground.rounds == program.lowered.rounds == 5


def test_few_steps_take_a_plan_of_their_own() -> None:
    rules = text("paths along facts")
    program = nsfrc.compile(source=rules + ":- steps(1).")
    assert program.lowered.rounds == program.ground.rounds
    assert program.level_plan(True, True, True).rounds == 0
    assert nsfrc.compile(source=rules + ":- steps(99).").lowered.rounds == 0


def test_a_program_without_anything_to_compute() -> None:
    plan = compiled("nothing but facts").lowered
    assert (plan.rows, plan.heads, plan.blocks) == (0, 0, 0)


def test_plans_are_made_once() -> None:
    program = nsfrc.compile(source=text("a few reasons"))
    assert all(program.level_plan(*key) is program.level_plan(*key) for key in VARIANTS)
    assert program.level_plan(True, True, as_given=True) is program.lowered
