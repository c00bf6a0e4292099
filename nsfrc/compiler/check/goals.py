"""Surface terms to atoms and goals, refusing what the language does not have.

    color(X, red)    ->  Atom
    X \\= Y, X < 3    ->  Filter
    area(X) > 0.3    ->  Filter with a Measured in it, made an atom by `typed`; so is area(X, V) with V > 0.3
    X = Y            ->  Equal, solved by `alternatives`
    N is X + Y       ->  Let, a Filter where N has a type, else put in wherever N stands
    (a, b ; c)       ->  Either((Both((a, b)), c))
    fail             ->  Truth(False)
    \\+ a             ->  Not(a); forall(a, b) is \\+ (a, \\+ b)
    aggregate_all(count, a, N), findall(_, a, L), length(L, N)   ->  Counted(a, N)
    write(X)         ->  Refused, after an error
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from nsfrc.compiler.check import measures
from nsfrc.compiler.check.builtin import refusal, remedy
from nsfrc.compiler.check.declare import MAX_ARGUMENTS, constant_name
from nsfrc.compiler.check.vocabulary import Vocabulary
from nsfrc.compiler.ir import OPERATIONS, Atom, Compute, Const, Expr, Filter, Measured, Var, is_number, quoted
from nsfrc.compiler.ir import Term as Argument
from nsfrc.compiler.syntax import Compound, ListTerm, Name, Number, Term, Text, Variable, calls, spine, variables
from nsfrc.errors import Span
from nsfrc.records import dataclass

_SAME = {"==": "==", "\\==": "!=", "\\=": "!=", "dif": "!="}
_NUMERIC = {"=:=", "=\\=", "<", ">", "=<", ">="}
_INNER = {("\\+", 1), ("forall", 2), ("aggregate_all", 3)}
_SPOKEN = {"\\+": "negation (\\+)", "forall": "forall/2", "aggregate_all": "counting"}
_COMPUTED = {("is", 2), ("between", 3), ("succ", 2), ("plus", 3)}


@dataclass(frozen=True, slots=True)
class Equal:
    """`left = right`."""

    left: Argument
    right: Argument
    span: Span


@dataclass(frozen=True, slots=True)
class Let:
    """`variable is value`."""

    variable: Var
    value: Expr
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


@dataclass(frozen=True, slots=True)
class Not:
    """`\\+ goal`."""

    goal: Goal
    span: Span


@dataclass(frozen=True, slots=True)
class Counted:
    """`aggregate_all(count, goal, number)`."""

    goal: Goal
    number: Argument
    span: Span


Goal = Atom | Filter | Equal | Let | Truth | Refused | Not | Counted | Both | Either


class GoalReader:
    """Reads the terms of one sentence; every `_` becomes a variable of its own."""

    def __init__(self, vocabulary: Vocabulary, sentence: Term):
        self._vocabulary, self._found = vocabulary, vocabulary.found
        self._occurrences = Counter(variable.name for variable in variables(sentence))
        self._used = set(self._occurrences)
        self._fresh = self._fresh_names()

    def _fresh_names(self) -> Iterator[str]:
        number = 0
        while True:
            number += 1
            if f"_{number}" not in self._used:
                yield f"_{number}"

    def atom(self, term: Term, what: str) -> Atom | None:
        """An atom of the program's own; `what` (head, fact, goal, target) is for messages."""
        if not isinstance(term, Name | Compound) or (isinstance(term, Name) and term.name in ("[]", "{}")):
            self._found.error("not-a-predicate", term.span, f"a {what} must be a predicate, not {_kind(term)}")
            return None
        args = term.args if isinstance(term, Compound) else ()
        if len(args) > MAX_ARGUMENTS:
            message = f"{quoted(term.name)} has {len(args)} arguments (the limit is {MAX_ARGUMENTS})"
            self._found.error("too-many-arguments", term.span, message)
            return None
        read = [self._argument(arg) for arg in args]
        if any(arg is None for arg in read):
            return None
        return Atom(term.name, tuple(arg for arg in read if arg is not None), term.span)

    def goal(self, term: Term) -> Goal:
        """A clause body."""
        if isinstance(term, Compound) and len(term.args) == 2 and term.name in (",", ";"):
            parts = list(spine(term, term.name))
            goals = self._lengths(parts) if term.name == "," else []
            goals += [self.goal(part) for part in parts]
            return Both(tuple(goals)) if term.name == "," else Either(tuple(goals))
        result = self._simple_goal(term)
        return Refused(frozenset(v.name for v in variables(term))) if result is None else result

    def _simple_goal(self, term: Term) -> Goal | None:
        """One goal, or None after an error."""
        if isinstance(term, Variable):
            message = f"calling a variable ({term}) is not supported yet"
            self._found.error("not-supported", term.span, message, remedy("call"))
            return None
        if not isinstance(term, Name | Compound):
            self._found.error("not-a-predicate", term.span, f"a goal must be a predicate, not {_kind(term)}")
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
        if (name, len(args)) in _COMPUTED and (
            name == "is" or not self._vocabulary.knows((name, len(args)))
            or any(isinstance(arg, Number) for arg in args)  # between(2, 4, N), where between/3 of objects is known too
        ):
            return self._computed(name, args, term.span)
        if (name, len(args)) in _INNER and (name == "\\+" or not self._vocabulary.knows((name, len(args)))):
            return self._inner(name, args, term.span)
        if len(args) == 2 and name in (":-", "-->", "::"):
            self._found.error("bad-goal", span, f"'{name}' is not allowed in a clause body")
            return None
        key = (name, len(args))
        if isinstance(term, Compound) and measures.related(key, self._vocabulary):
            return self._relation(term)
        reason = refusal(key, self._vocabulary.knows(key))
        if reason:
            self._found.error(reason.code, span, reason.message, remedy(name))
            return None
        if measures.find(key, self._vocabulary):
            hint = f"compare it, as in {term} > 0.3, or write {quoted(name)}(..., V), V > 0.3"
            self._found.error("bad-goal", span, f"{quoted(name)} is a number, which does not hold by itself", hint)
            return None
        return self.atom(term, "goal")

    def _inner(self, name: str, args: tuple[Term, ...], span: Span) -> Goal | None:
        """Negations and counts; they look at finished values, which only `anchored` has."""
        if self._vocabulary.needs_anchored(span, _SPOKEN[name]):
            return None
        if name == "\\+":
            return Not(self.goal(args[0]), span)
        if name == "forall":
            return Not(Both((self.goal(args[0]), Not(self.goal(args[1]), args[1].span))), span)
        template, goal, number = args
        if not (isinstance(template, Name) and template.name == "count"):
            hint = "aggregate_all(count, Goal, N) counts; of the largest say that no other is larger: \\+ larger(P, O)"
            self._found.error("not-supported", template.span, f"aggregate_all({template}, …) is not supported", hint)
            return None
        return self._count(goal, number, span)

    def _count(self, goal: Term, number: Term, span: Span) -> Goal | None:
        read, counted = self._argument(number), self.goal(goal)
        if read is None:
            return None
        if isinstance(read, Const) and not is_number(read.name):
            self._found.error("not-a-number", number.span, f"a count is a number, not {read}")
            return None
        return Counted(counted, read, span)

    def _lengths(self, parts: list[Term]) -> list[Goal]:
        """Take `findall(T, Goal, L), length(L, N)` out of a conjunction where nothing else uses L: counts."""
        lists = {}
        for part in parts:
            if calls(part, "findall", 3) and isinstance(part.args[2], Variable):
                lists[part.args[2].name] = part
        counts: list[Goal] = []
        for part in list(parts):
            if not (calls(part, "length", 2) and isinstance(part.args[0], Variable)):
                continue
            name = part.args[0].name
            if name in lists and self._occurrences[name] == 2 and not self._vocabulary.knows(("length", 2)):
                parts.remove(part)
                found = lists.pop(name)
                parts.remove(found)
                if not self._vocabulary.needs_anchored(found.span, _SPOKEN["aggregate_all"]):
                    goal = self._count(found.args[1], part.args[1], found.span)
                    counts += [goal] if goal else []
        return counts

    def _relation(self, term: Compound) -> Goal | None:
        """`area(A, V)`, which is `V is area(A)`."""
        value, number = self._number(term.args[-1]), self._measured(term, term.args[:-1])
        if value is None or number is None:
            return None
        return Let(value, number, term.span) if isinstance(value, Var) else Filter("=:=", number, value, term.span)

    def _measured(self, term: Compound, args: tuple[Term, ...]) -> Expr | None:
        """A number of objects or of the image, or None after an error."""
        if self._vocabulary.needs_anchored(term.span, "a measured number"):
            return None
        read = [self._argument(arg) for arg in args]
        known = tuple(arg for arg in read if arg is not None)
        return Measured(term.name, known, term.span) if len(known) == len(read) else None

    def _comparison(self, name: str, args: tuple[Term, ...], span: Span) -> Goal | None:
        left, right = self._argument(args[0]), self._argument(args[1])
        if left is None or right is None:
            return None
        return Equal(left, right, span) if name == "=" else Filter(_SAME[name], left, right, span)

    def _computed(self, name: str, args: tuple[Term, ...], span: Span) -> Goal | None:
        """Prolog's predicates of whole numbers, as tests on the constants of number types."""
        read = [term for term in map(self._number, args) if term is not None]
        if len(read) < len(args):
            return None
        first, second, *rest = read
        if name == "between":
            return Both((Filter("=<", first, rest[0], span), Filter("=<", rest[0], second, span)))
        if name == "succ":
            return self._let(second, Compute("+", (first, Const("1")), span), span)
        if name == "plus":
            return self._let(rest[0], Compute("+", (first, second), span), span)
        return self._let(first, second, span)

    def _let(self, name: Expr, value: Expr, span: Span) -> Goal:
        return Let(name, value, span) if isinstance(name, Var) else Filter("=:=", name, value, span)

    def _argument(self, term: Term) -> Argument | None:
        """A variable or a constant, or None after an error."""
        if isinstance(term, Variable):
            return Var(next(self._fresh) if term.name == "_" else term.name, term.span)
        if isinstance(term, Number) or (isinstance(term, Name) and term.name not in ("[]", "{}")):
            return Const(constant_name(term), term.span)
        hint = f"write {_as_atom(term)} without double quotes" if isinstance(term, Text) else None
        if isinstance(term, Compound) and measures.find((term.name, len(term.args)), self._vocabulary):
            hint = f"numbers are compared, as in {term} > 0.3 or {term} =:= 0.3"
        message = f"{_kind(term)} cannot be an argument: programs are function-free"
        self._found.error("bad-argument", term.span, message, hint or "arguments are constants and variables")
        return None

    def _number(self, term: Term) -> Expr | None:
        """An arithmetic expression, or None after an error."""
        if isinstance(term, Variable):
            return Var(next(self._fresh) if term.name == "_" else term.name, term.span)
        if isinstance(term, Number):
            return Const(constant_name(term), term.span)
        if isinstance(term, Compound) and len(term.args) in OPERATIONS.get(term.name, ()):
            args = [self._number(arg) for arg in term.args]
            known = tuple(arg for arg in args if arg is not None)
            return Compute(term.name, known, term.span) if len(known) == len(args) else None
        if isinstance(term, Compound) and measures.find((term.name, len(term.args)), self._vocabulary):
            return self._measured(term, term.args)
        if isinstance(term, Compound):
            measures.refuse_unknown(term, self._vocabulary)
        else:
            self._found.error("not-a-number", term.span, f"{term} is not a number", "compare names with == and \\==")
        return None


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
