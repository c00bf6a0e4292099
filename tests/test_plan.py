"""The plan's tables, run one value at a time, compute what the ground rows do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nsfrc.compiler import passes
from nsfrc.compiler.ir import PAPER
from nsfrc.compiler.passes import NAMES
from nsfrc.compiler.plan import Plan, lower, small
from nsfrc.compiler.verify import Invalid, verify_ground, verify_plan
from tests import slow
from tests.examples import SHIPPED, SMALL, grounded, random_typed, shipped
from tests.examples import small as small_program


def plan_steps(plan: Plan, V: np.ndarray, steps: int) -> np.ndarray:
    """V [B, G] → [B, G] by the tables as their docstring describes them."""
    slots = V[:, plan.members]
    for _ in range(steps):
        slots = _plan_step(plan, slots)
    return slots[:, plan.slot_of]


def _plan_step(plan: Plan, V: np.ndarray) -> np.ndarray:
    X = [*V.T[: plan.active], np.ones(len(V))]
    for left, right in zip(plan.node_left, plan.node_right, strict=True):
        X.append(X[left] * X[right])
    padding = V[:, plan.false] ** plan.L
    absent = slow.GAMMA * np.log(plan.S) + padding
    C = np.tile(absent[None, :, None], (plan.C, 1, plan.slots))
    values = [_pair(plan, X, V[:, plan.true], padding, pair) for pair in range(len(plan.pair_clause))]
    for head, slot in enumerate(plan.heads):
        for pair in plan.head_pairs[plan.head_start[head]: plan.head_start[head + 1]]:
            C[plan.pair_clause[pair], :, slot] = values[pair]
    R = slow.normalised(slow.softor(np.stack([slow.normalised(c) for c in C]), 0))
    return slow.normalised(slow.softor(np.stack([V, R]), 0))


def _pair(plan: Plan, X: list[np.ndarray], true: np.ndarray, padding: np.ndarray, pair: int) -> np.ndarray:
    values, times = [padding], [float(plan.pair_padding[pair])]
    for run in range(plan.pair_start[pair], plan.pair_start[pair + 1]):
        power = int(plan.powers[plan.run_power[run]])
        for row in range(plan.run_start[run], plan.run_start[run + 1]):
            values.append(X[plan.row_left[row]] * X[plan.row_right[row]] * true**power)
            times.append(float(plan.run_times[run]))
    return slow.softor(np.stack(values), 0, times=np.array(times)[:, None])


@pytest.mark.parametrize("skip", [(), ("share",), ("merge_equal",), ("live", "share"), NAMES])
@pytest.mark.parametrize("name", [*SMALL, *range(8)])
def test_plans_compute_what_the_rows_do(name: str | int, skip: tuple[str, ...]) -> None:
    start = grounded(small_program(name) if isinstance(name, str) else random_typed(name))
    last = [start, *(program for _, program in passes.run(start, PAPER, skip))][-1]
    V = slow.valuation(start)
    assert np.abs(plan_steps(lower(last), V, 3) - slow.row_steps(start, V, 3)).max() <= 1e-12


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_plans_compute_what_the_rows_do(name: str) -> None:
    done = shipped(name)
    V = slow.valuation(done.ground, batch=2)
    assert np.abs(plan_steps(done.plan, V, 2) - slow.row_steps(done.ground, V, 2)).max() <= 1e-12


@pytest.mark.parametrize("name", SHIPPED)
def test_tables_are_small(name: str) -> None:
    plan = shipped(name).plan
    for field, table in plan.tables().items():
        if table.dtype.kind == "u":
            assert table.dtype == np.min_scalar_type(int(table.max(initial=0))), field
    assert plan.nbytes < 64_000


def test_from_tables() -> None:
    plan = shipped("twopairs").plan
    again = Plan.from_tables(plan.sizes, plan.tables())
    assert all(again.tables()[name] is table for name, table in plan.tables().items())


@pytest.mark.parametrize(("largest", "dtype"), [(0, "uint8"), (255, "uint8"), (256, "uint16"), (65536, "uint32")])
def test_smallest_type(largest: int, dtype: str) -> None:
    assert small(np.array([0, largest])).dtype == dtype
    assert small(np.array([], dtype=np.int64)).dtype == "uint8"


def test_a_plan_of_another_program_is_not_legal() -> None:
    with pytest.raises(Invalid, match="another program"):
        verify_plan(shipped("closeby").plan, shipped("twopairs").ground)


@pytest.mark.parametrize(("field", "rule"), [("factors", "factors"), ("pair_head", "heads"), ("slot_of", "slots"),
                                             ("power", "powers"), ("targets", "targets"), ("members", "members")])
def test_a_broken_ground_program_is_not_legal(field: str, rule: str) -> None:
    program = shipped("closeby").ground
    with pytest.raises(Invalid, match=rule):
        verify_ground(replace(program, **{field: getattr(program, field) + 1000}))
