"""Bodies with `;` and `=` to plain bodies.

    p(X) :- q(X, Y), (Y = red ; Y = blue, r(X)).

becomes two drafts

    p(X) :- q(X, red).
    p(X) :- q(X, blue), r(X).

An alternative that cannot hold (`fail`, `red = blue`, `1 > 2`) is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from nsfrc.check import arithmetic
from nsfrc.check.goals import Both, Either, Equal, Goal, Refused, Truth, has_repeats
from nsfrc.check.vocabulary import Vocabulary
from nsfrc.errors import Span
from nsfrc.ir import Atom, Compute, Const, Expr, Filter, Term, Var

MAX_ALTERNATIVES = 1000
MAX_GOALS = 100_000

Simple = Atom | Filter | Equal | Truth | Refused


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


class Dead(Exception):
    """An alternative that can never hold; the text says why, or is empty after an error."""


def drafts(head: Atom, body: Goal, span: Span, vocabulary: Vocabulary) -> list[Draft]:
    """The plain clauses of `head :- body`, in order."""
    count, goals = _count(body)
    if count > MAX_ALTERNATIVES or count * goals > MAX_GOALS:
        message = f"the ';' of this clause stand for {count} clauses (the limit is {MAX_ALTERNATIVES})"
        vocabulary.found.error(span, message, "name the alternatives: give each ';' a predicate of its own")
        vocabulary.spoilt.add(head.key)
        return []
    result: list[Draft] = []
    reasons: list[str] = []
    for alternative in _expand(body):
        try:
            result.append(replace(_draft(head, alternative, span, vocabulary), alternative=count > 1))
        except Dead as dead:
            reasons.append(str(dead))
    if not result:
        vocabulary.spoilt.add(head.key)
        if all(reasons):
            vocabulary.found.error(span, "this clause can never fire", reasons[0])
    return result


def _count(goal: Goal) -> tuple[int, int]:
    """How many alternatives a body has, and how many goals it is written with."""
    if not isinstance(goal, Both | Either):
        return 1, 1
    counts = [_count(part) for part in goal.goals]
    total = sum(goals for _, goals in counts)
    if isinstance(goal, Either):
        return sum(count for count, _ in counts), total
    product = 1
    for count, _ in counts:
        product = min(product * count, 10**9)
    return product, total


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


def _draft(head: Atom, goals: list[Simple], span: Span, vocabulary: Vocabulary) -> Draft:
    """One plain clause; raises Dead when it can never hold."""
    if any(isinstance(goal, Truth) and not goal.value for goal in goals):
        raise Dead("its body fails")
    doubtful = frozenset(name for goal in goals if isinstance(goal, Refused) for name in goal.variables)
    bindings = _solve(head, goals, vocabulary)
    new_head = _bind_atom(head, bindings)
    body = tuple(_bind_atom(goal, bindings) for goal in goals if isinstance(goal, Atom))
    for atom in (new_head, *body):
        if has_repeats(atom):
            raise Dead(f"{atom} has the same argument twice")
    filters = [_bind_filter(goal, bindings) for goal in goals if isinstance(goal, Filter)]
    kept = tuple(test for test in filters if not _decided(test, vocabulary))
    names = frozenset(term.name for name in doubtful if isinstance(term := _walk(Var(name), bindings), Var))
    return Draft(new_head, body, kept, span, names)


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


def _bind_filter(test: Filter, bindings: dict[str, Term]) -> Filter:
    if not bindings:
        return test
    return replace(test, left=_bind_expr(test.left, bindings), right=_bind_expr(test.right, bindings))


def _bind_expr(expr: Expr, bindings: dict[str, Term]) -> Expr:
    if isinstance(expr, Compute):
        return replace(expr, args=tuple(_bind_expr(arg, bindings) for arg in expr.args))
    return _bind(expr, bindings)


def _decided(test: Filter, vocabulary: Vocabulary) -> bool:
    """Whether a test is known to hold; raises Dead when it is known to fail."""
    if isinstance(test.left, Var) and test.left == test.right and test.op in ("==", "!="):
        result = test.op == "=="
    elif any(True for _ in test.variables()):
        return False
    else:
        try:
            result = arithmetic.holds(test)
        except (ArithmeticError, TypeError) as problem:
            vocabulary.found.error(test.span, f"this comparison has no value: {problem}")
            return True
    if not result:
        raise Dead(f"{test} is never true")
    return True
