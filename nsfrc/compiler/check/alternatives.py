"""Bodies with `;` and `=` to plain bodies.

    p(X) :- q(X, Y), (Y = red ; Y = blue, r(X)).

becomes two drafts

    p(X) :- q(X, red).
    p(X) :- q(X, blue), r(X).

An alternative that cannot hold (`fail`, `red = blue`, `1 > 2`) is dropped.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace

from nsfrc.compiler.check import arithmetic
from nsfrc.compiler.check.goals import Both, Counted, Either, Equal, Goal, Let, Not, Refused, Truth
from nsfrc.compiler.check.inner import Inner, arguments_in, names_in, substituted
from nsfrc.compiler.check.vocabulary import Vocabulary
from nsfrc.compiler.expressions import MAX_SIZE, fits
from nsfrc.compiler.ir import Atom, Compute, Const, Expr, Filter, Measured, Term, Var, measured_in
from nsfrc.errors import Span
from nsfrc.records import dataclass

MAX_ALTERNATIVES = 1000
MAX_GOALS = 100_000
MAX_BODY = 1000

Simple = Atom | Filter | Equal | Let | Truth | Refused | Not | Counted


@dataclass(frozen=True, slots=True)
class Draft:
    """A clause before its variables have types; `doubtful` variables occur in goals with errors.

    alternative: whether it is one way of several through a ';'.
    """

    head: Atom
    body: tuple[Atom, ...]
    filters: tuple[Filter, ...]
    span: Span
    doubtful: frozenset[str] = frozenset()
    alternative: bool = False

    @property
    def measured(self) -> tuple[Atom, ...]:
        """The numbers in its comparisons as atoms, whose arguments have types as those of other atoms do."""
        return tuple(Atom(one.name, one.args, one.span) for test in self.filters for one in test.measured)


class Dead(Exception):
    """An alternative that can never hold; the text says why, or is empty after an error."""


def drafts(head: Atom, body: Goal, span: Span, vocabulary: Vocabulary) -> list[Draft]:
    """The plain clauses of `head :- body`, in order, each followed by those of the goals within its goals."""
    count, goals, longest = _count(body)
    if longest > MAX_BODY:
        message = f"this body has {longest:,} goals (the limit is {MAX_BODY:,})"
        hint = "split it: give goals that belong together a predicate of their own"
        vocabulary.found.error("long-body", span, message, hint)
        vocabulary.spoilt.add(head.key)
        return []
    if count > MAX_ALTERNATIVES or count * goals > MAX_GOALS:
        message = f"the ';' of this clause stand for {count} clauses (the limit is {MAX_ALTERNATIVES})"
        hint = "name the alternatives: give each ';' a predicate of its own"
        vocabulary.found.error("too-many-alternatives", span, message, hint)
        vocabulary.spoilt.add(head.key)
        return []
    result: list[Draft] = []
    reasons: list[str] = []
    for alternative in _expand(body):
        try:
            first, *inner = _draft(head, alternative, span, vocabulary)
            result += [replace(first, alternative=count > 1), *inner]
        except Dead as dead:
            reasons.append(str(dead))
    if not result:
        vocabulary.spoilt.add(head.key)
        if all(reasons):
            vocabulary.found.error("never-fires", span, "this clause can never fire", reasons[0])
    return result


def _count(goal: Goal) -> tuple[int, int, int]:
    """How many alternatives a body has, how many goals it is written with, and how many the longest alternative has."""
    if not isinstance(goal, Both | Either):
        return 1, 1, 1
    counts = [_count(part) for part in goal.goals]
    total = sum(goals for _, goals, _ in counts)
    if isinstance(goal, Either):
        return sum(count for count, _, _ in counts), total, max(longest for _, _, longest in counts)
    product = 1
    for count, _, _ in counts:
        product = min(product * count, 10**9)
    return product, total, sum(longest for _, _, longest in counts)


def _expand(goal: Goal) -> list[list[Simple]]:
    """Disjunctive normal form, in the order in which Prolog would try it."""
    if isinstance(goal, Either):
        return [alternative for part in goal.goals for alternative in _expand(part)]
    if not isinstance(goal, Both):
        return [[goal]]
    result: list[list[Simple]] = [[]]
    for part in goal.goals:
        tails = _expand(part)
        if len(tails) == 1:
            for prefix in result:
                prefix += tails[0]
        else:
            result = [prefix + tail for prefix in result for tail in tails]
    return result


def _draft(head: Atom, goals: list[Simple], span: Span, vocabulary: Vocabulary) -> list[Draft]:
    """One plain clause, and those of its inner goals; raises Dead when it can never hold."""
    if any(isinstance(goal, Truth) and not goal.value for goal in goals):
        raise Dead("its body fails")
    doubtful = frozenset(name for goal in goals if isinstance(goal, Refused) for name in goal.variables)
    bindings = _solve(head, goals, vocabulary)
    new_head = _bind_atom(head, bindings)
    body = tuple(_bind_atom(goal, bindings) for goal in goals if isinstance(goal, Atom))
    within = [_bind_goal(goal, bindings) for goal in goals if isinstance(goal, Not | Counted)]
    typed = {variable.name for atom in (new_head, *body) for variable in atom.variables()}
    typed |= {name for goal in within for name in arguments_in(goal)} | _arguments(goals)
    tests, values = _tests(goals, typed, bindings, vocabulary)
    filters = [test for test in tests if not _decided(test, vocabulary)]
    names = frozenset(term.name for name in doubtful if isinstance(term := _walk(Var(name), bindings), Var))
    inner: list[Draft] = []
    within = [substituted(goal, lambda term: term, lambda expr: _put_in(expr, values)) for goal in within]
    computed = {name.name for goal in goals if isinstance(goal, Let)
                if isinstance(name := _walk(goal.variable, bindings), Var)}
    atoms, filters = _inner(new_head, body, filters, within, computed, vocabulary, inner)
    return [Draft(new_head, (*body, *atoms), tuple(filters), span, names), *inner]


def _inner(
    head: Atom, body: tuple[Atom, ...], filters: list[Filter], goals: list[Goal], computed: set[str],
    vocabulary: Vocabulary, made: list[Draft],
) -> tuple[list[Atom], list[Filter]]:
    """The atoms that stand for negations and counts, and the filters that are left; adds their clauses to `made`.

    computed: variables that `is` gives a value; those that are compared with numbers join them.
    """
    negations = [goal for goal in goals if isinstance(goal, Not)]
    counts = [goal for goal in goals if isinstance(goal, Counted)]
    if not negations and not counts:
        return [], filters
    mentioned = {variable.name for atom in (head, *body) for variable in atom.variables()}
    mentioned |= {arg.name for test in filters for one in measured_in(test.left, test.right) for arg in one.args
                  if isinstance(arg, Var)}
    numbers = {goal.number.name for goal in counts if isinstance(goal.number, Var)}
    # succ(M, N), \+ even(M): M is a variable of the clause; with M \== N it would more likely be a slip.
    computed = computed | {variable.name for test in filters if test.op not in ("==", "!=")
                           for variable in test.variables()} - numbers
    inner = Inner(head, mentioned | computed, numbers, vocabulary,
                  lambda new, goal, span: made.extend(drafts(new, goal, span, vocabulary)))
    mentioned |= {name for goal in negations for name in names_in(goal)}
    mentioned |= {name for goal in counts for name in names_in(goal.goal)}
    atoms, left = inner.counts(counts, filters, mentioned)
    return [inner.negation(goal) for goal in negations] + atoms, left


def _tests(
    goals: Iterable[Simple], typed: Container[str], bindings: dict[str, Term], vocabulary: Vocabulary
) -> tuple[list[Filter], dict[str, Expr]]:
    """The tests of a body, and what `is` gives to variables that are no argument, which is put in where they stand."""
    values: dict[str, Expr] = {}
    found: list[Filter] = []
    for goal in sorted(goals, key=_measures, reverse=True):
        if isinstance(goal, Let):
            value, name = _put_in(goal.value, values), _walk(goal.variable, bindings)
            if isinstance(name, Var) and name.name not in typed and name.name not in values:
                values[name.name] = value
            else:
                found.append(Filter("=:=", _put_in(name, values), value, goal.span))
    for goal in goals:
        if isinstance(goal, Filter):
            found.append(replace(goal, left=_put_in(goal.left, values), right=_put_in(goal.right, values)))
    # Parts are shared until they are bound: sizes are judged before anything is written out.
    bound = {name: _bind_expr(value, bindings) for name, value in values.items() if fits(value)}
    return [_bind_filter(test, bindings) for test in _small(found, vocabulary)], bound


def _measures(goal: Simple) -> bool:
    """`area(A, V)` says what V is wherever it stands in a body."""
    return isinstance(goal, Let) and isinstance(goal.value, Measured)


def _arguments(goals: Iterable[Simple]) -> set[str]:
    """Variables that numbers are measured of."""
    sides = [side for goal in goals for side in _sides(goal)]
    return {arg.name for one in measured_in(*sides) for arg in one.args if isinstance(arg, Var)}


def _sides(goal: Simple) -> tuple[Expr, ...]:
    return (goal.value,) if isinstance(goal, Let) else (goal.left, goal.right) if isinstance(goal, Filter) else ()


def _small(tests: Iterable[Filter], vocabulary: Vocabulary) -> Iterator[Filter]:
    """The tests, unless what `is` put into one made it too long to be written out."""
    for test in tests:
        if not fits(test.left, test.right):
            message = f"this comparison is computed from more than {MAX_SIZE:,} numbers, or nested too deep"
            vocabulary.found.error("long-expression", test.span, message, "compare in several steps")
            raise Dead("")
        yield test


def _put_in(expr: Expr, values: dict[str, Expr]) -> Expr:
    if isinstance(expr, Compute):
        return replace(expr, args=tuple(_put_in(arg, values) for arg in expr.args))
    return values.get(expr.name, expr) if isinstance(expr, Var) else expr


def _solve(head: Atom, goals: Iterable[Simple], vocabulary: Vocabulary) -> dict[str, Term]:
    """The bindings of all `=`; of two variables the one that occurs first keeps its name."""
    atoms = [head, *(goal for goal in goals if isinstance(goal, Atom))]
    rank: dict[str, int] = {}
    for atom in atoms:
        for variable in atom.variables():
            rank.setdefault(variable.name, len(rank))
    bindings: dict[str, Term] = {}
    for goal in goals:
        if not isinstance(goal, Equal):
            continue
        left, right = _walk(goal.left, bindings), _walk(goal.right, bindings)
        if isinstance(left, Const) and isinstance(right, Const):
            _same_constants(goal, left, right, vocabulary)
        elif isinstance(right, Var) and (
            isinstance(left, Const) or rank.get(left.name, len(rank)) <= rank.get(right.name, len(rank))
        ):
            if left != right:
                bindings[right.name] = left
        elif isinstance(left, Var):
            bindings[left.name] = right
    return bindings


def _same_constants(goal: Equal, left: Const, right: Const, vocabulary: Vocabulary) -> None:
    unknown = [constant for constant in (left, right) if constant.name not in vocabulary.homes]
    for constant in unknown:
        vocabulary.unknown_constant(constant.name, None, constant.span or goal.span)
    if left.name != right.name:
        raise Dead("" if unknown else f"{left} = {right} is never true")


def _walk(term: Term, bindings: dict[str, Term]) -> Term:
    while isinstance(term, Var) and term.name in bindings:
        term = bindings[term.name]
    return term


def _bind(term: Term, bindings: dict[str, Term]) -> Term:
    """What a variable is bound to; a renamed variable keeps the place where it was written."""
    found = _walk(term, bindings)
    return replace(found, span=term.span) if isinstance(found, Var) else found


def _bind_atom(atom: Atom, bindings: dict[str, Term]) -> Atom:
    if not bindings:
        return atom
    return replace(atom, args=tuple(_bind(arg, bindings) for arg in atom.args))


def _bind_goal(goal: Goal, bindings: dict[str, Term]) -> Goal:
    if not bindings or not isinstance(goal, Not | Counted):
        return goal
    return substituted(goal, lambda term: _bind(term, bindings), lambda expr: _bind_expr(expr, bindings))


def _bind_filter(test: Filter, bindings: dict[str, Term]) -> Filter:
    if not bindings:
        return test
    return replace(test, left=_bind_expr(test.left, bindings), right=_bind_expr(test.right, bindings))


def _bind_expr(expr: Expr, bindings: dict[str, Term]) -> Expr:
    if isinstance(expr, Compute):
        return replace(expr, args=tuple(_bind_expr(arg, bindings) for arg in expr.args))
    if isinstance(expr, Measured):
        return replace(expr, args=tuple(_bind(arg, bindings) for arg in expr.args))
    return _bind(expr, bindings)


def _decided(test: Filter, vocabulary: Vocabulary) -> bool:
    """Whether a test is known to hold; raises Dead when it is known to fail."""
    if isinstance(test.left, Var) and test.left == test.right and test.op in ("==", "!="):
        result = test.op == "=="
    elif test.measured or any(True for _ in test.variables()):
        return False
    else:
        try:
            result = arithmetic.holds(test)
        except (ArithmeticError, TypeError) as problem:
            vocabulary.found.error("no-value", test.span, f"this comparison has no value: {problem}")
            return True
    if not result:
        raise Dead(f"{test} is never true")
    return True
