"""Comparisons of measured numbers: how far `area(A) > 1.5 * area(B)` holds of every two objects.

    < > =< >=    σ((left − right) / τ), or of (right − left)
    =:=          exp(−((left − right) / τ)²)
    =\\=          1 − that

τ, the temperature, is learnt. A comparison is 0 where a number is not known, and where one side has no value, as in a
division by 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from nsfrc.compiler import ir
from nsfrc.compiler.filters import constant
from nsfrc.compiler.herbrand import Herbrand
from nsfrc.errors import NsfrcError

# Where τ starts. Numbers of boxes are fractions of the image, of which a detector's edges are off by about 0.003: a
# difference of 0.01 is then rather sure (.73), one of 0.05 is sure (.993), and there is a slope in between. An area is
# off by about the error of an edge times the width, so that areas need a finer one.
TEMPERATURE, OF_AREAS = 0.01, 0.001
COLDEST = 1e-6  # as training may drive it towards 0, where nothing could be divided by it
STEEPEST = 1e4  # differences, in temperatures, beyond which nothing changes


@dataclass(frozen=True, eq=False)
class Measures:
    """Numbers of a batch: values [B, T] of the T things that a number is of, and where they are known (None: all)."""

    values: dict[ir.PredicateKey, torch.Tensor]
    known: dict[ir.PredicateKey, torch.Tensor | None]

    @property
    def dtype(self) -> torch.dtype:
        return next(iter(self.values.values())).dtype


def start(test: ir.Filter) -> float:
    """The temperature that a comparison has before it is learnt."""
    return OF_AREAS if any(one.key == ("area", 1) for one in test.measured) else TEMPERATURE


def language_of(program: ir.Program) -> Herbrand:
    """The things that each number of a program is of, as ground atoms."""
    predicates = tuple(ir.Predicate(number.name, number.types, ir.NEURAL) for number in program.numbers)
    return Herbrand.of(program.types, predicates, program.apart)


@dataclass(frozen=True, eq=False)
class _Value:
    """A part of an expression, [B or 1, N], and where it has a value (None: everywhere)."""

    value: torch.Tensor
    defined: torch.Tensor | None = None


class Comparing(torch.nn.Module):
    """One COMPARED predicate of a program, over its N ground atoms; numbers: see `language_of`."""

    def __init__(self, predicate: ir.Predicate, herbrand: Herbrand, numbers: Herbrand) -> None:
        super().__init__()
        assert predicate.comparison is not None
        self.name, self.test = predicate.name, predicate.comparison.test
        self.s = torch.nn.Parameter(torch.tensor(_inverse_softplus(start(self.test))))
        positions = herbrand.arguments(predicate.key)
        variables = predicate.comparison.variables
        self.atoms = len(positions)
        self._leaves: dict[ir.Expr, tuple[str, str | None]] = {}  # a table, and where it counts (None: everywhere)
        columns = dict(zip(variables, positions.T, strict=True))
        types = dict(zip(variables, predicate.types, strict=True))
        for side in (self.test.left, self.test.right):
            self._prepare(side, columns, types, herbrand, numbers)

    @property
    def temperature(self) -> torch.Tensor:
        return torch.nn.functional.softplus(self.s).clamp(min=COLDEST)

    def as_entry(self) -> dict[str, Any]:
        """What a file of concepts holds of it."""
        return {"temperature": float(f"{self.temperature.item():.9g}")}

    def take_entry(self, entry: Mapping[str, Any], where: str) -> None:
        value = entry.get("temperature")
        if len(entry) != 1 or not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
            raise NsfrcError(f"{where}: a comparison has a temperature above 0, as {{\"temperature\": {TEMPERATURE}}}")
        with torch.no_grad():
            self.s.fill_(_inverse_softplus(float(value)))

    def _prepare(
        self, expr: ir.Expr, columns: dict[str, np.ndarray], types: dict[str, str], herbrand: Herbrand,
        numbers: Herbrand,
    ) -> None:
        """Tables for the leaves of an expression: measured numbers, and parts without any, which are constant."""
        if isinstance(expr, ir.Measured):
            places = _places(expr, columns, numbers)
            self._add(expr, np.maximum(places, 0), places >= 0)
        elif isinstance(expr, ir.Compute) and any(True for _ in ir.measured_in(expr)):
            for arg in expr.args:
                self._prepare(arg, columns, types, herbrand, numbers)
        else:
            fixed = np.asarray(constant(expr, types, columns, herbrand), dtype=np.float64)
            self._add(expr, np.where(np.isfinite(fixed), fixed, 1), np.isfinite(fixed))

    def _add(self, leaf: ir.Expr, table: np.ndarray, counts: np.ndarray) -> None:
        if leaf in self._leaves:
            return
        name, mask = f"leaf{len(self._leaves)}", None if counts.all() else f"counts{len(self._leaves)}"
        self.register_buffer(name, torch.from_numpy(np.broadcast_to(table, self.atoms).copy()), persistent=False)
        if mask is not None:
            self.register_buffer(mask, torch.from_numpy(np.broadcast_to(counts, self.atoms).copy()), persistent=False)
        self._leaves[leaf] = name, mask

    def forward(self, measures: Measures, batch: int) -> torch.Tensor:
        """Values [B, N] of all ground atoms."""
        left, right = (self._value(side, measures) for side in (self.test.left, self.test.right))
        difference = (left.value - right.value).expand(batch, self.atoms)
        defined = difference.detach().isfinite()
        for mask in (left.defined, right.defined):
            defined = defined if mask is None else defined & mask
        difference = torch.where(defined, difference, 0.0)
        return torch.where(defined, _holds(self.test.op, difference / self.temperature.to(difference.dtype)), 0.0)

    def _value(self, expr: ir.Expr, measures: Measures) -> _Value:
        if expr not in self._leaves:
            assert isinstance(expr, ir.Compute)
            return _computed(expr.op, [self._value(arg, measures) for arg in expr.args])
        name, mask = self._leaves[expr]
        table, counts = getattr(self, name), None if mask is None else getattr(self, mask)[None]
        if not isinstance(expr, ir.Measured):
            return _Value(table[None].to(measures.dtype), counts)
        values, known = measures.values[expr.key], measures.known[expr.key]
        if not values.shape[1]:  # there is nothing that the number could be of
            return _Value(values.new_ones(1, self.atoms), counts)
        there = _both(None if known is None else known.index_select(1, table), counts)
        taken = values.index_select(1, table)
        return _Value(taken if there is None else torch.where(there, taken, 1.0), there)


def _places(one: ir.Measured, columns: dict[str, np.ndarray], numbers: Herbrand) -> np.ndarray:
    """Which of the things that a number is of each atom asks for: [N], or []; -1 where there is no such thing."""
    types = numbers.predicate_by_key[one.key].types
    cell = tuple(
        columns[arg.name] if isinstance(arg, ir.Var) else numbers.type_by_name[name].constants.index(arg.name)
        for arg, name in zip(one.args, types, strict=True)
    )
    found = np.asarray(numbers.tables[one.key][cell], dtype=np.int64)
    return np.where(found == 0, -1, found - numbers.offsets[one.key][0])


def _both(one: torch.Tensor | None, other: torch.Tensor | None) -> torch.Tensor | None:
    return other if one is None else one if other is None else one & other


def _computed(op: str, args: list[_Value]) -> _Value:
    """One operation. Where it has no value it is done with 1 instead, so that no gradient is spoilt."""
    function = _OF_ONE[op] if len(args) == 1 else _OF_TWO[op]
    defined = None
    for arg in args:
        defined = _both(defined, arg.defined)
    values = [arg.value for arg in args]
    if op in ("/", "**", "sqrt"):
        with torch.no_grad():
            fine = function(*values).isfinite()
        values = [torch.where(fine, value, 1.0) for value in values]
        defined = _both(defined, fine)
    return _Value(function(*values), defined)


def _root(x: torch.Tensor) -> torch.Tensor:
    """√x, whose slope at 0 is infinite and taken as 0."""
    zero = x == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, x).sqrt())


def _power(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x ** y; 0 to a power between 0 and 1 has an infinite slope, which is taken as 0."""
    steep = (x == 0) & (y > 0) & (y < 1)
    return torch.where(steep, 0.0, torch.where(steep, 1.0, x) ** y)


