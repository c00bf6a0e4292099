"""Random programs as text, with the freedom that a writer has.

The same clause may come out with other variable names, `dif/2` or `\\=`, a constant by way of `=`, or
joined with its neighbour by `;`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nsfrc.compiler import ir

_SPELLINGS = {"!=": ("dif({},{})", "{} \\= {}", "{} \\== {}")}


def program_text(program: ir.Program, rng: random.Random) -> str:
    """Prolog text of a program whose clauses may be printed in any order."""
    clauses = list(program.clauses)
    if rng.random() < 0.3:
        rng.shuffle(clauses)
    targets = [f":- target({target})." for target in program.targets]
    facts = [f"{fact}." for fact in program.facts]
    sections = [list(declarations(program, rng)), targets, facts, list(_clause_texts(clauses, rng))]
    return "\n".join("\n".join((*section, "")) for section in sections if section)


def declarations(program: ir.Program, rng: random.Random, declare_all: bool = False) -> Iterator[str]:
    """Directives without targets. declare_all: give the signatures of all predicates."""
    yield ":- use_module(library(nsfr))."
    if program.settings.semantics == ir.PAPER or rng.random() < 0.5:  # the other one goes without saying
        yield f":- semantics({program.settings.semantics})."
    declare_all = declare_all or _needs_signatures(program)
    for datatype in program.types:
        listed, slots = f"[{', '.join(datatype.constants)}]", f"slots({len(datatype.constants)})"
        yield f":- type({datatype.name}, {slots if datatype.slots else listed})."
    for predicate in program.predicates:
        word = "neural" if predicate.role == ir.NEURAL else "pred"
        if predicate.role != ir.DERIVED or declare_all or rng.random() < 0.8:      # the rest is inferred
            yield f":- {word}({ir.atom_text(predicate.name, list(predicate.types))})."


def _needs_signatures(program: ir.Program) -> bool:
    """Whether types cannot all be inferred: numbers are of two types, or the body leaves a head variable out."""
    if {"size", "rank"} <= {datatype.name for datatype in program.types}:
        return True
    return any(set(clause.head.variables()) - {v for atom in clause.body for v in atom.variables()}
               for clause in program.clauses)


@dataclass(frozen=True)
class _Written:
    """The text of a clause, head and body apart."""

    head: str
    body: str


def _clause_texts(clauses: Sequence[ir.Clause], rng: random.Random) -> Iterator[str]:
    """Sentences; neighbours with the same head become one with `;` now and then."""
    waiting: _Written | None = None
    for number, clause in enumerate(clauses):
        written = _written(clause, rng, "b" if number % 2 else "")      # neighbours share no variable
        if waiting and waiting.head == written.head and rng.random() < 0.5:
            yield f"{waiting.head} :- ( {waiting.body} ; {written.body} )."
            waiting = None
            continue
        if waiting:
            yield f"{waiting.head} :- {waiting.body}."
        waiting = written
    if waiting:
        yield f"{waiting.head} :- {waiting.body}."


def _written(clause: ir.Clause, rng: random.Random, suffix: str) -> _Written:
    """Head variables are named by position, so that clauses with the same head look alike."""
    terms = [t for atom in (clause.head, *clause.body) for t in atom.args] + [
        variable for test in clause.filters for variable in test.variables()]
    counts = Counter(term.name for term in terms if isinstance(term, ir.Var))
    names = {variable.name: f"{'_' * (counts[variable.name] == 1)}X{i}"
             for i, variable in enumerate(clause.head.variables(), 1)}
    for name, count in counts.items():
        names.setdefault(name, ("_" if count == 1 else "") + name + suffix)
    goals = [_atom(atom, names) for atom in clause.body]
    goals += [_test(test, names, rng) for test in clause.filters]
    if rng.random() < 0.1:
        goals = _by_equality(clause, goals, names, rng, suffix)
    return _Written(_atom(clause.head, names), ", ".join(goals))


def _by_equality(
    clause: ir.Clause, goals: list[str], names: dict[str, str], rng: random.Random, suffix: str
) -> list[str]:
    """Write a constant of some body atom as a variable: `color(X, C), C = red`."""
    places = [(i, k) for i, atom in enumerate(clause.body)
              for k, arg in enumerate(atom.args) if isinstance(arg, ir.Const)]
    if not places:
        return goals
    i, k = rng.choice(places)
    fresh = f"Same{suffix}"
    args = [_expr(arg, names) for arg in clause.body[i].args]
    constant, args[k] = args[k], fresh
    equality = f"{fresh} = {constant}" if rng.random() < 0.5 else f"{constant} = {fresh}"
    changed = [*goals[:i], ir.atom_text(clause.body[i].name, args), *goals[i + 1:]]
    changed.insert(rng.randint(0, len(changed)), equality)
    return changed


def _atom(atom: ir.Atom, names: dict[str, str]) -> str:
    return ir.atom_text(atom.name, [_expr(arg, names) for arg in atom.args])


def _expr(expr: ir.Expr, names: dict[str, str]) -> str:
    if isinstance(expr, ir.Compute):
        return f"{_expr(expr.args[0], names)} {expr.op} {_expr(expr.args[1], names)}"
    return names[expr.name] if isinstance(expr, ir.Var) else str(expr)


def _test(test: ir.Filter, names: dict[str, str], rng: random.Random) -> str:
    spelling = rng.choice(_SPELLINGS.get(test.op, (f"{{}} {test.op} {{}}",)))
    return spelling.format(_expr(test.left, names), _expr(test.right, names))
