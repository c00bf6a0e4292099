"""Numbers in comparisons, computed as Prolog does."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from nsfrc.compiler.ir import Compute, Const, Expr, Filter, is_number

Value = int | float
MAX_EXPONENT = 100


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
    return _OF_ONE[expr.op](args[0]) if len(args) == 1 else _COMPUTE[expr.op](*args)


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


def _remainder(x: Value, y: Value) -> Value:
    """What truncating division leaves, with the sign of x."""
    x, y = _integers(x, y, "rem")
    return int(math.copysign(abs(x) % abs(y), x))


def _floor(x: Value, y: Value) -> Value:
    x, y = _integers(x, y, "div")
    return x // y


def _power(x: Value, y: Value) -> Value:
    x, y = _integers(x, y, "^")
    if y < 0 and x not in (1, -1):
        raise TypeError("^ needs an exponent of 0 or more")
    if abs(x) > 1 and y > MAX_EXPONENT:
        raise OverflowError(f"^ needs an exponent of at most {MAX_EXPONENT}")
    return x ** abs(y)


def _raised(x: Value, y: Value) -> Value:
    """x ** y: a whole number if both are whole and y is not negative, else a decimal one."""
    if isinstance(x, int) and isinstance(y, int) and y >= 0:
        return _power(x, y)
    if abs(x) > 1 and y > MAX_EXPONENT:
        raise OverflowError(f"** needs an exponent of at most {MAX_EXPONENT}")
    result = float(x) ** y
    if isinstance(result, complex):
        raise TypeError("** of a negative number needs a whole exponent")
    return result


def _root(x: Value) -> Value:
    if x < 0:
        raise TypeError("sqrt needs a number of 0 or more")
    return math.sqrt(x)


def _divisor(x: Value, y: Value) -> Value:
    return math.gcd(*_integers(x, y, "gcd"))


def _integers(x: Value, y: Value, op: str) -> tuple[int, int]:
    if isinstance(x, int) and isinstance(y, int):
        return x, y
    raise TypeError(f"{op} needs whole numbers")


_COMPUTE: dict[str, Callable[[Value, Value], Value]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide, "//": _truncate, "mod": _modulo,
    "rem": _remainder, "div": _floor, "^": _power, "min": min, "max": max, "gcd": _divisor,
    "**": _raised,
}
_OF_ONE: dict[str, Callable[[Value], Value]] = {
    "-": operator.neg, "abs": abs, "sign": lambda x: type(x)((x > 0) - (x < 0)), "sqrt": _root,
}
_COMPARE: dict[str, Callable[[Value, Value], bool]] = {
    "=:=": operator.eq, "=\\=": operator.ne, "<": operator.lt, ">": operator.gt, "=<": operator.le,
    ">=": operator.ge,
}
