"""What can be derived at all, and how deep: forward chaining with every neural atom taken as true."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nsfrc import ir
from nsfrc.errors import Diagnostics
from nsfrc.ground import Size, sizes
from nsfrc.grounded import NOTHING, GroundProgram

NEVER = -1


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


def chain_length(program: ir.Program) -> int | None:
    """Steps that every derivation of the targets fits in; None when a target depends on itself."""
    bodies: dict[ir.PredicateKey, set[ir.PredicateKey]] = {}
    for clause in program.clauses:
        bodies.setdefault(clause.head.key, set()).update(atom.key for atom in clause.body)
    longest: dict[ir.PredicateKey, int | None] = {}
    opened: set[ir.PredicateKey] = set()
    path = [target.key for target in program.targets]  # a stack: programs may be deeper than Python recurses
    while path:
        key = path[-1]
        if key in longest or key in opened or key not in bodies:
            # A predicate below that is open but not done is met again on the way to itself: a cycle.
            longest.setdefault(key, _one_more(longest.get(k) for k in bodies[key]) if key in bodies else 0)
            path.pop()
        else:
            opened.add(key)
            path += [k for k in bodies[key] if k not in opened]
    return _one_more((longest[target.key] for target in program.targets), 0)


def _one_more(depths: Iterable[int | None], more: int = 1) -> int | None:
    known = list(depths)
    return None if None in known else more + max((d for d in known if d is not None), default=0)


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
    steps = program.settings.steps
    if steps is not None and steps < needed and not found.failed:
        found.warn(
            None,
            f"{steps} {'step is' if steps == 1 else 'steps are'} too few: "
            f"deriving {', '.join(map(str, program.targets))} takes {needed}",
            f"write :- steps({needed}). or leave it out",
        )
    found.stop()
    return needed


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
        return "its conditions exclude every substitution"
    for atom, column in zip(clause.body, rows.T, strict=False):
        if not (reached.depth[column] != NEVER).any():
            return f"{atom} is never true here: there is no such fact, and no clause derives it"
    return "every substitution has a body atom that is never true: an absent fact or a repeated constant"
