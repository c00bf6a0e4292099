"""Any stage of a compilation as text: `nsfrc compile P --emit ast|ir|ground|index|plan`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict

import numpy as np

from nsfrc import ir
from nsfrc.compiler import Compilation
from nsfrc.grounded import NOTHING


def ast(done: Compilation) -> Iterator[str]:
    """Sentences as they were read, with their places."""
    for sentence in done.syntax:
        yield f"{sentence.span}: {sentence}"


def typed(done: Compilation) -> Iterator[str]:
    """The checked program: every type, predicate and variable resolved, as Prolog text."""
    program = done.program
    for datatype in program.types:
        constants = ", ".join(ir.quoted(c) for c in datatype.constants)
        values = f"slots({len(datatype.constants)})" if datatype.slots else f"[{constants}]"
        yield f":- type({ir.quoted(datatype.name)}, {values}).  % {datatype.role}"
    for predicate in program.predicates:
        directive = "neural" if predicate.role == ir.NEURAL else "pred"
        signature = ir.atom_text(predicate.name, [ir.quoted(t) for t in predicate.types])
        yield f":- {directive}({signature}).  % {predicate.role}"
    for name, value in asdict(program.settings).items():
        if value is not None:
            yield f":- {name}({ir.quoted(str(value))})."
    for target in program.targets:
        yield f":- target({target})."
    for fact in program.facts:
        yield f"{fact}."
    for clause in program.clauses:
        types = ", ".join(f"{name}: {datatype}" for name, datatype in clause.types)
        yield f"{clause}" + (f"  % {types}" if types else "")


def ground(done: Compilation) -> Iterator[str]:
    """Every live row as a ground clause, clause by clause."""
    program, names = done.ground, done.ground.herbrand.names()
    for pair in range(program.pairs):
        head = names[program.pair_head[pair]]
        for row in program.factors[program.pair_start[pair]: program.pair_start[pair + 1]]:
            body = ", ".join(names[f] for f in row if f != NOTHING)
            yield f"{head} :- {body or 'true'}.  % clause {program.pair_clause[pair]}"


def index(done: Compilation) -> Iterator[str]:
    """The live rows of the index tensor: clause, atom, substitution and L indices, tab-separated."""
    program = done.ground
    yield "\t".join(["clause", "atom", "substitution", *(f"l{i}" for i in range(program.L))])
    for pair in range(program.pairs):
        start, end = program.pair_start[pair], program.pair_start[pair + 1]
        for k, row in enumerate(np.where(program.factors[start:end] == NOTHING, 1, program.factors[start:end])):
            yield "\t".join(map(str, [program.pair_clause[pair], program.pair_head[pair], k, *row]))


def plan(done: Compilation) -> Iterator[str]:
    """The plan's tables as JSON, a line each; NaN (a neural atom) is null."""
    tables = done.plan.tables()
    for number, (name, table) in enumerate(tables.items(), 1):
        data = {"dtype": str(table.dtype), "shape": list(table.shape), "values": _values(table)}
        yield ("{" if number == 1 else " ") + f'"{name}": {json.dumps(data)}' + ("}" if number == len(tables) else ",")


def _values(table: np.ndarray) -> list[float | int | None]:
    return [None if v != v else v for v in table.ravel().tolist()]


STAGES: dict[str, Callable[[Compilation], Iterator[str]]] = {
    "ast": ast, "ir": typed, "ground": ground, "index": index, "plan": plan,
}
