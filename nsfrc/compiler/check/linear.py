"""Comparisons of two counts as a test on their difference: `N >= M + 2` is N − M >= 2."""

from __future__ import annotations

from nsfrc.compiler.check import arithmetic
from nsfrc.compiler.ir import Compute, Const, Expr, Filter, Var
from nsfrc.records import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """`plus − minus OP least`, where OP is the operator of the test."""

    plus: str
    minus: str
    least: int


def difference(test: Filter) -> Difference | None:
    """A test on two variables as one on their difference; None where it is something else."""
    left, right = _terms(test.left), _terms(test.right)
    if left is None or right is None:
        return None
    factors = {name: left.get(name, 0) - right.get(name, 0) for name in {**left, **right}}
    constant = factors.pop("", 0)
    by_factor = {factor: name for name, factor in factors.items() if factor}
    if set(by_factor) != {1, -1} or sum(map(bool, factors.values())) != 2:
        return None
    return Difference(by_factor[1], by_factor[-1], -constant)


def _terms(expr: Expr) -> dict[str, int] | None:
    """How often every variable is added, and under "" the number that is; None if it is not a sum of whole numbers."""
    if isinstance(expr, Var):
        return {expr.name: 1}
    if isinstance(expr, Const):
        value = arithmetic.number(expr.name)
        return {"": value} if isinstance(value, int) else None
    if not isinstance(expr, Compute) or expr.op not in ("+", "-"):
        return None
    parts = [_terms(arg) for arg in expr.args]
    if any(part is None for part in parts):
        return None
    first, *rest = [part for part in parts if part is not None]
    sign = -1 if expr.op == "-" else 1
    if not rest:
        return {name: sign * times for name, times in first.items()}
    return {name: first.get(name, 0) + sign * rest[0].get(name, 0) for name in {**first, **rest[0]}}
