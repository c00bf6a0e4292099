"""What a program derives from crisp facts: naive forward chaining, straight from the semantics.

An oracle: it takes a checked `ir.Program` and shares no code with the grounding of the compiler.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations, product

from nsfrc import ir

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
    constants = {datatype.name: datatype.constants for datatype in program.types}
    return list(dict.fromkeys(row for clause in program.clauses for row in clause_rows(clause, constants)))


def clause_rows(clause: ir.Clause, constants: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    """The rows of one clause. `constants`: those of each datatype."""
    for binding in _assignments(clause, constants):
        atoms = [_arguments(atom, binding) for atom in (clause.head, *clause.body)]
        possible = all(len(set(args)) == len(args) for args in atoms)
        if possible and all(_holds(test, binding) for test in clause.filters):
            head, *body = (
                ir.atom_text(atom.name, [ir.quoted(arg) for arg in args])
                for atom, args in zip((clause.head, *clause.body), atoms, strict=True)
            )
            yield head, tuple(body)


def _assignments(clause: ir.Clause, constants: Mapping[str, Sequence[str]]) -> Iterator[Binding]:
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


def _holds(test: ir.Filter, binding: Binding) -> bool:
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
