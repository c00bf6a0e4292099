"""Surface terms to atoms and goals, refusing what the language does not have.

    color(X, red)    ->  Atom
    X \\= Y, X < 3    ->  Filter
    X = Y            ->  Equal, solved by `alternatives`
    (a, b ; c)       ->  Either((Both((a, b)), c))
    fail             ->  Truth(False)
    \\+ a, write(X)   ->  Refused, after an error
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nsfrc.check.builtin import refusal, remedy
from nsfrc.check.declare import constant_name
from nsfrc.check.vocabulary import Vocabulary
from nsfrc.errors import Span
from nsfrc.ir import Atom, Compute, Const, Expr, Filter, Var
from nsfrc.ir import Term as Argument
from nsfrc.syntax import Compound, ListTerm, Name, Number, Term, Text, Variable, spine, variables

_SAME = {"==": "==", "\\==": "!=", "\\=": "!=", "dif": "!="}
_NUMERIC = {"=:=", "=\\=", "<", ">", "=<", ">="}
_ARITHMETIC = {"+", "-", "*", "/", "//", "mod"}


@dataclass(frozen=True, slots=True)
class Equal:
    """`left = right`."""

    left: Argument
    right: Argument
    span: Span


@dataclass(frozen=True, slots=True)
class Truth:
    """`true` or `fail`."""

    value: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Refused:
    """A goal that has been reported; its variables may be bound by what was meant."""

    variables: frozenset[str]


@dataclass(frozen=True, slots=True)
class Both:
    """A conjunction."""

    goals: tuple[Goal, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """A disjunction."""

    goals: tuple[Goal, ...]


Goal = Atom | Filter | Equal | Truth | Refused | Both | Either


class GoalReader:
    """Reads the terms of one sentence; every `_` becomes a variable of its own."""

    def __init__(self, vocabulary: Vocabulary, sentence: Term):
        self._vocabulary, self._found = vocabulary, vocabulary.found
        self._used = {variable.name for variable in variables(sentence)}
        self._fresh = self._fresh_names()

    def _fresh_names(self) -> Iterator[str]:
        number = 0
        while True:
            number += 1
            if f"_{number}" not in self._used:
                yield f"_{number}"

    def atom(self, term: Term, what: str) -> Atom | None:
        """An atom of the program's own; `what` (head, fact, goal, target) is for messages."""
        if not isinstance(term, Name | Compound) or str(term) in ("[]", "{}"):
            self._found.error(term.span, f"a {what} must be a predicate, not {_kind(term)}")
            return None
        args = term.args if isinstance(term, Compound) else ()
        read = [self._argument(arg) for arg in args]
        if any(arg is None for arg in read):
            return None
        atom = Atom(term.name, tuple(arg for arg in read if arg is not None), term.span)
        if has_repeats(atom):
            self._found.error(term.span, f"{atom} can never hold: it has the same argument twice",
                              "the arguments of an atom are pairwise different")
            return None
        return atom

    def goal(self, term: Term) -> Goal:
        """A clause body."""
        if isinstance(term, Compound) and len(term.args) == 2 and term.name in (",", ";"):
            goals = tuple(self.goal(part) for part in spine(term, term.name))
            return Both(goals) if term.name == "," else Either(goals)
        result = self._simple_goal(term)
        return Refused(frozenset(v.name for v in variables(term))) if result is None else result

    def _simple_goal(self, term: Term) -> Goal | None:
        """One goal, or None after an error."""
        if isinstance(term, Variable):
            self._found.error(term.span, f"calling a variable ({term}) is not supported yet", remedy("call"))
            return None
        if not isinstance(term, Name | Compound):
            self._found.error(term.span, f"a goal must be a predicate, not {_kind(term)}")
            return None
        args = term.args if isinstance(term, Compound) else ()
        name, span = term.name, term.name_span if isinstance(term, Compound) else term.span
        if name in ("true", "fail", "false") and not args:
            return Truth(name == "true", term.span)
        if len(args) == 2 and (name in _SAME or name == "="):
            return self._comparison(name, args, term.span)
        if len(args) == 2 and name in _NUMERIC:
            left, right = self._number(args[0]), self._number(args[1])
            return None if left is None or right is None else Filter(name, left, right, term.span)
        if len(args) == 2 and name in (":-", "-->", "::"):
            self._found.error(span, f"'{name}' cannot stand in a clause body")
            return None
        key = (name, len(args))
        reason = refusal(key, self._vocabulary.knows(key))
        if reason:
            self._found.error(span, reason, remedy(name))
            return None
        return self.atom(term, "goal")

    def _comparison(self, name: str, args: tuple[Term, ...], span: Span) -> Goal | None:
        left, right = self._argument(args[0]), self._argument(args[1])
        if left is None or right is None:
            return None
        return Equal(left, right, span) if name == "=" else Filter(_SAME[name], left, right, span)

    def _argument(self, term: Term) -> Argument | None:
        """A variable or a constant, or None after an error."""
        if isinstance(term, Variable):
            return Var(next(self._fresh) if term.name == "_" else term.name, term.span)
        if isinstance(term, Number) or (isinstance(term, Name) and term.name not in ("[]", "{}")):
            return Const(constant_name(term), term.span)
        hint = f"write {_as_atom(term)} without double quotes" if isinstance(term, Text) else None
        message = f"{_kind(term)} cannot be an argument: programs are function-free"
        self._found.error(term.span, message, hint or "arguments are constants and variables")
        return None

    def _number(self, term: Term) -> Expr | None:
        """An arithmetic expression, or None after an error."""
        if isinstance(term, Variable):
            return Var(next(self._fresh) if term.name == "_" else term.name, term.span)
        if isinstance(term, Number):
            return Const(constant_name(term), term.span)
        if isinstance(term, Compound) and (
            (len(term.args) == 2 and term.name in _ARITHMETIC) or (len(term.args) == 1 and term.name == "-")
        ):
            args = [self._number(arg) for arg in term.args]
            known = tuple(arg for arg in args if arg is not None)
            return Compute(term.name, known, term.span) if len(known) == len(args) else None
        if isinstance(term, Compound):
            self._found.error(term.name_span, f"{_kind(term)} cannot be computed here",
                              "comparisons compute with + - * / // mod")
        else:
            self._found.error(term.span, f"{term} is not a number", "compare names with == and \\==")
        return None


def has_repeats(atom: Atom) -> bool:
    """Whether two arguments are the same variable or the same constant."""
    return len({(type(arg), arg.name) for arg in atom.args}) < len(atom.args)


def _as_atom(term: Text) -> str:
    return str(Name(term.value, term.span))


def _kind(term: Term) -> str:
    """How messages call a term."""
    if isinstance(term, Compound):
        return f"the compound term {term.name}/{len(term.args)}"
    if isinstance(term, ListTerm) or str(term) == "[]":
        return "a list"
    if isinstance(term, Text):
        return "a string"
    kinds = {Number: "number", Variable: "variable"}
    return f"the {kinds.get(type(term), 'name')} {term}"
