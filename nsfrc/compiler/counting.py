"""Atoms that look at finished values: how many atoms of another predicate hold, and whether that is what is wanted.

    kp(X) :- aggregate_all(count, (in(O,X), color(O,red)), N), N >= 2.
    'kp#1 >= 2'(img)    counts 'kp#1'(img,obj1), 'kp#1'(img,obj2), 'kp#1'(img,obj3)    wanted: no, no, yes

    kp(X) :- in(O,X), \\+ color(O,red).
    \\+ color(obj1,red)    counts color(obj1,red)    wanted: yes, no

All of it follows from the program and its ground atoms, so that the artifact need not hold it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from nsfrc.compiler import ir
from nsfrc.compiler.check import arithmetic
from nsfrc.compiler.grounded import NO_COUNTS, Counts
from nsfrc.compiler.herbrand import Herbrand


def counts_of(program: ir.Program, herbrand: Herbrand) -> Counts:
    """The counts of a program in which every atom has a slot of its own."""
    heads: list[int] = []
    sources: list[np.ndarray] = []
    wanted: list[np.ndarray] = []
    for predicate in program.predicates:
        if predicate.count is None:
            continue
        count, arguments = predicate.count, herbrand.arguments(predicate.key)
        # Of those that are taken away it counts the ones that do not hold, from below all of them.
        plus, *taken = (_looked_at(herbrand, source, arguments) for source in count.sources)
        minus = taken[0] if taken else []
        for number, atom in enumerate(range(*herbrand.offsets[predicate.key])):
            less = minus[number] if minus else np.zeros(0, dtype=np.int64)
            tests = count.tests or (_is_number(predicate, arguments[number], herbrand),)
            heads.append(atom)
            sources.append(np.concatenate([plus[number], less]))
            wanted.append(_wanted(tests, len(plus[number]), len(less)))
    return Counts.of(heads, sources, wanted) if heads else NO_COUNTS


def _looked_at(herbrand: Herbrand, source: ir.Source, arguments: np.ndarray) -> list[np.ndarray]:
    """For every counting atom, by its arguments [n, ...], the atoms that it counts."""
    shared = len(source.args)
    types = herbrand.predicate_by_key[source.key].types[:shared]
    sizes = [len(herbrand.type_by_name[name].constants) for name in types]

    def code(columns: np.ndarray) -> np.ndarray:
        if not shared:
            return np.zeros(len(columns), dtype=np.int64)
        return np.ravel_multi_index(tuple(columns.T), sizes)

    own = code(herbrand.arguments(source.key)[:, :shared])
    order = np.argsort(own, kind="stable")
    atoms = herbrand.offsets[source.key][0] + order
    asked = code(arguments[:, list(source.args)])
    starts, ends = (np.searchsorted(own[order], asked, side=side) for side in ("left", "right"))
    return [atoms[start:end] for start, end in zip(starts, ends, strict=True)]


def _is_number(predicate: ir.Predicate, arguments: np.ndarray, herbrand: Herbrand) -> ir.Filter:
    """The test that the count is the last argument."""
    name = herbrand.type_by_name[predicate.types[-1]].constants[arguments[-1]]
    return ir.Filter("=:=", ir.Var(ir.NUMBER), ir.Const(name))


@lru_cache(maxsize=4096)
def _wanted(tests: tuple[ir.Filter, ...], plus: int, minus: int) -> np.ndarray:
    """Whether the tests hold of 0 − minus, 1 − minus, …; equal entries at the end are one."""
    found = [all(arithmetic.holds(_put_in(test, number)) for test in tests) for number in range(-minus, plus + 1)]
    while len(found) > 1 and found[-1] == found[-2]:
        found.pop()
    result = np.array(found)
    result.setflags(write=False)
    return result


def _put_in(test: ir.Filter, number: int) -> ir.Filter:
    return replace(test, left=_number(test.left, number), right=_number(test.right, number))


def _number(expr: ir.Expr, number: int) -> ir.Expr:
    if isinstance(expr, ir.Compute):
        return replace(expr, args=tuple(_number(arg, number) for arg in expr.args))
    return ir.Const(str(number)) if isinstance(expr, ir.Var) else expr
