"""Grounding in plain Python, straight from the definition: the baseline of compile times.

Nested loops over clauses, ground atoms and injective assignments, and a dictionary of atoms: no numpy, nothing
shared, every row a tuple of its own, as in the published implementation. Tests on constants (`X \\= Y`), which the
definition does not have, are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product

from nsfrc.compiler import ir
from nsfrc.compiler.herbrand import FALSE, TRUE, reading_order
from nsfrc.errors import NsfrcError

Fact = tuple[str, tuple[str, ...]]
Row = tuple[int, int, tuple[int, ...]]
Constants = Mapping[str, Sequence[str]]


def rows(program: ir.Program) -> list[Row]:
    """Every row that is not all false: (clause, head, body atoms padded with true to the longest body)."""
    constants = {datatype.name: datatype.constants for datatype in program.types}
    atoms = {fact: index for index, fact in enumerate(_facts(program, constants), 2)}
    longest = max(len(clause.body) for clause in program.clauses)
    found = []
    for number, clause in enumerate(program.clauses):
        if clause.filters:
            raise NsfrcError(f"{clause}: tests on constants are not part of the baseline")
        padding = (TRUE,) * (longest - len(clause.body))
        for fact, head in atoms.items():
            bound = _unified(clause.head, fact)
            if bound is None:
                continue
            for binding in _assignments(clause, bound, constants):
                body = tuple([atoms.get(_under(atom, binding), FALSE) for atom in clause.body]) + padding
                if any(body):
                    found.append((number, head, body))
    return found


def _facts(program: ir.Program, constants: Constants) -> Iterator[Fact]:
    """The ground atoms after false and true, in order: arguments pairwise different."""
    for predicate in sorted(program.predicates, key=lambda p: (reading_order(p.name), len(p.types))):
        for args in product(*(sorted(constants[name], key=reading_order) for name in predicate.types)):
            if len(set(zip(predicate.types, args, strict=True))) == len(args):
                yield predicate.name, args


def _unified(head: ir.Atom, fact: Fact) -> dict[str, str] | None:
    """What the variables of a clause's head are if it is this ground atom; None if it cannot be."""
    name, args = fact
    if head.name != name or len(head.args) != len(args):
        return None
    binding: dict[str, str] = {}
    for term, constant in zip(head.args, args, strict=True):
        known = binding.setdefault(term.name, constant) if isinstance(term, ir.Var) else term.name
        if known != constant:
            return None
    return binding


def _assignments(clause: ir.Clause, bound: Mapping[str, str], constants: Constants) -> Iterator[dict[str, str]]:
    """The head's variables as they are; the others, within a datatype, take pairwise different constants."""
    free: dict[str, list[str]] = {}
    for name, datatype in clause.types:
        if name not in bound:
            free.setdefault(datatype, []).append(name)
    names = [name for group in free.values() for name in group]
    for chosen in product(*(permutations(constants[datatype], len(group)) for datatype, group in free.items())):
        yield {**bound, **dict(zip(names, [constant for part in chosen for constant in part], strict=True))}


def _under(atom: ir.Atom, binding: Mapping[str, str]) -> Fact:
    return atom.name, tuple([binding[term.name] if isinstance(term, ir.Var) else term.name for term in atom.args])
