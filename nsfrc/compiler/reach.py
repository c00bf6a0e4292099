"""What can be derived at all, and how deep: forward chaining with every neural atom taken as true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from nsfrc.compiler import ir
from nsfrc.compiler.check.vocabulary import text
from nsfrc.compiler.ground import Size, sizes
from nsfrc.compiler.grounded import GroundProgram, distinct, over_factors
from nsfrc.errors import Diagnostic, Diagnostics
from nsfrc.records import dataclass

NEVER = -1
DEFAULT_STEPS = 4
SWEEPS = 6


@dataclass(frozen=True)
class Reach:
    """depth [G]: the first step an atom can be true at, NEVER if none; fires [C]: clauses that can fire."""

    depth: np.ndarray
    fires: np.ndarray


def reach(program: GroundProgram) -> Reach:
    """Follow the rows of a program that has a slot for every atom.

    The first steps, which are all there are in most programs, look at all rows that wait; later ones only at those
    that use an atom of the step before.
    """
    depth = np.where(program.neural | (program.initial > 0), 0, NEVER)
    for head, sources, wanted in program.counts:  # whatever is counted may hold or not
        if wanted[: len(sources) + 1].any():
            depth[head] = 0
    holds, step = np.zeros(program.rows, dtype=bool), 0
    head_of_row, waiting = program.pair_head[program.pair_of_row], np.arange(program.rows)
    while True:
        step += 1
        settled = over_factors(np.logical_and, np.append(depth != NEVER, True), program.factors, waiting)
        holds[waiting[settled]] = True
        fresh = _put(depth, head_of_row[waiting[settled]], step)
        waiting = waiting[~settled]
        if not len(fresh) or step == SWEEPS:
            break
    rows, atoms = _uses_before(program, waiting if len(fresh) else waiting[:0], depth, step)
    first_use, missing = np.searchsorted(atoms, np.arange(len(depth) + 1)), np.bincount(rows, minlength=program.rows)
    while len(fresh):
        step += 1
        touched = rows[_ranges(first_use[fresh], first_use[fresh + 1])]
        np.subtract.at(missing, touched, 1)
        derived = touched[missing[touched] == 0]
        holds[derived] = True
        fresh = _put(depth, head_of_row[derived], step)
    return Reach(depth, np.bincount(program.pair_clause[program.pair_of_row[holds]], minlength=program.C) > 0)


def _put(depth: np.ndarray, heads: np.ndarray, step: int) -> np.ndarray:
    """Note that atoms hold from this step on; returns those that did not before."""
    fresh = distinct(heads[depth[heads] == NEVER])
    depth[fresh] = step
    return fresh


def _uses_before(
    program: GroundProgram, rows: np.ndarray, depth: np.ndarray, step: int
) -> tuple[np.ndarray, np.ndarray]:
    """What some rows use that did not hold before a step: rows and atoms, in the order of the atoms."""
    factors = program.factors[rows]
    which, column = np.nonzero(np.append((depth == NEVER) | (depth == step), False)[factors])
    atoms = factors[which, column]
    order = np.argsort(atoms, kind="stable")
    return rows[which][order], atoms[order]


def _ranges(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The numbers from each start to before its end, one range behind the other."""
    lengths = ends - starts
    offsets = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(starts - offsets, lengths)


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
    counted = {predicate.key: predicate.count for predicate in program.predicates if predicate.count is not None}
    bodies |= {key: {} for key in counted}
    for key, count in counted.items():
        bodies[key].update(dict.fromkeys(source.key for source in count.sources if source.key in bodies))
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
        below = max((depth[key] for key in knot.calls.difference(knot.keys)), default=0)
        depth.update(dict.fromkeys(knot.keys, below + steps(knot)))
    return max(depth.values(), default=0)


def check_reach(program: ir.Program, ground: GroundProgram, found: Diagnostics) -> int:
    """Report clauses that can never fire and targets out of reach; returns the steps the targets need."""
    reached = reach(ground)
    _report_idle(program, ground, reached, found)
    shallowest = max((int(reached.depth[index]) for index in ground.targets), default=0)
    # Of a target with variables, such as sum(_), some instance must be in reach; the others are worth what they are.
    derivable = {target.span for target, index in zip(program.targets, ground.targets, strict=True)
                 if reached.depth[index] != NEVER}
    for target, index in zip(program.targets, ground.targets, strict=True):
        if reached.depth[index] == NEVER and (target.span is None or target.span not in derivable):
            found.error("underivable-target", target.span, f"no clause derives the target {target}")
    chain = chain_length(program)
    needed = shallowest if chain is None else chain
    if not found.failed and not program.anchored:  # where as many steps are taken as are needed
        _warn_of_steps(program, needed, recursive=chain is None, found=found)
    found.stop()
    return needed


