"""Comparisons of measured numbers as text with as few brackets as Prolog needs, and under names of their own."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from nsfrc.compiler import spelling
from nsfrc.compiler.ir import Compute, Const, Expr, Filter, Measured, Number, PredicateKey, Term, Var

# Of an operator: its priority, and the most that its left and its right side may have. Names stand before brackets.
_PRIORITY = {
    **dict.fromkeys(("+", "-"), (500, 500, 400)),
    **dict.fromkeys(("*", "/", "//", "mod", "rem", "div"), (400, 400, 200)),
    "**": (200, 0, 0), "^": (200, 0, 0),
}
MAX_DEPTH, MAX_SIZE = 100, 1000  # of an expression


def text_of(test: Filter) -> str:
    """`area(A) > 1.5 * area(B)`."""
    return f"{expression(test.left)} {test.op} {expression(test.right)}"


def expression(expr: Expr, most: int = 699) -> str:
    """An expression whose operators have a priority of at most so much, or stand in brackets."""
    if not isinstance(expr, Compute):
        return str(expr)
    if len(expr.args) == 1 or expr.op not in _PRIORITY:
        return f"{expr.op}({', '.join(map(expression, expr.args))})"
    own, left, right = _PRIORITY[expr.op]
    text = f"{expression(expr.args[0], left)} {expr.op} {expression(expr.args[1], right)}"
    return text if own <= most else f"({text})"


class Canonical:
    """A comparison in terms of A, B, ... in the place of its variables, or of its objects if all of them are named.

    test: so written; arguments: what A, B, ... were, with the types of those that numbers are measured of. An object
    beside a variable stays: `area(A) > area(obj1)` may be asked of obj1 itself, and no atom has an object twice.
    """

    def __init__(self, test: Filter, numbers: Mapping[PredicateKey, Number], objects: Container[str]):
        args = [pair for one in test.measured for pair in zip(one.args, numbers[one.key].types, strict=True)]
        mixed = any(isinstance(arg, Var) and datatype in objects for arg, datatype in args)
        self._numbers, self._named_objects = numbers, () if mixed else objects
        self._names: dict[tuple[type, str, str | None], Var] = {}
        self.arguments: list[tuple[Term, str | None]] = []
        self.test = replace(test, left=self._renamed(test.left), right=self._renamed(test.right))

    def _renamed(self, expr: Expr) -> Expr:
        if isinstance(expr, Compute):
            return Compute(expr.op, tuple(self._renamed(arg) for arg in expr.args))
        if isinstance(expr, Measured):
            types = self._numbers[expr.key].types
            args = zip(expr.args, types, strict=True)
            return Measured(expr.name, tuple(self._named(arg, datatype) for arg, datatype in args))
        return self._named(expr, None)

    def _named(self, term: Term, datatype: str | None) -> Term:
        if isinstance(term, Const) and datatype not in self._named_objects:
            return Const(term.name)
        key = type(term), term.name, None if isinstance(term, Var) else datatype
        if key not in self._names:
            self._names[key] = Var(spelling.variable(len(self._names)))
            self.arguments.append((term, datatype))
        return self._names[key]


def fits(*exprs: Expr) -> bool:
    """Whether expressions are small enough to be written out; those that share parts may be larger than they look."""
    seen: dict[int, tuple[int, int]] = {}
    waiting = list(exprs)
    while waiting:
        expr = waiting[-1]
        parts = expr.args if isinstance(expr, Compute) else ()
        if new := [part for part in parts if id(part) not in seen]:
            waiting += new
            continue
        waiting.pop()
        below = [seen[id(part)] for part in parts]
        size = 1 + sum(size for size, _ in below)
        depth = 1 + max((depth for _, depth in below), default=0)
        if size > MAX_SIZE or depth > MAX_DEPTH:
            return False
        seen[id(expr)] = size, depth
    return True
