"""What can be derived at all, and how deep: forward chaining with every neural atom taken as true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from nsfrc import ir
from nsfrc.check.declare import MAX_STEPS
from nsfrc.check.vocabulary import text
from nsfrc.errors import Diagnostic, Diagnostics
from nsfrc.ground import Size, sizes
from nsfrc.grounded import NOTHING, GroundProgram

NEVER = -1
DEFAULT_STEPS = 4
UNSAID = "there is no :- steps(N)"


@dataclass(frozen=True)
class Reach:
    """depth [G]: the first step an atom can be true at, NEVER if none; fires [C]: clauses that can fire."""

    depth: np.ndarray
    fires: np.ndarray


def reach(program: GroundProgram) -> Reach:
    """Follow the rows of a program that has a slot for every atom."""
    depth = np.where(program.neural | (program.initial > 0), 0, NEVER)
    clause_of_row = program.pair_clause[program.pair_of_row]
    head_of_row = program.pair_head[program.pair_of_row]
    fires = np.zeros(program.C, dtype=bool)
    step = 0
    while True:
        known = np.append(depth != NEVER, True)  # NOTHING is -1 and finds the True at the end
        holds = known[np.where(program.factors == NOTHING, len(depth), program.factors)].all(axis=1)
        fires[clause_of_row[holds]] = True
        fresh = np.unique(head_of_row[holds])
        fresh = fresh[depth[fresh] == NEVER]
        if not len(fresh):
            return Reach(depth, fires)
        step += 1
        depth[fresh] = step


@dataclass(frozen=True)
class Knot:
    """Derived predicates that depend on each other, or a single one; recursive: it depends on itself.

    calls: all predicates in the bodies of its clauses.
    """

    keys: tuple[ir.PredicateKey, ...]
    calls: frozenset[ir.PredicateKey]
    recursive: bool


def knots(program: ir.Program) -> list[Knot]:
    """The derived predicates that the targets need; a knot comes after those that it calls."""
    bodies: dict[ir.PredicateKey, dict[ir.PredicateKey, None]] = {clause.head.key: {} for clause in program.clauses}
    for clause in program.clauses:
        bodies[clause.head.key].update(dict.fromkeys(atom.key for atom in clause.body if atom.key in bodies))
    order = _callees_first([target.key for target in program.targets], bodies)
    callers: dict[ir.PredicateKey, list[ir.PredicateKey]] = {key: [] for key in order}
    for key in order:
        for called in bodies[key]:
            callers[called].append(key)
    left, result = set(order), []
    for first in reversed(order):  # Kosaraju: of what is left, those that call `first` are also called by it
        group, waiting = [], [first]
        while waiting:
            key = waiting.pop()
            if key in left:
                left.remove(key)
                group.append(key)
                waiting += callers[key]
        if group:
            calls = frozenset(called for key in group for called in bodies[key])
            result.append(Knot(tuple(group), calls, not calls.isdisjoint(group)))
    return result[::-1]


def _callees_first(
    starts: Iterable[ir.PredicateKey], bodies: Mapping[ir.PredicateKey, Iterable[ir.PredicateKey]]
) -> list[ir.PredicateKey]:
    """All that is reached, in the order in which a walk is done with it; a stack, since programs may be deep."""
    order: list[ir.PredicateKey] = []
    seen: set[ir.PredicateKey] = set()
    path: list[tuple[ir.PredicateKey, Iterator[ir.PredicateKey]]] = []
    for start in starts:
        fresh: ir.PredicateKey | None = start if start not in seen else None
        while fresh is not None or path:
            if fresh is not None:
                seen.add(fresh)
                path.append((fresh, iter(bodies[fresh])))
            fresh = next((key for key in path[-1][1] if key not in seen), None)
            if fresh is None:
                order.append(path.pop()[0])
    return order


def chain_length(program: ir.Program) -> int | None:
    """Steps that every derivation of the targets fits in; None when one of them may need itself."""
    needed = knots(program)
    return None if any(knot.recursive for knot in needed) else _longest(needed, lambda _: 1)


def enough_steps(program: ir.Program) -> int:
    """Steps in which the targets follow from chains that visit no constant twice.

    A recursive predicate then holds after as many steps as its largest type has constants, as many times over as
    there are predicates that take turns.
    """
    sizes_of = {datatype.name: len(datatype.constants) for datatype in program.types}
    types = {predicate.key: predicate.types for predicate in program.predicates}

    def steps(knot: Knot) -> int:
        largest = max((sizes_of[name] for key in knot.keys for name in types[key]), default=1)
        return largest * len(knot.keys) if knot.recursive else 1

    return _longest(knots(program), steps)


def _longest(needed: Iterable[Knot], steps: Callable[[Knot], int]) -> int:
    """The steps of the knots on the longest way down, of knots in the order of `knots`."""
    depth: dict[ir.PredicateKey, int] = {}
    for knot in needed:
        below = max((depth[key] for key in knot.calls if key not in knot.keys), default=0)
        depth.update(dict.fromkeys(knot.keys, below + steps(knot)))
    return max(depth.values(), default=0)


def check_reach(program: ir.Program, ground: GroundProgram, found: Diagnostics) -> int:
    """Report clauses that can never fire and targets out of reach; returns the steps the targets need."""
    reached = reach(ground)
    for number, (clause, size) in enumerate(zip(program.clauses, sizes(program, ground.herbrand), strict=True)):
        if not reached.fires[number]:
            found.error(clause.span, "this clause can never fire", _why(number, clause, size, ground, reached))
    shallowest = 0
    for target, index in zip(program.targets, ground.targets, strict=True):
        shallowest = max(shallowest, int(reached.depth[index]))
        if reached.depth[index] == NEVER:
            found.error(target.span, f"no clause derives the target {target}")
    chain = chain_length(program)
    needed = shallowest if chain is None else chain
    if not found.failed:
        _warn_of_steps(program, needed, recursive=chain is None, found=found)
    found.stop()
    return needed


def _warn_of_steps(program: ir.Program, needed: int, recursive: bool, found: Diagnostics) -> None:
    """Warn of too few steps, and of a recursive program that does not say how many it wants."""
    steps = program.settings.steps
    if steps is None and recursive:
        _warn_of_recursion(program, max(DEFAULT_STEPS, needed), found)
    elif steps is not None and steps < needed:
        found.warn(
            None,
            f"{steps} {'step is' if steps == 1 else 'steps are'} too few: "
            f"deriving {', '.join(map(str, program.targets))} takes {needed}",
            f"write :- steps({needed}). or leave it out",
        )


def _warn_of_recursion(program: ir.Program, steps: int, found: Diagnostics) -> None:
    """steps: how many it gets by default."""
    enough = min(enough_steps(program), MAX_STEPS)
    if enough <= steps:
        return
    knot = {key: knot for knot in knots(program) if knot.recursive for key in knot.keys}
    first = next(
        clause for clause in program.clauses
        if clause.head.key in knot and any(atom.key in knot[clause.head.key].keys for atom in clause.body)
    )
    found.warn(
        first.head.span,
        f"{text(first.head.key)} depends on itself, and {UNSAID}: reasoning stops after {steps} steps, "
        "each of which adds one link to a chain, so longer ones are not found",
        f"write :- steps({enough}). Chains that visit no constant twice take at most {enough}",
    )


def silenced(warning: Diagnostic, steps: int | None) -> bool:
    """Whether someone who asks for so many steps (None: for no number) need not be told of a warning."""
    return steps is not None and UNSAID in warning.message


def _excluded(clause: ir.Clause) -> str:
    """Why conditions leave nothing: most often a `==` of two variables, which never are the same constant."""
    types, bound = dict(clause.types), {variable.name for variable in clause.head.variables()}
    for test in clause.filters:
        names = [side.name for side in (test.left, test.right) if isinstance(side, ir.Var) and side.name not in bound]
        if test.op == "==" and len(names) == 2 and types[names[0]] == types[names[1]]:
            return f"{names[0]} and {names[1]} are always different: write {' = '.join(names)}, or one name for both"
    return "its conditions exclude every substitution"


def _why(number: int, clause: ir.Clause, size: Size, ground: GroundProgram, reached: Reach) -> str:
    """The reason why a clause never fires, the most telling first."""
    for datatype, variables in size.free:
        constants = ground.herbrand.type_by_name[datatype].constants
        if len(variables) > len(constants):
            return (f"{', '.join(variables)} must be different constants of {datatype}, "
                    f"which has only {len(constants)}")
    if not size.heads:
        return "no ground atom unifies with its head"
    rows = ground.factors[ground.pair_clause[ground.pair_of_row] == number]
    if clause.filters and not len(rows):
        return _excluded(clause)
    for atom, column in zip(clause.body, rows.T, strict=False):
        if not (reached.depth[column] != NEVER).any():
            return f"{atom} is never true here: there is no such fact, and no clause derives it"
    return "every substitution has a body atom that is never true: an absent fact or a repeated constant"
