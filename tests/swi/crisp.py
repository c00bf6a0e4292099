"""What a program derives from crisp facts: naive forward chaining, straight from the semantics.

An oracle: it takes a checked `ir.Program` and shares no code with the grounding of the compiler.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations, product

from nsfrc.compiler import ir

Binding = dict[str, str]
Row = tuple[str, tuple[str, ...]]


def answers(
    program: ir.Program, worlds: Iterable[Iterable[str]], targets: Sequence[str], steps: int | None = None
) -> list[list[bool]]:
    """Whether each target holds in each world: [worlds][targets]."""
    ground = rows(program)
    return [[target in model for target in targets]
            for model in (derive(program, ground, world, steps) for world in worlds)]


def derive(
    program: ir.Program, ground: Sequence[Row], world: Iterable[str], steps: int | None = None
) -> set[str]:
    """Every atom that holds after `steps` rounds, or when nothing more follows (None)."""
    known = {str(fact) for fact in program.facts} | set(world)
    done = 0
    while steps is None or done < steps:
        new = {head for head, body in ground if head not in known and known.issuperset(body)}
        if not new:
            break
        known |= new
        done += 1
    return known


def rows(program: ir.Program) -> list[Row]:
    """Ground clauses as (head, body atoms); those with an atom that can never hold are left out."""
    return list(dict.fromkeys(row for clause in program.clauses for row in clause_rows(clause, program)))


def clause_rows(clause: ir.Clause, program: ir.Program) -> Iterator[Row]:
    """The rows of one clause of a program, one for each assignment."""
    constants = {datatype.name: datatype.constants for datatype in program.types}
    signatures = {predicate.key: predicate.types for predicate in program.predicates}
    types, apart = [signatures[atom.key] for atom in (clause.head, *clause.body)], kept_apart(program)
    for binding in (_injective if is_paper(program) else _all_objects_different)(clause, constants, apart):
        atoms = [_arguments(atom, binding) for atom in (clause.head, *clause.body)]
        possible = all(different(of, args, apart) for of, args in zip(types, atoms, strict=True))
        if possible and all(holds(test, binding) for test in clause.filters):
            head, *body = (
                ir.atom_text(atom.name, [ir.quoted(arg) for arg in args])
                for atom, args in zip((clause.head, *clause.body), atoms, strict=True)
            )
            yield head, tuple(body)


def is_paper(program: ir.Program) -> bool:
    return program.settings.semantics == "paper"


def kept_apart(program: ir.Program) -> frozenset[str]:
    """Datatypes whose constants no atom repeats: all of them under `paper`, those of objects under `anchored`."""
    return frozenset(t.name for t in program.types if is_paper(program) or t.role == "object")


def different(types: Sequence[str], args: Sequence[str], apart: frozenset[str]) -> bool:
    """Whether an atom with these arguments repeats nothing that it must not."""
    named = [(of, arg) for of, arg in zip(types, args, strict=True) if of in apart]
    return len(set(named)) == len(named)


def _all_objects_different(
    clause: ir.Clause, constants: Mapping[str, Sequence[str]], apart: frozenset[str]
) -> Iterator[Binding]:
    """All variables of a clause take any constants, those for objects pairwise different ones."""
    names, types = zip(*clause.types, strict=True) if clause.types else ((), ())
    for chosen in product(*(constants[datatype] for datatype in types)):
        if different(types, chosen, apart):
            yield dict(zip(names, chosen, strict=True))


def _injective(clause: ir.Clause, constants: Mapping[str, Sequence[str]], _: frozenset[str]) -> Iterator[Binding]:
    """Head variables take any constants; the others, within a datatype, pairwise different ones."""
    types = dict(clause.types)
    head = list(dict.fromkeys(variable.name for variable in clause.head.variables()))
    groups: dict[str, list[str]] = {}
    for name, datatype in types.items():
        if name not in head:
            groups.setdefault(datatype, []).append(name)
    names = [*head, *(name for group in groups.values() for name in group)]
    injections = [list(permutations(constants[datatype], len(group))) for datatype, group in groups.items()]
    for bound in product(*(constants[types[name]] for name in head)):
        for free in product(*injections):
            yield dict(zip(names, [*bound, *(constant for part in free for constant in part)], strict=True))


def _arguments(atom: ir.Atom, binding: Binding) -> list[str]:
    return [binding[arg.name] if isinstance(arg, ir.Var) else arg.name for arg in atom.args]


def holds(test: ir.Filter, binding: Binding) -> bool:
    """Whether a test holds of the constants of an assignment."""
    if test.op in ("==", "!="):
        left, right = (_name(side, binding) for side in (test.left, test.right))
        return (left == right) == (test.op == "==")
    try:
        x, y = _number(test.left, binding), _number(test.right, binding)
    except ZeroDivisionError:
        return False
    return {"<": x < y, ">": x > y, "=<": x <= y, ">=": x >= y, "=:=": x == y, "=\\=": x != y}[test.op]


def _name(side: ir.Expr, binding: Binding) -> str:
    assert not isinstance(side, ir.Compute)
    return binding[side.name] if isinstance(side, ir.Var) else side.name


def _number(side: ir.Expr, binding: Binding) -> float:
    if not isinstance(side, ir.Compute):
        text = _name(side, binding)
        return int(text) if text.lstrip("-").isdigit() else float(text)
    args = [_number(arg, binding) for arg in side.args]
    if len(args) == 1:
        return -args[0]
    x, y = args
    if side.op in ("+", "-", "*"):
        return {"+": x + y, "-": x - y, "*": x * y}[side.op]
    return {"/": lambda: x / y, "//": lambda: math.trunc(x / y), "mod": lambda: x % y}[side.op]()
