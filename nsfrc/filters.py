"""Filters such as `X \\= Y` or `N < 3`, decided for all assignments at once while grounding."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

import numpy as np

from nsfrc import ir
from nsfrc.herbrand import Herbrand

_NUMERIC: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "<": operator.lt, ">": operator.gt, "=<": operator.le, ">=": operator.ge, "=:=": operator.eq, "=\\=": operator.ne,
}
_ARITHMETIC: dict[str, Callable[..., np.ndarray]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": np.true_divide, "mod": np.mod,
}


def holds(
    condition: ir.Filter, clause: ir.Clause, values: Mapping[str, np.ndarray], herbrand: Herbrand
) -> np.ndarray:
    """Where a filter is true. `values`: positions of each variable's constant, broadcastable arrays."""
    if condition.op in _NUMERIC:
        with np.errstate(divide="ignore", invalid="ignore"):
            left, right = (_number(side, clause, values, herbrand) for side in (condition.left, condition.right))
            return _NUMERIC[condition.op](left, right) & np.isfinite(left) & np.isfinite(right)
    ids: dict[str, int] = {}
    left, right = (_identity(side, clause, values, herbrand, ids) for side in (condition.left, condition.right))
    return left == right if condition.op == "==" else left != right


def _identity(
    side: ir.Expr, clause: ir.Clause, values: Mapping[str, np.ndarray], herbrand: Herbrand, ids: dict[str, int]
) -> np.ndarray:
    """A number for the name of each constant a term stands for; `ids` numbers the names met so far."""
    if isinstance(side, ir.Var):
        numbers = [ids.setdefault(name, len(ids)) for name in _constants(side, clause, herbrand)]
        return np.array(numbers)[values[side.name]]
    if isinstance(side, ir.Const):
        return np.array(ids.setdefault(side.name, len(ids)))
    raise TypeError(f"arithmetic in a comparison by name: {side}")


def _number(
    side: ir.Expr, clause: ir.Clause, values: Mapping[str, np.ndarray], herbrand: Herbrand
) -> np.ndarray:
    """Numbers a term stands for; not finite (so never true) where undefined, as in a division by 0."""
    if isinstance(side, ir.Var):
        numbers = np.array([float(c) for c in _constants(side, clause, herbrand)])
        return numbers[values[side.name]]
    if isinstance(side, ir.Const):
        return np.array(float(side.name))
    args = [_number(arg, clause, values, herbrand) for arg in side.args]
    if side.op == "-" and len(args) == 1:
        return -args[0]
    if side.op == "//":
        return np.trunc(args[0] / args[1])
    return _ARITHMETIC[side.op](*args)


def _constants(variable: ir.Var, clause: ir.Clause, herbrand: Herbrand) -> tuple[str, ...]:
    return herbrand.type_by_name[clause.type_of(variable.name)].constants
