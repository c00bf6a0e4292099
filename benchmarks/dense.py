"""What eager, dense PyTorch moves for the same program: `engines/reference.py`, operation by operation.

Counted in its favour: every tensor is read and written once an operation, the index tensor once a
gather, and memory always gives its full bandwidth. Nothing here is measured.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from nsfrc.benchmarks.a100 import A100, Card
from nsfrc.compiler.plan import Plan
from nsfrc.program import Program

FLOAT, INDEX = 4, 8  # bytes: float32, and int64 as torch indexes with
# Seconds to start an operation from Python: an assumption, on the low side.
EAGER = 5e-6


@dataclass(frozen=True)
class Moved:
    """Bytes read and written, floating point operations, exponentials, and kernels started."""

    read: float = 0
    written: float = 0
    flops: float = 0
    exps: float = 0
    kernels: int = 0

    def __add__(self, other: Moved) -> Moved:
        return Moved(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __mul__(self, times: int) -> Moved:
        return Moved(*(getattr(self, f.name) * times for f in fields(self)))

    @property
    def bytes(self) -> float:
        return self.read + self.written


def op(read: float, written: float, flops: float = 0, exps: float = 0) -> Moved:
    """An operation, by float32 values read and written."""
    return Moved(FLOAT * read, FLOAT * written, flops, exps, 1)


def gathered_gb(program: Program, batch: int) -> float:
    """The largest tensor: the values of one clause's bodies, [B, G, S, L]."""
    ground = program.ground
    return batch * ground.G * ground.S * ground.L * FLOAT / 1e9


def gather(plan: Plan, batch: int) -> Moved:
    """V[:, I[c]]: V [B, G] and the index tensor [G, S, L] → [B, G, S, L]."""
    cells = plan.G * plan.S * plan.L
    return op(batch * plan.G, batch * cells) + Moved(read=INDEX * cells)


def product(plan: Plan, batch: int) -> Moved:
    """Over the body: [B, G, S, L] → [B, G, S]."""
    values = batch * plan.G * plan.S
    return op(values * plan.L, values, flops=values * (plan.L - 1))


def softor(over: int, left: int, batch: int) -> Moved:
    """γ·logsumexp(x/γ) of `over` values for each of those `left`, then Z and a division.

    logsumexp is a maximum, which is made finite (absolute value, comparison, fill), a difference, an
    exponential in place, a sum, a logarithm and an addition.
    """
    x = over * left
    scale = op(x, x, x)
    finite = op(left, left) + op(left, left / 4) + op(left + left / 4, left)  # a truth value is a byte
    largest = op(x, left) + finite
    total = op(x + left, x, x) + op(x, x, exps=x) + op(x, left, x)
    log = op(left, left, left) + op(2 * left, left, left)
    # γ·, argmax (int64), gather, comparison, where, and the division by Z.
    z = op(left, left, left) + op(left, 2 * batch) + op(3 * batch, batch) + op(batch, batch / 4) \
        + op(batch + batch / 4, batch) + op(left + batch, left, left)
    return scale + largest + total + log + z


def forward(plan: Plan, steps: int, batch: int) -> Moved:
    """V0 → V_T of all atoms, every clause chosen once."""
    left = batch * plan.G
    clause = gather(plan, batch) + product(plan, batch) + softor(plan.S, left, batch)
    stack = op(plan.C * left, plan.C * left) + op(2 * left, 2 * left)
    return (clause * plan.C + stack + softor(plan.C, left, batch) + softor(2, left, batch)) * steps


def backward(plan: Plan, steps: int, batch: int) -> Moved:
    """At least: each large operation backwards in one pass; torch takes several where a factor is 0."""
    left, values = batch * plan.G, batch * plan.G * plan.S
    cells = values * plan.L
    soft = op(2 * values, values, values) + op(values, values, exps=values) + op(2 * values, values, values) \
        + op(values, values, values)  # the weights again, times the gradient, over γ
    through_product = op(cells + 2 * values, cells, 2 * cells)
    scatter = op(cells, left, cells) + Moved(read=INDEX * plan.G * plan.S * plan.L)
    return (soft + through_product + scatter) * (plan.C * steps)


def seconds(moved: Moved, card: Card = A100) -> float:
    """At full bandwidth, or as fast as operations are started."""
    return max(moved.bytes / card.memory_rate, moved.kernels * EAGER)


def peak(plan: Plan, steps: int, batch: int, gradient: bool) -> float:
    """Bytes of memory: the index tensors, and the gathered values of one clause, or of all with gradients."""
    values, left = batch * plan.G * plan.S, batch * plan.G
    index = INDEX * plan.C * plan.G * plan.S * plan.L
    if gradient:  # kept for each clause and step: the gathered values, their product, and that over γ
        return index + FLOAT * steps * plan.C * (values * plan.L + 2 * values + 2 * left)
    return index + FLOAT * (max(values * (plan.L + 1), 3 * values) + (plan.C + 2) * left)
