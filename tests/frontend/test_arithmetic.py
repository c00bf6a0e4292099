"""Arithmetic that is decided when a program is checked means what SWI-Prolog means by it."""

from __future__ import annotations

import pytest

from nsfrc.compiler.check.arithmetic import holds, value
from nsfrc.compiler.ir import Compute, Const, Filter


def compute(op, *args):
    return Compute(op, tuple(arg if isinstance(arg, Compute) else Const(arg) for arg in args))


@pytest.mark.parametrize(("expression", "result"), [
    (compute("+", "1", "2.5"), 3.5), (compute("-", "1", "3"), -2), (compute("*", "3", "4"), 12),
    (compute("/", "4", "2"), 2), (compute("/", "7", "2"), 3.5), (compute("/", "1.0", "4"), 0.25),
    (compute("//", "7", "2"), 3), (compute("//", "-7", "2"), -3), (compute("//", "-7", "-2"), 3),
    (compute("mod", "7", "3"), 1), (compute("mod", "-7", "3"), 2), (compute("-", "4"), -4),
    (compute("*", compute("+", "1", "2"), "3"), 9),
])
def test_values(expression, result):
    found = value(expression)
    assert found == result and type(found) is type(result)


@pytest.mark.parametrize(("expression", "error"), [
    (Const("red"), TypeError), (compute("+", "1", "red"), TypeError), (compute("/", "1", "0"), ZeroDivisionError),
    (compute("//", "1", "0"), ZeroDivisionError), (compute("//", "1.5", "1"), TypeError),
    (compute("mod", "2", "1.0"), TypeError),
])
def test_what_has_no_value(expression, error):
    with pytest.raises(error):
        value(expression)


@pytest.mark.parametrize(("op", "left", "right", "expected"), [
    ("=:=", "1", "1.0", True), ("=\\=", "1", "1.0", False), ("<", "9", "10", True), (">", "9", "10", False),
    ("=<", "2", "2", True), (">=", "1", "2", False), ("==", "1", "1.0", False), ("!=", "red", "blue", True),
    ("==", "red", "red", True),
])
def test_comparisons(op, left, right, expected):
    assert holds(Filter(op, Const(left), Const(right))) is expected
