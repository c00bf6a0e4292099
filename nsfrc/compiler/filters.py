"""Filters such as `X \\= Y` or `N < 3`, decided for all assignments at once while grounding."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

import numpy as np

from nsfrc.compiler import ir
from nsfrc.compiler.check.arithmetic import MAX_EXPONENT
from nsfrc.compiler.herbrand import Herbrand

_NUMERIC: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "<": operator.lt, ">": operator.gt, "=<": operator.le, ">=": operator.ge, "=:=": operator.eq, "=\\=": operator.ne,
}
_ARITHMETIC: dict[str, Callable[..., np.ndarray]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": np.true_divide, "mod": np.mod, "rem": np.fmod,
    "div": np.floor_divide, "//": lambda x, y: np.trunc(x / y), "min": np.minimum, "max": np.maximum,
    "^": lambda x, y: np.where((y >= 0) & (y <= MAX_EXPONENT) | (abs(x) <= 1), x ** abs(y), np.nan),
    "**": lambda x, y: np.where((y <= MAX_EXPONENT) | (abs(x) <= 1), np.asarray(x, dtype=float) ** y, np.nan),
    "gcd": lambda x, y: np.gcd(x.astype(np.int64), y.astype(np.int64)).astype(float),
}
_OF_ONE: dict[str, Callable[[np.ndarray], np.ndarray]] = {"-": operator.neg, "abs": np.abs, "sign": np.sign,
                                                             "sqrt": np.sqrt}


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
    types = {clause.type_of(variable.name) for variable in condition.variables()}
    same = (left == right) & (len(types) < 2)  # constants of two types are different, whatever their names
    return same if condition.op == "==" else ~same


def constant(
    expr: ir.Expr, types: Mapping[str, str], values: Mapping[str, np.ndarray], herbrand: Herbrand
) -> np.ndarray:
    """What an expression without measured numbers is, not finite where undefined; values: as of `holds`."""
    clause = ir.Clause(ir.Atom("", ()), (), (), tuple(types.items()))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return _number(expr, clause, values, herbrand)


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
    if isinstance(side, ir.Measured):
        raise TypeError(f"a measured number in a test on constants: {side}")
    args = [_number(arg, clause, values, herbrand) for arg in side.args]
    return _OF_ONE[side.op](args[0]) if len(args) == 1 else _ARITHMETIC[side.op](*args)


def _constants(variable: ir.Var, clause: ir.Clause, herbrand: Herbrand) -> tuple[str, ...]:
    return herbrand.type_by_name[clause.type_of(variable.name)].constants
