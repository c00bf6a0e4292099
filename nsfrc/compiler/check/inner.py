r"""Goals within goals: negations and counts become predicates of their own.

    kp(X) :- in(O, X), \+ (in(P, X), larger(P, O)).

becomes, with the variables that the inner goal shares with the rest as arguments,

    kp(X) :- in(O, X), \+ 'kp#1'(X, O).           where \+ 'kp#1'(X, O) counts 'kp#1'(X, O) and wants 0
    'kp#1'(X, O) :- in(P, X), larger(P, O).

and in

    kp(X) :- aggregate_all(count, (in(O, X), color(O, red)), N), N >= 2.

what is counted has the inner goal's own variables as arguments too, so that every solution is an atom:

    kp(X) :- 'kp#1 >= 2'(X).                      which counts the atoms 'kp#1'(X, _)
    'kp#1'(X, O) :- in(O, X), color(O, red).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from nsfrc.compiler.check.goals import Both, Counted, Either, Equal, Goal, Let, Not, Refused
from nsfrc.compiler.check.linear import difference
from nsfrc.compiler.check.vocabulary import Vocabulary
from nsfrc.compiler.ir import (
    INNER,
    NUMBER,
    Atom,
    Compute,
    Const,
    Count,
    Expr,
    Filter,
    PredicateKey,
    Source,
    Term,
    Var,
    complement_of,
)
from nsfrc.errors import Span

Define = Callable[[Atom, Goal, Span], None]  # makes clauses of a head and a body


def names_in(goal: Goal) -> Iterator[str]:
    """The variables of a goal, in the order of the text, as often as they occur."""
    if isinstance(goal, Both | Either):
        for part in goal.goals:
            yield from names_in(part)
    elif isinstance(goal, Not):
        yield from names_in(goal.goal)
    elif isinstance(goal, Counted):
        yield from (*names_in(goal.goal), *_of(goal.number))
    elif isinstance(goal, Equal):
        yield from (*_of(goal.left), *_of(goal.right))
    elif isinstance(goal, Let):
        yield from (goal.variable.name, *_of(goal.value))
    elif isinstance(goal, Refused):
        yield from goal.variables
    elif isinstance(goal, Atom | Filter):
        yield from (variable.name for variable in goal.variables())


def arguments_in(goal: Goal) -> Iterator[str]:
    """The variables of a goal that stand where a constant could, not only in what is computed or compared."""
    if isinstance(goal, Both | Either):
        for part in goal.goals:
            yield from arguments_in(part)
    elif isinstance(goal, Not):
        yield from arguments_in(goal.goal)
    elif isinstance(goal, Counted):
        yield from (*arguments_in(goal.goal), *_of(goal.number))
    elif isinstance(goal, Let):
        yield goal.variable.name
    elif isinstance(goal, Atom | Equal | Refused):
        yield from names_in(goal)


def _assigned(goal: Goal) -> Iterator[str]:
    """The variables that a solution of a goal assigns: those of its atoms, but for goals within it, which have their
    own, and for what follows from others."""
    if isinstance(goal, Both | Either):
        for part in goal.goals:
            yield from _assigned(part)
    elif isinstance(goal, Atom | Refused):
        yield from names_in(goal)


def _of(expr: Expr) -> Iterator[str]:
    if isinstance(expr, Compute):
        for arg in expr.args:
            yield from _of(arg)
    elif isinstance(expr, Var):
        yield expr.name


def substituted(goal: Goal, term: Callable[[Term], Term], expr: Callable[[Expr], Expr]) -> Goal:
    """A goal with `term` applied to what stands in atoms and `=`, and `expr` to what is computed or compared."""
    if isinstance(goal, Both | Either):
        return replace(goal, goals=tuple(substituted(part, term, expr) for part in goal.goals))
    if isinstance(goal, Not):
        return replace(goal, goal=substituted(goal.goal, term, expr))
    if isinstance(goal, Counted):
        return replace(goal, goal=substituted(goal.goal, term, expr), number=term(goal.number))
    if isinstance(goal, Atom):
        return replace(goal, args=tuple(term(arg) for arg in goal.args))
    if isinstance(goal, Equal):
        return replace(goal, left=term(goal.left), right=term(goal.right))
    if isinstance(goal, Filter):
        return replace(goal, left=expr(goal.left), right=expr(goal.right))
    if isinstance(goal, Let):
        named = term(goal.variable)
        value = expr(goal.value)
        return Let(named, value, goal.span) if isinstance(named, Var) else Filter("=:=", named, value, goal.span)
    return goal


class Inner:
    """Takes the inner goals of one plain body apart.

    given, numbers: the variables of the clause, and those that counts give a number; whatever else an inner goal
    mentions is its own.
    """

    def __init__(
        self, head: Atom, given: set[str], numbers: set[str], vocabulary: Vocabulary, define: Define
    ) -> None:
        self._name, self._vocabulary, self._define = head.name.split(INNER)[0], vocabulary, define
        self._given, self._bound = given, given | numbers

    def negation(self, goal: Not) -> Atom:
        """The atom that holds where the inner goal does not."""
        inner = goal.goal
        if isinstance(inner, Atom) and self._has_complement(inner):
            atom = inner
        else:
            atom = self._clauses(inner, self._shared(inner), goal.span)
        return Atom(self._complement(atom.key, goal.span)[0], atom.args, atom.span)

    def counts(
        self, goals: Sequence[Counted], filters: Sequence[Filter], elsewhere: set[str]
    ) -> tuple[list[Atom], list[Filter]]:
        """The atoms that stand for counts, and the filters that are left.

        elsewhere: variables of the head, of atoms and of other inner goals, which take a count as an argument.
        """
        free = {goal.number.name for goal in goals if isinstance(goal.number, Var)} - elsewhere
        goals, equal = _numbers_apart(goals, free)
        solutions = [(goal, *self._solutions(goal)) for goal in goals]
        free = {goal.number.name for goal in goals if isinstance(goal.number, Var)} - elsewhere
        atoms, left = [], [*filters, *equal]
        for goal, source, shared in solutions:
            number = goal.number
            if isinstance(number, Var) and number.name not in free:
                atoms.append(self._counting(f"count {source.key[0]}", (*shared, number), Count(source), goal.span))
                continue
            tests = [Filter("=:=", Var(NUMBER), number, goal.span)] if isinstance(number, Const) else []
            for test in list(left):
                if {variable.name for variable in test.variables()} == {getattr(number, "name", None)}:
                    left.remove(test)
                    tests.append(_on_number(test))
            if tests:
                name = f"{source.key[0]} {', '.join(map(_brief, tests))}"
                atoms.append(self._counting(name, shared, Count(source, tests=tuple(tests)), goal.span))
        by_name = {goal.number.name: (source, shared) for goal, source, shared in solutions if goal.number.name in free}
        for test in list(left):
            compared = {variable.name for variable in test.variables()} & free
            if compared:
                left.remove(test)
                atoms += self._comparison(test, compared, by_name)
        return atoms, left

    def _comparison(
        self, test: Filter, compared: set[str], by_name: dict[str, tuple[Source, tuple[Term, ...]]]
    ) -> list[Atom]:
        """Two counts compared, as a test on their difference."""
        found = difference(test)
        if found is None or {found.plus, found.minus} != compared:
            message = f"{' and '.join(sorted(compared))} cannot be compared like this: {test}"
            hint = ("compare a count with a number, or with another count as in N > M + 1; to compare it with a "
                    "variable, make it an argument of a predicate of its own")
            self._vocabulary.found.error("bad-count", test.span, message, hint)
            return [self._counting(f"count {source.key[0]}", shared, Count(source, tests=(_ANY,)), test.span)
                    for source, shared in map(by_name.__getitem__, compared)]  # which give variables their types
        (plus, first), (minus, second) = by_name[found.plus], by_name[found.minus]
        shared = tuple(dict.fromkeys((*first, *second)))
        sources = [Source(source.key, tuple(shared.index(term) for term in own))
                   for source, own in ((plus, first), (minus, second))]
        self._complement(minus.key, test.span)
        wanted = Filter(test.op, Var(NUMBER), Const(str(found.least)))
        name = f"{plus.key[0]} - {minus.key[0]} {test.op} {found.least}"
        return [self._counting(name, shared, Count(sources[0], sources[1], (wanted,)), test.span)]

    def _solutions(self, goal: Counted) -> tuple[Source, tuple[Term, ...]]:
        """A predicate with an atom for every solution, and the variables that it shares with the rest."""
        shared = self._shared(goal.goal)
        local = [name for name in dict.fromkeys(_assigned(goal.goal)) if name not in {v.name for v in shared}]
        number = goal.number.name
        if number not in self._given and number in set(names_in(goal.goal)):
            message = f"{goal.number} is the number of solutions and cannot be counted itself"
            self._vocabulary.found.error("bad-count", goal.span, message)
        atom = self._clauses(goal.goal, (*shared, *(Var(name, goal.span) for name in local)), goal.span)
        return Source(atom.key, tuple(range(len(shared)))), shared

    def _shared(self, goal: Goal) -> tuple[Var, ...]:
        return tuple(Var(name) for name in dict.fromkeys(names_in(goal)) if name in self._bound)

    def _has_complement(self, atom: Atom) -> bool:
        """Whether a goal is an atom whose variables are all bound outside, and never one that has an object twice.

        There is no such atom to look at, so that what is true, that it does not hold, needs a predicate of its own.
        """
        variables = [variable.name for variable in atom.variables()]
        homes = (self._vocabulary.homes.get(arg.name, ()) for arg in atom.args if isinstance(arg, Const))
        named = any(self._vocabulary.apart(home) for of in homes for home in of)
        return (all(name in self._bound for name in variables) and len(set(variables)) == len(variables)
                and not (named and len(atom.args) > 1))

    def _clauses(self, goal: Goal, arguments: Iterable[Var], span: Span) -> Atom:
        """Clauses of a new predicate with this body; returns its head."""
        arguments = tuple(replace(variable, span=variable.span or span) for variable in arguments)
        number = next(n for n in range(1, 10**9) if (f"{self._name}{INNER}{n}") not in self._vocabulary.arities)
        head = Atom(f"{self._name}{INNER}{number}", arguments, span)
        self._vocabulary.define(head.key, span)
        self._define(head, goal, span)
        return head

    def _complement(self, key: PredicateKey, span: Span | None) -> PredicateKey:
        none = Filter("=:=", Var(NUMBER), Const("0"))
        return self._counted(complement_of(key), Count(Source(key, tuple(range(key[1]))), tests=(none,)), span)

    def _counting(self, name: str, args: tuple[Term, ...], count: Count, span: Span | None) -> Atom:
        self._counted((name, len(args)), count, span)
        return Atom(name, args, span)

    def _counted(self, key: PredicateKey, count: Count, span: Span | None) -> PredicateKey:
        if span is not None:
            self._vocabulary.count(key, count, span)
        return key


def _numbers_apart(goals: Sequence[Counted], free: set[str]) -> tuple[list[Counted], list[Filter]]:
    """Counts that share a number each with one of its own, and the tests that these are equal."""
    seen: set[str] = set()
    result: list[Counted] = []
    equal: list[Filter] = []
    for goal in goals:
        number = goal.number
        if isinstance(number, Var) and number.name in free & seen:
            other = Var(f"{number.name} {len(result)}", number.span)  # which no text can say
            equal.append(Filter("=:=", number, other, goal.span))
            result.append(replace(goal, number=other))
            continue
        if isinstance(number, Var):
            seen.add(number.name)
        result.append(goal)
    return result, equal


_ANY = Filter(">=", Var(NUMBER), Const("0"))
_MIRRORED = {"<": ">", ">": "<", "=<": ">=", ">=": "=<", "=:=": "=:=", "=\\=": "=\\="}


def _brief(test: Filter) -> str:
    """`>= 2` for N >= 2."""
    return f"{test.op} {test.right}" if test.left == Var(NUMBER) else f"({test})"


def _on_number(test: Filter) -> Filter:
    """A test on a count's variable as one on NUMBER, which stands on the left where it can."""

    def put(expr: Expr) -> Expr:
        if isinstance(expr, Compute):
            return replace(expr, args=tuple(put(arg) for arg in expr.args))
        return Var(NUMBER) if isinstance(expr, Var) else expr

    left, right = put(test.left), put(test.right)
    mirrored = right == Var(NUMBER) and test.op in _MIRRORED
    return replace(test, op=_MIRRORED[test.op], left=right, right=left) if mirrored else replace(
        test, left=left, right=right)
