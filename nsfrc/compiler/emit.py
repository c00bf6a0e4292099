"""Any stage of a compilation as text: `nsfrc compile P --emit ast|ir|ground|index|plan`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from nsfrc.compiler import ir
from nsfrc.compiler.grounded import NOTHING
from nsfrc.compiler.stages import Compilation


def ast(done: Compilation) -> Iterator[str]:
    """Sentences as they were read, with their places."""
    for sentence in done.syntax:
        yield f"{sentence.span}: {sentence}"


def typed(done: Compilation) -> Iterator[str]:
    """The checked program: every type, predicate and variable resolved, as Prolog text."""
    program = done.program
    within = {name for name, _ in program.settings.attributes}
    for datatype in program.types:
        if datatype.name in within:  # which the directive declares
            continue
        constants = ", ".join(ir.quoted(c) for c in datatype.constants)
        values = f"slots({len(datatype.constants)})" if datatype.slots else f"[{constants}]"
        yield f":- type({ir.quoted(datatype.name)}, {values}).  % {datatype.role}"
    for number in program.numbers:
        yield f":- number({ir.atom_text(number.name, [ir.quoted(t) for t in number.types])})."
    for predicate in program.predicates:
        if predicate.count:
            yield f"% {_counting(predicate, program)}"
        if predicate.role in (ir.COUNTED, ir.COMPARED, ir.CHANCE):  # clauses say the rest
            continue
        directive = "neural" if predicate.role == ir.NEURAL else "pred"
        signature = ir.atom_text(predicate.name, [ir.quoted(t) for t in predicate.types])
        yield f":- {directive}({signature}).  % {predicate.role}"
    yield from _settings(program.settings)
    for atom in program.targets[: len(program.targets) - len(program.classes)]:
        yield f":- target({atom})."
    if program.classes:
        yield f":- classes([{', '.join(map(str, program.classes))}])."
    for fact in program.facts:
        yield f"{fact}."
    for clause in program.clauses:
        types = ", ".join(f"{name}: {datatype}" for name, datatype in clause.types)
        yield f"{clause}" + (f"  % {types}" if types else "")


def _settings(settings: ir.Settings) -> Iterator[str]:
    for name in ("steps", "gamma", "perception", "threshold", "semantics"):
        value = getattr(settings, name)
        if value is not None:
            yield f":- {name}({ir.quoted(str(value))})."
    for target, least in settings.thresholds:
        yield f":- threshold({target}, {least})."
    model = [f"names({_list(settings.names)})"] if settings.names else []
    model += [f"size({settings.size[0]}, {settings.size[1]})"] if settings.size else []
    if model:
        yield f":- model([{', '.join(model)}])."
    if settings.presence is not None:
        yield f":- presence({settings.presence}{'' if settings.conf is None else f'({settings.conf})'})."
    if settings.attributes:
        pairs = (f"{ir.quoted(name)}-{_list(values)}" for name, values in settings.attributes)
        yield f":- attributes([{', '.join(pairs)}])."


def _list(names: Iterable[str]) -> str:
    return f"[{', '.join(map(ir.quoted, names))}]"


def _counting(predicate: ir.Predicate, program: ir.Program) -> str:
    """`'kp#1 >= 2'(image) counts 'kp#1'(image,object): N >= 2`."""
    assert predicate.count is not None
    count = predicate.count

    def signature(one: ir.Predicate) -> str:
        return ir.atom_text(one.name, list(map(ir.quoted, one.types)))

    less = f" less {signature(program.predicate(count.less.key))}" if count.less else ""
    tests = ", ".join(map(str, count.tests)) or "N is the last argument"
    return f"{signature(predicate)} counts {signature(program.predicate(count.of.key))}{less}: {tests}"


def ground(done: Compilation) -> Iterator[str]:
    """Every live row as a ground clause, clause by clause, and the atoms that count others with what they count."""
    program, names = done.ground, done.ground.herbrand.names()
    for pair in range(program.pairs):
        head = names[program.pair_head[pair]]
        for row in program.factors[program.pair_start[pair]: program.pair_start[pair + 1]]:
            body = ", ".join(names[f] for f in row if f != NOTHING)
            yield f"{head} :- {body or 'true'}.  % clause {program.pair_clause[pair]}"
    used = {*program.factors.ravel().tolist(), *program.counts.source.tolist()}
    for atom, sources, wanted in program.counts:
        if atom in used:
            yield f"{names[atom]} counts {', '.join(names[i] for i in sources)}.  % {_wanted(wanted)}"


def _wanted(wanted: np.ndarray) -> str:
    """`wanted: 0, 2, 3 or more`: for how many a count holds."""
    numbers = [str(i) for i in np.flatnonzero(wanted)]
    if len(wanted) and wanted[-1]:
        numbers[-1] += " or more"
    return f"wanted: {', '.join(numbers) or 'none'}"



def index(done: Compilation) -> Iterator[str]:
    """The live rows of the index tensor: clause, atom, substitution and L indices, tab-separated."""
    program = done.ground
    yield "\t".join(["clause", "atom", "substitution", *(f"l{i}" for i in range(program.L))])
    for pair in range(program.pairs):
        start, end = program.pair_start[pair], program.pair_start[pair + 1]
        for k, row in enumerate(np.where(program.factors[start:end] == NOTHING, 1, program.factors[start:end])):
            yield "\t".join(map(str, [program.pair_clause[pair], program.pair_head[pair], k, *row]))


def plan(done: Compilation) -> Iterator[str]:
    """The plan's sizes and tables as JSON, one line each; NaN (a neural atom) is null."""
    tables = done.plan.tables()
    yield f'{{"sizes": {json.dumps(done.plan.sizes._asdict())},'
    for number, (name, table) in enumerate(tables.items(), 1):
        data = {"dtype": str(table.dtype), "shape": list(table.shape), "values": _values(table)}
        yield f' "{name}": {json.dumps(data)}' + ("}" if number == len(tables) else ",")


def _values(table: np.ndarray) -> list[float | int | None]:
    return [None if v != v else v for v in table.ravel().tolist()]


STAGES: dict[str, Callable[[Compilation], Iterator[str]]] = {
    "ast": ast, "ir": typed, "ground": ground, "index": index, "plan": plan,
}
