"""Filters: decided for all assignments at once, against Python's arithmetic one at a time."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from nsfrc.compiler import ir
from nsfrc.compiler.filters import holds
from nsfrc.compiler.herbrand import Herbrand
from tests import slow

NUMBERS = ("-3", "-1", "0", "1", "2", "2.5", "7", "1e2")
NAMES = ("red", "blue", "It's red", "1", "1.0")
X, Y = ir.Var("X"), ir.Var("Y")


def table(condition: ir.Filter, constants: tuple[str, ...]) -> list[list[bool]]:
    """Whether the filter holds for X (rows) and Y (columns) over the constants."""
    herbrand = Herbrand.of((ir.DataType("t", constants, ir.ATTRIBUTE),), ())
    clause = ir.Clause(ir.Atom("p", ()), (), (condition,), (("X", "t"), ("Y", "t")))
    positions = np.arange(len(constants))
    values = {"X": positions[:, None], "Y": positions[None, :]}
    result = np.broadcast_to(holds(condition, clause, values, herbrand), (len(constants),) * 2)
    return result.tolist()


def expected(condition: ir.Filter, constants: tuple[str, ...]) -> list[list[bool]]:
    return [[slow._holds(condition, {"X": x, "Y": y}) for y in constants] for x in constants]


@pytest.mark.parametrize("op", ["<", ">", "=<", ">=", "=:=", "=\\="])
@pytest.mark.parametrize("sides", [(X, Y), (X, ir.Const("2")), (ir.Const("2.5"), Y), (Y, ir.Compute("-", (X,)))])
def test_comparisons(op: str, sides: tuple[ir.Expr, ir.Expr]) -> None:
    condition = ir.Filter(op, *sides)
    assert table(condition, NUMBERS) == expected(condition, NUMBERS)


@pytest.mark.parametrize("arithmetic", ["+", "-", "*", "/"])
@pytest.mark.parametrize("op", ["<", ">=", "=:=", "=\\="])
def test_arithmetic(arithmetic: str, op: str) -> None:
    condition = ir.Filter(op, ir.Compute(arithmetic, (X, Y)), ir.Const("2"))
    assert table(condition, NUMBERS) == expected(condition, NUMBERS)


@pytest.mark.parametrize("arithmetic", ["//", "mod"])
@pytest.mark.parametrize("op", ["<", "=:="])
def test_whole_numbers(arithmetic: str, op: str) -> None:
    """Division truncates towards zero, as SWI-Prolog's //; mod has the sign of the divisor."""
    whole = ("-7", "-3", "-2", "0", "1", "2", "3", "8")
    condition = ir.Filter(op, ir.Compute(arithmetic, (X, Y)), ir.Const("-1"))
    assert table(condition, whole) == expected(condition, whole)


@pytest.mark.parametrize("arithmetic", ["/", "//", "mod"])
@pytest.mark.parametrize("op", ["<", ">", "=<", ">=", "=:=", "=\\="])
def test_division_by_zero_never_holds(arithmetic: str, op: str) -> None:
    condition = ir.Filter(op, ir.Compute(arithmetic, (X, Y)), ir.Const("1"))
    assert not np.array(table(condition, ("0", "1", "5")))[:, 0].any()


@pytest.mark.parametrize("op", ["==", "!="])
@pytest.mark.parametrize("sides", list(product((X, Y, ir.Const("red"), ir.Const("1")), repeat=2)))
def test_identity_compares_names(op: str, sides: tuple[ir.Expr, ir.Expr]) -> None:
    """1 and 1.0 are different names, though equal numbers."""
    condition = ir.Filter(op, *sides)
    assert table(condition, NAMES) == expected(condition, NAMES)


def test_identity_between_two_types() -> None:
    types = (ir.DataType("t", ("a", "b"), ir.ATTRIBUTE), ir.DataType("u", ("longer name", "b"), ir.ATTRIBUTE))
    for op, expected in (("==", False), ("!=", True)):  # b of t and b of u are two constants
        condition = ir.Filter(op, X, Y)
        clause = ir.Clause(ir.Atom("p", ()), (), (condition,), (("X", "t"), ("Y", "u")))
        values = {"X": np.arange(2)[:, None], "Y": np.arange(2)[None, :]}
        assert holds(condition, clause, values, Herbrand.of(types, ())).tolist() == [[expected] * 2] * 2


def test_nested_arithmetic() -> None:
    inner = ir.Compute("*", (ir.Compute("+", (X, ir.Const("1"))), ir.Compute("-", (Y,))))
    condition = ir.Filter("<", inner, ir.Compute("mod", (X, ir.Const("3"))))
    assert table(condition, ("0", "1", "2", "5")) == expected(condition, ("0", "1", "2", "5"))


def test_names_with_a_nul_are_told_apart() -> None:
    condition = ir.Filter("==", X, Y)
    assert table(condition, ("a", "a\0")) == [[True, False], [False, True]]
