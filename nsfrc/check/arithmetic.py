"""Numbers in comparisons, computed as Prolog does."""

from __future__ import annotations

import operator
from collections.abc import Callable

from nsfrc.ir import Compute, Const, Expr, Filter, is_number

Value = int | float


def number(name: str) -> Value | None:
    """The number that a constant's name spells, or None."""
    if not is_number(name):
        return None
    return int(name) if name.lstrip("-").isdigit() else float(name)


def holds(test: Filter) -> bool:
    """Decide a test without variables. Raises ArithmeticError or TypeError when it has no value."""
    if test.op in ("==", "!="):
        assert isinstance(test.left, Const) and isinstance(test.right, Const)
        return (test.left.name == test.right.name) == (test.op == "==")
    return _COMPARE[test.op](value(test.left), value(test.right))


def value(expr: Expr) -> Value:
    """The value of an expression without variables."""
    if isinstance(expr, Const):
        result = number(expr.name)
        if result is None:
            raise TypeError(f"{expr} is not a number")
        return result
    assert isinstance(expr, Compute)
    args = [value(arg) for arg in expr.args]
    return -args[0] if len(args) == 1 else _COMPUTE[expr.op](*args)


def _divide(x: Value, y: Value) -> Value:
    """Exact integers stay integers: 4/2 is 2 and 7/2 is 3.5."""
    if isinstance(x, int) and isinstance(y, int) and y and x % y == 0:
        return x // y
    return x / y


def _truncate(x: Value, y: Value) -> Value:
    """Integer division towards zero."""
    x, y = _integers(x, y, "//")
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _modulo(x: Value, y: Value) -> Value:
    x, y = _integers(x, y, "mod")
    return x % y


def _integers(x: Value, y: Value, op: str) -> tuple[int, int]:
    if isinstance(x, int) and isinstance(y, int):
        return x, y
    raise TypeError(f"{op} needs whole numbers")


_COMPUTE: dict[str, Callable[[Value, Value], Value]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide, "//": _truncate, "mod": _modulo,
}
_COMPARE: dict[str, Callable[[Value, Value], bool]] = {
    "=:=": operator.eq, "=\\=": operator.ne, "<": operator.lt, ">": operator.gt, "=<": operator.le,
    ">=": operator.ge,
}
