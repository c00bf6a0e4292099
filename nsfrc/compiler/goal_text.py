r"""Clauses and atoms as a user would write them: negations and counts as goals.

What `check.inner` made predicates of is put back into the text that they stand for:

    largest(X) :- in(O,X), \+ 'largest#1'(X,O).      →   largest(X) :- in(O,X), \+ (in(P,X), larger(P,O)).
    two(X) :- 'two#1 >= 2'(X).                       →   two(X) :- aggregate_all(count, (in(O,X), red(O)), N), N >= 2.

and, shorter, where values are explained:

    \+ 'largest#1'(img,obj1)                         →   \+ (in(P,img), larger(P,obj1))
    'two#1 >= 2'(img)                                →   count(in(O,img), red(O)) >= 2
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from nsfrc.compiler import ir
from nsfrc.records import dataclass

_UNNAMED = re.compile(r"_[0-9]+")  # what `check` calls a `_`
_BETWEEN = (">=", "=<")
Say = Callable[[Sequence[ir.Atom], Iterable[str]], str]  # goals and tests as text


@dataclass(frozen=True)
class Alternative:
    """One clause of an inner goal with the arguments of an atom put in: its goals, and the tests among them."""

    body: tuple[ir.Atom, ...]
    tests: tuple[str, ...]


class GoalText:
    """The text of clauses and atoms of one program."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        counts = [predicate.count for predicate in program.predicates if predicate.count]
        looked_at = {source.key for count in counts for source in (count.of, count.less) if source}
        self.inner = {key for key in looked_at if re.search(rf"{ir.INNER}[0-9]+$", key[0])}
        # How many arguments of what is counted are given from outside; of what is negated all.
        self._given = {source.key: len(source.args) for count in counts for source in (count.of, count.less) if source}
        self._clauses: dict[ir.PredicateKey, list[ir.Clause]] = {key: [] for key in self.inner}
        for clause in program.clauses:
            if clause.head.key in self.inner:
                self._clauses[clause.head.key].append(clause)

    def clause(self, clause: ir.Clause) -> str:
        """A clause as it may stand in a program; that of an inner goal keeps its name for a head."""
        if not any(self.count_of(atom) for atom in clause.body):
            return str(clause)
        return f"{clause.head} :- {self._goals(clause.body, map(str, clause.filters), _variables(clause))}."

    def goal(self, atom: ir.Atom) -> str:
        """An atom as reasons speak of it."""
        count = self.count_of(atom)
        if count is None:
            return self.body(atom) if atom.key in self.inner else _plain(atom)
        negated = self.negated(atom)
        if negated is not None:
            return self._negation(negated, self._short)
        counted = [f"count({self.body(one)})" for one in self.counted(atom)]
        if count.less is not None:
            return " and ".join(_compared(test, *counted) for test in count.tests)
        if not count.tests:
            return f"{counted[0]} =:= {atom.args[-1]}"
        return _tested(count.tests, counted[0])

    def count_of(self, atom: ir.Atom) -> ir.Count | None:
        return self.program.predicate(atom.key).count

    def negated(self, atom: ir.Atom) -> ir.Atom | None:
        """What a negation is about; None for any other atom."""
        count = self.count_of(atom)
        if count is None or ir.complement_of(count.of.key) != atom.key:
            return None
        return ir.Atom(count.of.key[0], atom.args)

    def counted(self, atom: ir.Atom) -> list[ir.Atom]:
        """What a count counts, and what it takes away, with the variables of the goals for those that run."""
        count = self.count_of(atom)
        assert count is not None
        found = []
        for source in (count.of, count.less):
            if source is not None:
                shared = tuple(atom.args[i] for i in source.args)
                found.append(ir.Atom(source.key[0], shared + self._local(source)))
        return found

    def alternatives(self, atom: ir.Atom) -> list[Alternative]:
        """The clauses of an inner goal that may hold for the arguments of this atom."""
        found = (_put_in(clause, atom) for clause in self._clauses[atom.key])
        return [alternative for alternative in found if alternative is not None]

    def own_variables(self, atom: ir.Atom) -> dict[str, list[str]]:
        """The variables that occur within an inner goal only, by datatype."""
        given = {arg.name for arg in atom.args if isinstance(arg, ir.Var)} - self._running(atom)
        found: dict[str, list[str]] = {}
        for clause in self._clauses.get(atom.key, []):
            for name, datatype in clause.types:
                if name not in given and name not in found.setdefault(datatype, []):
                    found[datatype].append(name)
        return {datatype: names for datatype, names in found.items() if names}

    def shares(self, atom: ir.Atom, datatype: str) -> bool:
        """Whether an inner goal has something of this type from outside."""
        types = self.program.predicate(atom.key).types
        running = self._running(atom)
        return any(name == datatype and str(arg) not in running for name, arg in zip(types, atom.args, strict=True))

    def _running(self, atom: ir.Atom) -> set[str]:
        """The variables among the arguments of an atom that is counted which tell its solutions apart."""
        given = self._given.get(atom.key, len(atom.args))
        return {arg.name for arg in atom.args[given:] if isinstance(arg, ir.Var)}

    def every(self, atom: ir.Atom) -> tuple[Alternative, ir.Atom] | None:
        """`\\+ (G, \\+ h)` as G and h: what `forall(G, h)` is; None for negations of another form."""
        alternatives = self.alternatives(atom) if atom.key in self.inner else []
        if len(alternatives) != 1:
            return None
        one = alternatives[0]
        negated = [goal for goal in one.body if self.negated(goal)]
        if len(negated) != 1 or len(one.body) == 1:
            return None
        then = self.negated(negated[0])
        assert then is not None
        return replace(one, body=tuple(goal for goal in one.body if goal is not negated[0])), then

    def body(self, atom: ir.Atom) -> str:
        """What is negated or counted, as reasons speak of it: the goals of an inner goal, or an atom."""
        return self._body(atom, self._short)

    def _short(self, body: Sequence[ir.Atom], tests: Iterable[str]) -> str:
        return ", ".join((*map(self.goal, body), *tests))

    def _body(self, atom: ir.Atom, say: Say) -> str:
        if atom.key not in self.inner:
            return say([atom], ())
        texts = [say(one.body, one.tests) or "true" for one in self.alternatives(atom)]
        return " ; ".join(texts) or "fail"

    def _negation(self, atom: ir.Atom, say: Say) -> str:
        every = self.every(atom)
        if every is None:
            return f"\\+ {_bracketed(self._body(atom, say))}"
        given, then = every
        return f"forall({_bracketed(say(given.body, given.tests))}, {_bracketed(self._body(then, say))})"

    def _local(self, source: ir.Source) -> tuple[ir.Term, ...]:
        """The variables of an inner goal that are its own."""
        for clause in self._clauses.get(source.key, []):
            return clause.head.args[len(source.args):]
        return tuple(ir.Var("_") for _ in range(source.key[1] - len(source.args)))

    def _goals(self, body: Sequence[ir.Atom], tests: Iterable[str], taken: set[str]) -> str:
        """Goals as Prolog text; `taken`: names that a count's number cannot have, to which it adds its own."""
        goals = [text for atom in body for text in self._written(atom, taken)]
        return ", ".join((*goals, *tests)) or "true"

    def _written(self, atom: ir.Atom, taken: set[str]) -> Iterator[str]:
        count, say = self.count_of(atom), partial(self._goals, taken=taken)
        if count is None:
            yield _plain(atom)
        elif (negated := self.negated(atom)) is not None:
            yield self._negation(negated, say)
        else:
            numbers = []
            for counted in self.counted(atom):
                free = (name for name in _names() if name not in taken)
                numbers.append(next(free) if count.tests else str(atom.args[-1]))
                taken.add(numbers[-1])
                yield f"aggregate_all(count, {_bracketed(self._body(counted, say))}, {numbers[-1]})"
            for test in count.tests:
                yield _compared(test, *numbers) if count.less else str(_renamed(test, numbers[0]))


