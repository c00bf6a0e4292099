"""Measured numbers: which there are, and comparisons of them as atoms of predicates of their own.

    :- number(area(object)).

    big(A) :- area(A) > 0.3.                   big(A) :- 'area(A) > 0.3'(A).
    big(A) :- area(A, V), V > 0.3.             the same predicate, and the same temperature
    larger(X, Y) :- area(X) > 1.5 * area(Y).   larger(X, Y) :- 'area(A) > 1.5 * area(B)'(X, Y).

A number has the name and arguments of a predicate, and while types are told it is treated like one (`Draft.measured`).
Comparisons that are equal up to the names of their variables, and compare things of the same types, are one. So is what
`area(obj1) > 0.3` says: it is an atom of the first of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nsfrc.compiler.check.builtin import remedy
from nsfrc.compiler.check.vocabulary import Declared, Vocabulary, text, where
from nsfrc.compiler.expressions import Canonical, text_of
from nsfrc.compiler.ir import (
    COMPARED,
    OBJECT,
    OPERATIONS,
    SMOOTH,
    Atom,
    Comparison,
    Compute,
    Expr,
    Filter,
    Number,
    Predicate,
    PredicateKey,
    Var,
    measured_in,
    quoted,
)
from nsfrc.compiler.syntax import Compound
from nsfrc.vocabulary import NUMBERS

# Prolog's functions of numbers that no program can compute with.
_FUNCTIONS = frozenset(
    "sin cos tan asin acos atan atan2 exp log log2 ceiling floor round truncate integer float random copysign"
    " sinh cosh tanh msb cot acot succ plus".split()
)


def declare(declared: Declared, vocabulary: Vocabulary) -> bool:
    """Take in `number(area(object))`; whether it can be one."""
    found = vocabulary.found
    if not declared.types:
        hint = f":- number({quoted(declared.name)}(object))."
        found.error("bad-predicate", declared.span, "a number is one of an object, of several, or of the image", hint)
    elif len(declared.types) in OPERATIONS.get(declared.name, ()):
        found.error("built-in", declared.span, f"{text(declared.key)} is arithmetic and cannot be declared")
    else:
        vocabulary.numbers[declared.key] = Number(declared.name, declared.types, declared.span)
        return True
    return False


def find(key: PredicateKey, vocabulary: Vocabulary) -> Number | None:
    """The number of this name and so many arguments: declared, or one that perception offers.

    A predicate of the program's own goes before the latter, which are noted when they are found.
    """
    if key in vocabulary.numbers:
        return vocabulary.numbers[key]
    objects = [name for name, datatype in vocabulary.types.items() if datatype.role == OBJECT]
    if key[0] not in NUMBERS or key[1] != 1 or vocabulary.knows(key) or len(objects) != 1:
        return None
    return vocabulary.numbers.setdefault(key, Number(key[0], (objects[0],)))


def related(key: PredicateKey, vocabulary: Vocabulary) -> Number | None:
    """The number whose relational form this is: area(A, V) of area(A), unless the program has such a predicate."""
    name, arity = key
    return None if vocabulary.knows(key) or arity < 2 else find((name, arity - 1), vocabulary)


def refuse_definitions(vocabulary: Vocabulary) -> None:
    """Report facts and clauses of what is declared as a number."""
    for number in vocabulary.numbers.values():
        for key in (number.key, (number.name, number.key[1] + 1)):
            if number.span is not None and key in vocabulary.defined:
                span = vocabulary.defined[key]
                declared = f"{text(number.key)} is a number (declared {where(number.span, span)})"
                message = f"{declared}, so that {text(key)} cannot be defined"
                vocabulary.found.error("number-defined", span, message, "its values come from the image")
                vocabulary.spoilt.add(key)


def refuse_unknown(term: Compound, vocabulary: Vocabulary) -> None:
    """Report a term in a comparison that is no number."""
    key = term.name, len(term.args)
    name, found = quoted(term.name), vocabulary.found
    if not name[:1].isalpha() or term.name in _FUNCTIONS:
        found.error("bad-arithmetic", term.name_span, f"the compound term {text(key)} cannot be computed here",
                    "numbers are computed with + - * / // mod rem div ^ ** min max abs sign gcd sqrt")
        return
    if vocabulary.may_be_lost(term.name):
        return
    hint = remedy(term.name) or _instead(key, vocabulary)
    found.error("unknown-number", term.name_span, f"unknown number {text(key)}", hint)


def _instead(key: PredicateKey, vocabulary: Vocabulary) -> str:
    name, arity = key
    with_value = (name, arity + 1)
    if vocabulary.knows(with_value):
        shown = ", ".join([*("ABCDEFGH"[:arity]), "N"])
        return f"{text(with_value)} is a predicate: write {quoted(name)}({shown}), and compare N"
    if vocabulary.knows(key):
        return f"{text(key)} is a predicate of this program, whose atoms have no numbers"
    objects = [one for one, datatype in vocabulary.types.items() if datatype.role == OBJECT]
    declaration = f"declare it: :- number({quoted(name)}({', '.join(objects[:1] * arity or ['object'] * arity)}))."
    if key in ((known, 1) for known in NUMBERS):
        return declaration if objects else "it is a number of objects, and this program has no type of objects"
    known = [*(text(one) for one in vocabulary.numbers), *(f"{one}/1" for one in NUMBERS)]
    return vocabulary.found.did_you_mean(text(key), known) or declaration


def refuse_rough(test: Filter, vocabulary: Vocabulary) -> None:
    """Report operations that have no slope, or jump, where measured numbers go through them."""
    for part in _computations(test.left, test.right):
        if part.op not in SMOOTH and any(True for _ in measured_in(part)):
            message = f"'{part.op}' cannot be applied to measured numbers"
            hint = "write **" if part.op == "^" else "these are computed with + - * / ** min max abs sqrt"
            vocabulary.found.error("bad-arithmetic", part.span, message, hint)


def _computations(*exprs: Expr) -> Iterator[Compute]:
    for expr in exprs:
        if isinstance(expr, Compute):
            yield expr
            yield from _computations(*expr.args)


class Comparisons:
    """The predicates of the comparisons that were met so far."""

    def __init__(self, vocabulary: Vocabulary):
        self._vocabulary = vocabulary
        self._found: dict[tuple[str, tuple[str, ...]], Predicate] = {}
        self._names: set[str] = set()

    def atom(self, test: Filter, types: Mapping[str, str]) -> Atom:
        """A comparison as an atom; types: of its variables."""
        objects = [name for name, datatype in self._vocabulary.types.items() if datatype.role == OBJECT]
        same = Canonical(test, self._vocabulary.numbers, objects)
        args = tuple(arg for arg, _ in same.arguments)
        signature = tuple(types[arg.name] if isinstance(arg, Var) else of or "" for arg, of in same.arguments)
        spelt = text_of(same.test)
        if (spelt, signature) not in self._found:
            self._found[spelt, signature] = Predicate(
                self._free(spelt), signature, COMPARED, test.span, comparison=Comparison(same.test, test.span)
            )
        return Atom(self._found[spelt, signature].name, args, test.span)

    def _free(self, name: str) -> str:
        """A name that nothing else has: of two comparisons that differ in types alone the second has a number."""
        free, number = name, 1
        while free in self._names or free in self._vocabulary.arities:
            number += 1
            free = f"{name} #{number}"
        self._names.add(free)
        return free

    def predicates(self) -> Iterator[Predicate]:
        return iter(self._found.values())