def _report_idle(program: ir.Program, ground: GroundProgram, reached: Reach, found: Diagnostics) -> None:
    """Report the clauses that can never fire."""
    idle = [int(number) for number in np.flatnonzero(~reached.fires)]
    clauses = tuple(program.clauses[number] for number in idle)
    clause_of_row = ground.pair_clause[ground.pair_of_row]
    counted = sizes(replace(program, clauses=clauses), ground.herbrand)
    for number, clause, size in zip(idle, clauses, counted, strict=True):
        if ir.INNER in clause.head.name:  # that no object is larger may well hold because there is no other
            continue
        first, last = np.searchsorted(clause_of_row, [number, number + 1])  # rows stand clause by clause
        why = _why(clause, size, ground, ground.factors[first:last], reached)
        found.error("never-fires", clause.span, "this clause can never fire", why)


def _warn_of_steps(program: ir.Program, needed: int, recursive: bool, found: Diagnostics) -> None:
    """Warn of too few steps, and of a recursive program that does not say how many it wants."""
    steps = program.settings.steps
    if steps is None and recursive:
        _warn_of_recursion(program, max(DEFAULT_STEPS, needed), found)
    elif steps is not None and steps < needed:
        found.warn(
            "too-few-steps", None,
            f"{steps} {'step is' if steps == 1 else 'steps are'} too few: "
            f"deriving {', '.join(map(str, program.targets))} takes {needed}",
            f"write :- steps({needed}). or leave it out",
        )


def _warn_of_recursion(program: ir.Program, steps: int, found: Diagnostics) -> None:
    """steps: how many it gets by default."""
    enough = min(enough_steps(program), ir.MAX_STEPS)
    if enough <= steps:
        return
    knot = {key: knot for knot in knots(program) if knot.recursive for key in knot.keys}
    first = next(
        clause for clause in program.clauses
        if clause.head.key in knot and any(atom.key in knot[clause.head.key].keys for atom in clause.body)
    )
    found.warn(
        "recursion-without-steps", first.head.span,
        f"{text(first.head.key)} depends on itself, and there is no :- steps(N): reasoning stops after {steps} steps, "
        "each of which adds one link to a chain, so longer ones are not found",
        f"write :- steps({enough}). Chains that visit no constant twice take at most {enough}",
    )


def silenced(warning: Diagnostic, steps: int | None) -> bool:
    """Whether a warning is not needed where this many steps are asked for (None: no number is)."""
    return steps is not None and warning.code == "recursion-without-steps"


def _excluded(clause: ir.Clause) -> str:
    """Why conditions leave nothing: most often a `==` of two variables, which never are the same constant."""
    types, bound = dict(clause.types), {variable.name for variable in clause.head.variables()}
    for test in clause.filters:
        names = [side.name for side in (test.left, test.right) if isinstance(side, ir.Var) and side.name not in bound]
        if test.op == "==" and len(names) == 2 and types[names[0]] == types[names[1]]:
            return f"{names[0]} and {names[1]} are always different: write {' = '.join(names)}, or one name for both"
    return "its conditions exclude every substitution"


def _why(clause: ir.Clause, size: Size, ground: GroundProgram, rows: np.ndarray, reached: Reach) -> str:
    """The reason why a clause never fires, the most telling first; rows: its factors."""
    for datatype, variables in size.free:
        constants = ground.herbrand.type_by_name[datatype].constants
        if len(variables) > len(constants):
            return (f"{', '.join(variables)} must be different constants of {datatype}, "
                    f"which has only {len(constants)}")
    if not size.heads:
        return "no ground atom unifies with its head"
    if clause.filters and not len(rows):
        return _excluded(clause)
    for atom, column in zip(clause.body, rows.T, strict=False):
        if not (reached.depth[column] != NEVER).any():
            return f"{atom} is never true here: there is no such fact, and no clause derives it"
    return "every substitution has a body atom that is never true: an absent fact or a repeated constant"