def _variables(clause: ir.Clause) -> set[str]:
    """The names of a clause's variables."""
    return {name for name, _ in clause.types}


def _names() -> Iterator[str]:
    yield from ("N", "M")
    yield from (f"N{i}" for i in range(1, 10**9))


def _put_in(clause: ir.Clause, atom: ir.Atom) -> Alternative | None:
    """A clause with the arguments of an atom for those of its head; None where these are different constants."""
    bound: dict[str, ir.Term] = {}
    tests = []
    for own, given in zip(clause.head.args, atom.args, strict=True):
        there = bound.setdefault(own.name, given) if isinstance(own, ir.Var) else own
        if isinstance(there, ir.Const) and isinstance(given, ir.Const) and there != given:
            return None
        if there != given:
            tests.append(f"{given} = {there}")
    put = partial(_substituted, bound=bound)
    body = tuple(replace(goal, args=tuple(put(arg) for arg in goal.args)) for goal in clause.body)
    tests += [str(replace(test, left=_computed(test.left, bound), right=_computed(test.right, bound)))
              for test in clause.filters]
    return Alternative(body, tuple(tests))


def _substituted(term: ir.Term, bound: Mapping[str, ir.Term]) -> ir.Term:
    return bound.get(term.name, term) if isinstance(term, ir.Var) else term


def _computed(expr: ir.Expr, bound: Mapping[str, ir.Term]) -> ir.Expr:
    if isinstance(expr, ir.Compute):
        return replace(expr, args=tuple(_computed(arg, bound) for arg in expr.args))
    if isinstance(expr, ir.Measured):
        return replace(expr, args=tuple(_substituted(arg, bound) for arg in expr.args))
    return _substituted(expr, bound)


def _plain(atom: ir.Atom) -> str:
    """An atom with `_` for the variables that were written so."""
    args = ["_" if isinstance(arg, ir.Var) and _UNNAMED.fullmatch(arg.name) else str(arg) for arg in atom.args]
    return ir.atom_text(atom.name, args)


def _bracketed(goals: str) -> str:
    """Several goals in parentheses; one goal has its commas within its own."""
    depth = 0
    for character in goals:
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and character in ",;":
            return f"({goals})"
    return goals


def _renamed(test: ir.Filter, name: str) -> ir.Filter:
    bound = {ir.NUMBER: ir.Var(name)}
    return replace(test, left=_computed(test.left, bound), right=_computed(test.right, bound))


def _tested(tests: Sequence[ir.Filter], counted: str) -> str:
    """`count(…) >= 2`, `count(…) in 2..4`."""
    ends = {test.op: str(test.right) for test in tests if test.left == ir.Var(ir.NUMBER)}
    if len(tests) == 2 and tuple(sorted(ends, reverse=True)) == _BETWEEN:
        return f"{counted} in {ends['>=']}..{ends['=<']}"
    return " and ".join(str(_renamed(test, counted)) for test in tests)


def _compared(test: ir.Filter, left: str, right: str) -> str:
    """A test on the difference of two counts: `N > M + 1`."""
    number = str(test.right)
    more = "" if number == "0" else f" - {number[1:]}" if number.startswith("-") else f" + {number}"
    return f"{left} {test.op} {right}{more}"
