"""The ground atoms `G` of a language, and where each of them stands in a valuation.

Index 0 is false, index 1 is true. Then come the atoms of every predicate, predicates by name and
arity, the atoms of one predicate by their arguments from left to right. Names compare as people
read them: letters as letters, runs of digits as numbers, so that `obj2` comes before `obj10`.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Container
from dataclasses import field
from functools import cached_property
from itertools import combinations

import numpy as np

from nsfrc.compiler.ir import Atom, Const, DataType, Predicate, PredicateKey, atom_text, quoted
from nsfrc.errors import NsfrcError
from nsfrc.records import dataclass

FALSE, TRUE = 0, 1

# A table of this many cells takes 256 MB; beyond it a predicate has too many arguments to ground.
MAX_CELLS = 64_000_000


def reading_order(name: str) -> tuple[tuple[int, int, str, str], ...]:
    """Sort key that compares digits as numbers and everything else as text."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return tuple(_number_key(p) if p[0] in "0123456789" else (1, 0, p, "") for p in parts)


def _number_key(digits: str) -> tuple[int, int, str, str]:
    """Orders numerals by value, of any length (Python's `int` refuses very long ones)."""
    plain = digits.lstrip("0")
    return 0, len(plain), plain, digits


@dataclass(frozen=True, eq=False)
class Herbrand:
    """Ground atoms of a language: `types` in declared order, `predicates` in index order."""

    types: tuple[DataType, ...]
    predicates: tuple[Predicate, ...]
    tables: dict[PredicateKey, np.ndarray] = field(repr=False)
    offsets: dict[PredicateKey, tuple[int, int]] = field(repr=False)
    size: int

    @classmethod
    def of(
        cls, types: tuple[DataType, ...], predicates: tuple[Predicate, ...], apart: frozenset[str] | None = None
    ) -> Herbrand:
        """apart: datatypes whose constants no atom repeats; by default all of them."""
        by_name = {t.name: t for t in types}
        ordered = tuple(sorted(predicates, key=lambda p: (reading_order(p.name), len(p.types))))
        tables, offsets, size = {}, {}, 2
        for predicate in ordered:
            columns = [by_name[name].constants for name in predicate.types]
            tables[predicate.key], count = _index_table(predicate, columns, by_name if apart is None else apart, size)
            offsets[predicate.key] = (size, size + count)
            size += count
            if size > MAX_CELLS:
                raise NsfrcError(
                    f"the predicates up to {predicate} have {size:,} ground atoms, more than {MAX_CELLS:,}: "
                    f"use fewer arguments or fewer constants"
                )
        return cls(types, ordered, tables, offsets, size)

    @cached_property
    def type_by_name(self) -> dict[str, DataType]:
        return {t.name: t for t in self.types}

    @cached_property
    def predicate_by_key(self) -> dict[PredicateKey, Predicate]:
        return {p.key: p for p in self.predicates}

    def arguments(self, key: PredicateKey) -> np.ndarray:
        """Positions of each atom's arguments in their types' constant lists: [atoms of key, arity]."""
        if key not in self._arguments:
            self._arguments[key] = self._find_arguments(key)
        return self._arguments[key]

    @cached_property
    def _arguments(self) -> dict[PredicateKey, np.ndarray]:
        return {}

    def _find_arguments(self, key: PredicateKey) -> np.ndarray:
        table = self.tables[key]
        found = np.flatnonzero(table.ravel())
        found = found[np.argsort(table.ravel()[found], kind="stable")]
        return np.stack(np.unravel_index(found, table.shape), axis=1) if table.ndim else np.zeros((1, 0), int)

    def index(self, name: str, constants: tuple[str, ...]) -> int | None:
        """The index of a ground atom, or None when it is not in `G`."""
        key = (name, len(constants))
        predicate = self.predicate_by_key.get(key)
        if predicate is None:
            return None
        lists = [self.type_by_name[t].constants for t in predicate.types]
        if any(c not in known for c, known in zip(constants, lists, strict=True)):
            return None
        cell = tuple(known.index(c) for c, known in zip(constants, lists, strict=True))
        return int(self.tables[key][cell]) or None

    def predicate_of(self, index: int) -> Predicate:
        """Whose ground atom this is; not of false and true."""
        return self.predicates[bisect_right(self._lasts, index)]

    @cached_property
    def _lasts(self) -> list[int]:
        return [self.offsets[predicate.key][1] for predicate in self.predicates]

    def atom(self, index: int) -> Atom:
        """A ground atom with its constants; not false and true."""
        predicate = self.predicate_of(index)
        places = self.arguments(predicate.key)[index - self.offsets[predicate.key][0]]
        types = (self.type_by_name[name] for name in predicate.types)
        return Atom(predicate.name, tuple(Const(t.constants[i]) for t, i in zip(types, places, strict=True)))

    def names(self) -> list[str]:
        """Every ground atom as text, in index order."""
        names = ["false", "true"]
        for predicate in self.predicates:
            lists = [[quoted(c) for c in self.type_by_name[t].constants] for t in predicate.types]
            for row in self.arguments(predicate.key):
                args = [known[i] for i, known in zip(row, lists, strict=True)]
                names.append(atom_text(predicate.name, args))
        return names


def _index_table(
    predicate: Predicate, columns: list[tuple[str, ...]], apart: Container[str], start: int
) -> tuple[np.ndarray, int]:
    """Indices of a predicate's atoms, a dense array over its arguments' constants; 0 where not in `G`."""
    shape = tuple(len(c) for c in columns)
    cells = math.prod(shape)
    if cells > MAX_CELLS:
        raise NsfrcError(
            f"{predicate} has {cells:,} argument combinations, more than {MAX_CELLS:,}: "
            f"use fewer arguments or fewer constants in {', '.join(dict.fromkeys(predicate.types))}"
        )
    keep = np.ones(shape, dtype=bool)
    positions = [np.arange(size) for size in shape]
    for i, j in combinations(range(len(columns)), 2):
        # A constant belongs to its type: 2 the row is not 2 the column.
        if predicate.types[i] == predicate.types[j] in apart:
            keep &= _along(positions[i], i, shape) != _along(positions[j], j, shape)
    found = np.flatnonzero(keep.ravel())
    if columns:
        cell = np.unravel_index(found, shape)
        keys = [_ranks(column)[cell[i]] for i, column in enumerate(columns)]
        found = found[np.lexsort(keys[::-1])]
    table = np.zeros(cells, dtype=np.int32)
    table[found] = np.arange(start, start + len(found))
    return table.reshape(shape), len(found)


def _along(values: np.ndarray, axis: int, shape: tuple[int, ...]) -> np.ndarray:
    return values.reshape([-1 if i == axis else 1 for i in range(len(shape))])


def _ranks(column: tuple[str, ...]) -> np.ndarray:
    """Position of each constant in reading order."""
    order = sorted(range(len(column)), key=lambda i: reading_order(column[i]))
    ranks = np.empty(len(column), dtype=np.int64)
    ranks[order] = np.arange(len(column))
    return ranks
