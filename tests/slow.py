"""Slow, plain oracles for the compiler's middle: grounding and reasoning straight from the definition.

`index_tensor` grounds a checked program with itertools, `dense_steps` reasons on the tensor with
numpy float64, `row_steps` reasons on the rows of a ground program, whatever passes made it. None of
them uses code of the compiler but the data classes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import permutations, product

import numpy as np

from nsfrc.compiler import ir
from nsfrc.compiler.grounded import NOTHING, GroundProgram

Atom = tuple[str, tuple[str, ...]]
GAMMA = 0.01


def natural(name: str) -> list[tuple[int, int, str]]:
    """Letters as letters, digits as numbers, digits before letters."""
    return [(0, int(part), part) if part.isdigit() else (1, 0, part) for part in re.findall(r"\d+|\D+", name)]


def atoms(program: ir.Program) -> list[Atom]:
    """The ground atoms from index 2 on: by predicate, arity and arguments."""
    constants = {t.name: t.constants for t in program.types}
    found = [
        (predicate.name, args)
        for predicate in program.predicates
        for args in product(*(constants[t] for t in predicate.types))
        if len(set(zip(predicate.types, args, strict=True))) == len(args)  # a constant belongs to its type
    ]
    return sorted(found, key=lambda a: (natural(a[0]), len(a[1]), [natural(c) for c in a[1]]))


def rows(program: ir.Program) -> dict[tuple[int, int], list[tuple[int, ...]]]:
    """Body atoms of every substitution of every clause and head that unify: {(clause, head): rows}."""
    constants = {t.name: t.constants for t in program.types}
    index = {atom: i for i, atom in enumerate(atoms(program), 2)}
    result: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for number, clause in enumerate(program.clauses):
        for (name, args), head in index.items():
            bound = _unify(clause.head, name, args)
            if bound is not None:
                result[number, head] = [
                    tuple(index.get(_instance(atom, binding), 0) for atom in clause.body)
                    for binding in _assignments(clause, bound, constants)
                    if all(_holds(test, binding) for test in clause.filters)
                ]
    return result


def _unify(head: ir.Atom, name: str, args: tuple[str, ...]) -> dict[str, str] | None:
    if head.key != (name, len(args)):
        return None
    bound: dict[str, str] = {}
    for term, constant in zip(head.args, args, strict=True):
        known = bound.setdefault(term.name, constant) if isinstance(term, ir.Var) else term.name
        if known != constant:
            return None
    return bound


def _assignments(
    clause: ir.Clause, bound: dict[str, str], constants: dict[str, tuple[str, ...]]
) -> Iterator[dict[str, str]]:
    """Injective within a datatype, a product over datatypes, for the variables that the head leaves free."""
    groups: dict[str, list[str]] = {}
    for name, datatype in clause.types:
        if name not in bound:
            groups.setdefault(datatype, []).append(name)
    names = [name for group in groups.values() for name in group]
    for chosen in product(*(permutations(constants[t], len(group)) for t, group in groups.items())):
        yield bound | dict(zip(names, (c for part in chosen for c in part), strict=True))


def _instance(atom: ir.Atom, binding: dict[str, str]) -> Atom:
    return atom.name, tuple(binding[a.name] if isinstance(a, ir.Var) else a.name for a in atom.args)


def _holds(test: ir.Filter, binding: dict[str, str]) -> bool:
    if test.op in ("==", "!="):
        left, right = (binding[s.name] if isinstance(s, ir.Var) else s.name for s in (test.left, test.right))
        return (left == right) == (test.op == "==")
    try:
        x, y = number(test.left, binding), number(test.right, binding)
    except ZeroDivisionError:
        return False
    return {"<": x < y, ">": x > y, "=<": x <= y, ">=": x >= y, "=:=": x == y, "=\\=": x != y}[test.op]


def number(side: ir.Expr, binding: dict[str, str]) -> float:
    """The value of an arithmetic expression."""
    if isinstance(side, ir.Var):
        return float(binding[side.name])
    if isinstance(side, ir.Const):
        return float(side.name)
    args = [number(arg, binding) for arg in side.args]
    match side.op, args:
        case "-", [x]:
            return -x
        case "+", [x, y]:
            return x + y
        case "-", [x, y]:
            return x - y
        case "*", [x, y]:
            return x * y
        case "/", [x, y]:
            return x / y
        case "//", [x, y]:
            return float(math.trunc(x / y))
        case "mod", [x, y]:
            return x % y
    raise AssertionError(side)


def index_tensor(program: ir.Program) -> np.ndarray:
    """The paper's I [C, G, S, L] as the definition has it."""
    found = rows(program)
    substitutions = max([1, *map(len, found.values())])
    length = max([1, *(len(clause.body) for clause in program.clauses)])
    tensor = np.zeros((len(program.clauses), 2 + len(atoms(program)), substitutions, length), dtype=np.int64)
    for (clause, head), bodies in found.items():
        for k, body in enumerate(bodies):
            tensor[clause, head, k] = [*body, *[1] * (length - len(body))]
    return tensor


