"""The least time a processor could take: the plan's exponentials, logarithms and products at full throughput."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import njit

from nsfrc.benchmarks.measure import timed
from nsfrc.engines.cpu.maths import KERNEL, exp2, log2
from nsfrc.program import Program


@dataclass(frozen=True)
class Throughput:
    """Nanoseconds per lane of the engine's own exp2, log2 and a multiplication, on arrays in the first cache."""

    exp: float
    log: float
    mul: float


@njit(**KERNEL)
def _exps(x, y):
    for i in range(len(x)):
        y[i] = exp2(x[i])


@njit(**KERNEL)
def _logs(x, y):
    for i in range(len(x)):
        y[i] = log2(x[i])


@njit(**KERNEL)
def _muls(x, y):
    for i in range(len(x)):
        y[i] = x[i] * x[i]


@njit
def _repeat(which, x, y, times):
    for _ in range(times):
        if which == 0:
            _exps(x, y)
        elif which == 1:
            _logs(x, y)
        else:
            _muls(x, y)


def throughput() -> Throughput:
    x = np.random.default_rng(0).random(1024, dtype=np.float32) + np.float32(0.5)
    y = x.copy()
    _repeat(0, x, y, 1)  # compiles
    times = [timed(partial(_repeat, which, x, y, 100), 0.05).median for which in range(3)]
    return Throughput(*(seconds / 100 / len(x) * 1e9 for seconds in times))


@dataclass(frozen=True)
class Work:
    """What one example of a batch cannot do without."""

    exps: int
    logs: int
    products: int


def _of_steps(program: Program) -> Work:
    """Of `paper`: all steps."""
    plan = program.plan
    pairs, heads = len(plan.pair_clause), len(plan.heads)
    exps = plan.rows + 2 * pairs + heads + plan.C + plan.active
    return Work(exps * program.steps, (pairs + heads + 1 + plan.active) * program.steps, plan.products * program.steps)


def _of_levels(program: Program) -> Work:
    """Of `anchored`, for targets and clauses as given; of what is computed in rounds, one.

    A head with one reason alone is that product. Any other has an exponential for each reason and for a reason of 0,
    and a logarithm; V0, where it is more than 0, is a reason too.
    """
    plan = program.level_plan(declared_start=True, targets_only=True, as_given=True)
    first = plan.run_start[plan.pair_start[plan.head_start]]
    rows, anchored = np.diff(first.astype(np.int64)), plan.head_start_value > 0
    alone = (rows == 1) & ~anchored
    alone[alone] = plan.run_times[plan.pair_start[plan.head_start[:-1]][alone]] == 1
    sums = int((~alone).sum())
    return Work(int((rows + anchored)[~alone].sum()) + sums, sums, plan.products + plan.choices)


def bounds(program: Program, batch: int, speed: Throughput) -> tuple[float, float]:
    """Seconds that all exponentials, logarithms and products alone would take in one thread; and the exps only."""
    work = _of_levels(program) if program.anchored else _of_steps(program)
    exps = work.exps * speed.exp
    return (exps + work.logs * speed.log + work.products * speed.mul) * batch * 1e-9, exps * batch * 1e-9