_OF_ONE: dict[str, Callable[..., torch.Tensor]] = {"-": torch.neg, "abs": torch.abs, "sqrt": _root}
_OF_TWO: dict[str, Callable[..., torch.Tensor]] = {
    "+": torch.add, "-": torch.sub, "*": torch.mul, "/": torch.div, "min": torch.minimum, "max": torch.maximum,
    "**": _power,
}


def _holds(op: str, steps: torch.Tensor) -> torch.Tensor:
    """How far a comparison holds whose sides differ by so many temperatures."""
    steps = steps.clamp(-STEEPEST, STEEPEST)
    if op in ("<", "=<"):
        return torch.sigmoid(-steps)
    if op in (">", ">="):
        return torch.sigmoid(steps)
    return torch.exp(-steps.square()) if op == "=:=" else -torch.expm1(-steps.square())


def _inverse_softplus(value: float) -> float:
    return value + math.log(-math.expm1(-value))


class Learnt(torch.nn.Module):
    """A CHANCE predicate whose probability is learnt: one atom, the same for all images."""

    def __init__(self, predicate: ir.Predicate) -> None:
        super().__init__()
        assert predicate.chance is not None
        self.name = predicate.name
        self.logit = torch.nn.Parameter(torch.tensor(_logit(predicate.chance.value)))

    @property
    def probability(self) -> torch.Tensor:
        return torch.sigmoid(self.logit)

    def as_entry(self) -> dict[str, Any]:
        """What a file of concepts holds of it."""
        return {"probability": float(f"{self.probability.item():.9g}")}

    def take_entry(self, entry: Mapping[str, Any], where: str) -> None:
        value = entry.get("probability")
        if len(entry) != 1 or not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
            raise NsfrcError(f"{where}: it has a probability from 0 to 1, as {{\"probability\": 0.5}}")
        with torch.no_grad():
            self.logit.fill_(_logit(min(max(float(value), 1e-7), 1 - 1e-7)))

    def forward(self, batch: int) -> torch.Tensor:
        """Its value as [B, 1]."""
        return self.probability.expand(batch, 1)


def _logit(value: float) -> float:
    return math.log(value) - math.log1p(-value)
