"""Each place of a sentence where a predicate, a constant, a type or a variable is named.

    kp(X) :- in(O, X), color(O, red).     kp/1 DEFINED, in/2 USED, color/2 USED, red USED; X and O as variables
    :- neural(color(object, color)).      color/2 DECLARED, object and color as types
"""

from __future__ import annotations

from collections.abc import Iterator

from nsfrc.compiler.syntax import (
    CLAUSE,
    DIRECTIVE,
    INFIX,
    Compound,
    ListTerm,
    Name,
    Number,
    Sentence,
    Term,
    Variable,
    calls,
    spine,
)
from nsfrc.errors import Span
from nsfrc.records import dataclass

PREDICATE, CONSTANT, TYPE, VARIABLE = "predicate", "constant", "type", "variable"
DECLARED, DEFINED, USED = "declared", "defined", "used"

_GOALS = {("\\+", 1): (0,), ("forall", 2): (0, 1), ("call", 1): (0,), ("not", 1): (0,), ("once", 1): (0,)}
_COUNTS = {("aggregate_all", 3): 1, ("findall", 3): 1}
_LOGIC = {",", ";", "->", "*->", ":-", "-->"}
_SIGNATURES = {"pred": DECLARED, "neural": DECLARED, "number": DECLARED, "learn": DECLARED, "body": USED}
_ASKED = {"target", "query", "classes", "threshold"}
_INDICATED = {"dynamic", "discontiguous", "table", "multifile"}
_PLAIN = {"true", "fail", "false", "!", "[]", "{}"}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name in its place. arity: of a predicate, else 0."""

    kind: str
    name: str
    arity: int
    how: str
    span: Span


def occurrences(sentence: Sentence) -> Iterator[Occurrence]:
    """All names of a sentence; none of one with a syntax error."""
    term = sentence.term
    if term is None:
        return
    if sentence.kind == DIRECTIVE:
        for goal in spine(term, ","):
            yield from _directive(goal)
    elif sentence.kind == CLAUSE:
        head, body = term.args if calls(term, ":-", 2) else (term, None)
        for one in spine(head, ";"):
            yield from _head(one)
        if body is not None:
            yield from _goal(body)
    else:
        yield from _goal(term)


def _head(term: Term) -> Iterator[Occurrence]:
    if calls(term, "::", 2):
        yield from _head(term.args[1])
    elif calls(term, "query", 1):
        yield from _goal(term.args[0])
    else:
        yield from _atom(term, DEFINED)


def _goal(term: Term) -> Iterator[Occurrence]:
    waiting = [term]
    while waiting:
        term = waiting.pop()
        if not isinstance(term, Compound):
            yield from _atom(term, USED)
            continue
        key = term.name, len(term.args)
        if term.name in _LOGIC:
            waiting += reversed(term.args)
        elif key in _GOALS:
            waiting += [term.args[place] for place in reversed(_GOALS[key])]
        elif key in _COUNTS:
            yield from _variables(term.args[0])
            yield from _goal(term.args[_COUNTS[key]])
            yield from _variables(term.args[2])
        elif term.name in INFIX:
            for arg in term.args:
                yield from _argument(arg)
        else:
            yield from _atom(term, USED)


def _atom(term: Term, how: str) -> Iterator[Occurrence]:
    if isinstance(term, Name) and term.name not in _PLAIN:
        yield Occurrence(PREDICATE, term.name, 0, how, term.span)
    elif isinstance(term, Compound) and term.name not in INFIX:
        yield Occurrence(PREDICATE, term.name, len(term.args), how, term.name_span)
        for arg in term.args:
            yield from _argument(arg)
    elif isinstance(term, Compound | Variable):
        yield from _argument(term)


def _argument(term: Term) -> Iterator[Occurrence]:
    """Constants, variables, and numbers of objects such as area(O), which are named like predicates."""
    if isinstance(term, Variable):
        yield Occurrence(VARIABLE, term.name, 0, USED, term.span)
    elif isinstance(term, Name) and term.name not in _PLAIN:
        yield Occurrence(CONSTANT, term.name, 0, USED, term.span)
    elif isinstance(term, ListTerm):
        for item in (*term.items, *([] if term.tail is None else [term.tail])):
            yield from _argument(item)
    elif isinstance(term, Compound):
        if term.name not in INFIX and not (term.name in "+-\\" and len(term.args) == 1):
            yield Occurrence(PREDICATE, term.name, len(term.args), USED, term.name_span)
        for arg in term.args:
            yield from _argument(arg)


def _variables(term: Term) -> Iterator[Occurrence]:
    return (found for found in _argument(term) if found.kind == VARIABLE)


def _directive(goal: Term) -> Iterator[Occurrence]:
    if not isinstance(goal, Compound):
        return
    if goal.name == "type" and len(goal.args) == 2:
        yield from _type(*goal.args)
    elif goal.name in _SIGNATURES:
        signed = goal.args[0]
        for one in signed.items if isinstance(signed, ListTerm) else (signed,):
            yield from _signature(one, _SIGNATURES[goal.name])
    elif goal.name == "vars" and isinstance(goal.args[0], Name):
        yield Occurrence(TYPE, goal.args[0].name, 0, USED, goal.args[0].span)
    elif goal.name == "attributes":
        for pair in goal.args[0].items if isinstance(goal.args[0], ListTerm) else ():
            if calls(pair, "-", 2):
                yield from _type(*pair.args)
    elif goal.name in _ASKED:
        asked = goal.args[0]
        for one in asked.items if isinstance(asked, ListTerm) else (asked,):
            yield from _goal(one)
    elif goal.name in _INDICATED:
        for arg in goal.args:
            yield from _indicated(arg)


def _type(name: Term, values: Term) -> Iterator[Occurrence]:
    if isinstance(name, Name):
        yield Occurrence(TYPE, name.name, 0, DECLARED, name.span)
    for item in values.items if isinstance(values, ListTerm) else ():
        if isinstance(item, Name):
            yield Occurrence(CONSTANT, item.name, 0, DECLARED, item.span)


def _signature(term: Term, how: str) -> Iterator[Occurrence]:
    if isinstance(term, Name):
        yield Occurrence(PREDICATE, term.name, 0, how, term.span)
    elif isinstance(term, Compound):
        yield Occurrence(PREDICATE, term.name, len(term.args), how, term.name_span)
        for arg in term.args:
            if isinstance(arg, Name):
                yield Occurrence(TYPE, arg.name, 0, USED, arg.span)


def _indicated(term: Term) -> Iterator[Occurrence]:
    """`kp/1`, alone, in a list or in a row."""
    if calls(term, "/", 2):
        name, arity = term.args
        if isinstance(name, Name) and isinstance(arity, Number) and isinstance(arity.value, int):
            yield Occurrence(PREDICATE, name.name, arity.value, USED, name.span)
    elif isinstance(term, ListTerm):
        for item in term.items:
            yield from _indicated(item)
    elif calls(term, ",", 2):
        for item in spine(term, ","):
            yield from _indicated(item)