def softor(x: np.ndarray, axis: int, gamma: float = GAMMA, times: np.ndarray | float = 1.0) -> np.ndarray:
    """γ·log Σ times·exp(x/γ) along an axis; not normalised."""
    top = x.max(axis=axis, keepdims=True)
    total = (times * np.exp((x - top) / gamma)).sum(axis=axis)
    return np.squeeze(top, axis) + gamma * np.log(total)


def normalised(x: np.ndarray) -> np.ndarray:
    """Divided by Z of each example: [B, atoms]."""
    return x / np.maximum(1, x.max(axis=1, keepdims=True))


def dense_steps(tensor: np.ndarray, V: np.ndarray, steps: int, gamma: float = GAMMA) -> np.ndarray:
    """Reason on the index tensor with each clause chosen once. V: [B, G] float64."""
    for _ in range(steps):
        C = np.stack([normalised(softor(V[:, clause].prod(axis=-1), 2, gamma)) for clause in tensor])
        R = normalised(softor(C, 0, gamma))
        V = normalised(softor(np.stack([V, R]), 0, gamma))
    return V


def row_steps(program: GroundProgram, V: np.ndarray, steps: int, gamma: float = GAMMA) -> np.ndarray:
    """Reason on rows, closed forms for what is not there; V [B, G] → [B, G], atoms by their slots."""
    slots = V[:, program.members]
    for _ in range(steps):
        slots = _row_step(program, slots, gamma)
    return slots[:, program.slot_of]


def _row_step(program: GroundProgram, V: np.ndarray, gamma: float) -> np.ndarray:
    X = list(V.T)
    for left, right in program.nodes:
        X.append(X[left] * X[right])
    padding = V[:, program.false] ** program.L
    C = np.repeat((gamma * np.log(program.S) + padding)[None, :, None], program.C, axis=0)
    C = np.repeat(C, program.slots, axis=2)
    for pair in range(program.pairs):
        mine = range(program.pair_start[pair], program.pair_start[pair + 1])
        values = [_row(program, X, V[:, program.true], row) for row in mine]
        times = [float(program.multiplicity[row]) for row in mine]
        missing = program.S - sum(times)
        if missing:
            values, times = [*values, padding], [*times, missing]
        C[program.pair_clause[pair], :, program.pair_head[pair]] = softor(
            np.stack(values), 0, gamma, np.array(times)[:, None]
        )
    C = np.stack([normalised(clause) for clause in C])
    R = normalised(softor(C, 0, gamma))
    return normalised(softor(np.stack([V, R]), 0, gamma))


def _row(program: GroundProgram, X: list[np.ndarray], true: np.ndarray, row: int) -> np.ndarray:
    value = true ** int(program.power[row])
    for factor in program.factors[row]:
        if factor != NOTHING:
            value = value * X[factor]
    return value


def valuation(program: GroundProgram, seed: int = 0, batch: int = 3) -> np.ndarray:
    """Random values of the neural atoms, the others as declared: [B, G] float64."""
    generator = np.random.default_rng(seed)
    V = np.tile(program.initial.astype(np.float64), (batch, 1))
    V[:, program.neural] = generator.beta(0.4, 0.4, (batch, int(program.neural.sum())))
    return V
