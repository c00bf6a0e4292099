"""Grounding: a typed program becomes rows of slots, by numpy over all assignments at once.

For a clause and a ground atom that unifies with its head, the free body variables run over the
injective assignments of each datatype; see `grounded.GroundProgram` for what comes out. Filters take
assignments away before `S` is counted. A body atom whose constants repeat is not in `G`: its place in
the row is `false`. Counting comes first, so that a program that would not fit is refused before
anything is built.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nsfrc import ir
from nsfrc.errors import Diagnostics
from nsfrc.filters import holds
from nsfrc.grounded import NOTHING, GroundProgram
from nsfrc.herbrand import FALSE, TRUE, Herbrand

# Grounding and optimising take about 400 bytes a row with a body of a dozen atoms; this many rows
# stay below 16 GB.
MAX_ROWS = 30_000_000


@dataclass(frozen=True)
class Size:
    """How large a clause becomes: heads that unify, assignments for each, free variables by type."""

    heads: int
    assignments: int
    free: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def rows(self) -> int:
        return self.heads * self.assignments


def ground(program: ir.Program, found: Diagnostics, max_rows: int = MAX_ROWS) -> GroundProgram:
    """Ground every clause; adds to `found` and raises when the program is too large."""
    if not program.clauses:
        found.error(None, f"{program.name} has no clauses", "write what is to be derived: kp(X) :- in(O, X).")
        found.stop()
    herbrand = Herbrand.of(program.types, program.predicates)
    _refuse_explosion(program, herbrand, found, max_rows)
    pieces = [_ground_clause(clause, herbrand) for clause in program.clauses]
    substitutions = max((int(p.counts.max(initial=0)) for p in pieces), default=0)
    length = max((len(c.body) for c in program.clauses), default=0)
    return _assemble(program, herbrand, pieces, max(substitutions, 1), max(length, 1))


def sizes(program: ir.Program, herbrand: Herbrand) -> list[Size]:
    """Count heads and assignments of every clause without enumerating them; filters not applied."""
    return [_size(clause, herbrand) for clause in program.clauses]


def _size(clause: ir.Clause, herbrand: Herbrand) -> Size:
    free = tuple(_free_variables(clause).items())
    assignments = math.prod(math.perm(len(herbrand.type_by_name[t].constants), len(vs)) for t, vs in free)
    return Size(len(_head_bindings(clause, herbrand)[0]), assignments, tuple((t, tuple(vs)) for t, vs in free))


def _refuse_explosion(program: ir.Program, herbrand: Herbrand, found: Diagnostics, max_rows: int) -> None:
    counted = sizes(program, herbrand)
    pairs, most_pairs = len(counted) * herbrand.size, max(max_rows, MAX_ROWS)
    if pairs > most_pairs:
        found.error(
            None,
            f"{len(counted):,} clauses × {herbrand.size:,} ground atoms are {pairs:,} pairs; "
            f"the limit is {most_pairs:,}",
            "use fewer slots (--slots) or predicates with fewer arguments, or raise the limit with --max-rows",
        )
        found.stop()
    total = sum(size.rows for size in counted)
    if total <= max_rows:
        return
    for clause, size in zip(program.clauses, counted, strict=True):
        if size.rows * len(counted) < max_rows:
            continue
        variables = "; ".join(
            f"{', '.join(vs)} over {len(herbrand.type_by_name[t].constants)} constants of {t}" for t, vs in size.free
        )
        found.error(
            clause.span,
            f"this clause grounds to {size.rows:,} rows ({size.heads:,} head{'s' * (size.heads != 1)} × "
            f"{size.assignments:,} assignments of {variables or 'no variables'}); "
            f"the limit for the program is {max_rows:,}",
            "split the body into derived predicates with fewer variables each, use fewer slots (--slots), "
            "or raise the limit with --max-rows",
        )
    found.stop()


def _free_variables(clause: ir.Clause) -> dict[str, list[str]]:
    """Variables of the body that the head does not bind, by datatype, in order of appearance."""
    bound = {v.name for v in clause.head.variables()}
    free: dict[str, list[str]] = {}
    for name, datatype in clause.types:
        if name not in bound:
            free.setdefault(datatype, []).append(name)
    return free


def _head_bindings(clause: ir.Clause, herbrand: Herbrand) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Ground atoms that unify with the head, and what each head variable is in them: [heads]."""
    predicate = next(p for p in herbrand.predicates if p.key == clause.head.key)
    first, last = herbrand.offsets[clause.head.key]
    arguments = herbrand.arguments(clause.head.key)
    keep = np.ones(last - first, dtype=bool)
    for column, term in enumerate(clause.head.args):
        if isinstance(term, ir.Const):
            keep &= arguments[:, column] == _position(herbrand, predicate.types[column], term)
    columns = {t.name: arguments[keep, i] for i, t in enumerate(clause.head.args) if isinstance(t, ir.Var)}
    return np.arange(first, last)[keep], columns


def _position(herbrand: Herbrand, datatype: str, term: ir.Const) -> int:
    return herbrand.type_by_name[datatype].constants.index(term.name)


def injective(constants: int, variables: int) -> np.ndarray:
    """All ways to give different constants to the variables, in lexicographic order: [ways, variables]."""
    position = np.min_scalar_type(constants)
    ways = np.zeros((1, 0), dtype=position)
    for _ in range(variables):
        taken = np.repeat(ways, constants, axis=0)
        chosen = np.tile(np.arange(constants, dtype=position), len(ways))
        fresh = (taken != chosen[:, None]).all(axis=1)
        ways = np.concatenate([taken[fresh], chosen[fresh, None]], axis=1)
    return ways


def _assignments(clause: ir.Clause, herbrand: Herbrand) -> tuple[dict[str, np.ndarray], int]:
    """Values of the free variables over the product of their datatypes' injective assignments."""
    columns: dict[str, np.ndarray] = {}
    count = 1
    for datatype, variables in _free_variables(clause).items():
        ways = injective(len(herbrand.type_by_name[datatype].constants), len(variables))
        columns = {name: np.repeat(values, len(ways)) for name, values in columns.items()}
        columns |= {name: np.tile(ways[:, i], count) for i, name in enumerate(variables)}
        count *= len(ways)
    return columns, count


@dataclass(frozen=True)
class _Piece:
    """One grounded clause: its heads, rows for each, and the body atoms of every row."""

    heads: np.ndarray  # [heads] atoms
    counts: np.ndarray  # [heads] rows
    body: np.ndarray  # [rows, body length] atoms, head by head


def _ground_clause(clause: ir.Clause, herbrand: Herbrand) -> _Piece:
    heads, bound = _head_bindings(clause, herbrand)
    if not len(heads):  # no row whatever the assignments, which nothing bounds then
        return _Piece(heads, np.zeros(0, dtype=np.int64), np.empty((0, len(clause.body)), dtype=np.int32))
    free, count = _assignments(clause, herbrand)
    shape = (len(heads), count)
    values = {name: v[:, None] for name, v in bound.items()} | {name: v[None, :] for name, v in free.items()}
    keep = np.ones(shape, dtype=bool)
    for condition in clause.filters:
        keep &= holds(condition, clause, values, herbrand)
    whole = keep.all()
    body = np.empty((int(keep.sum()), len(clause.body)), dtype=np.int32)
    for column, atom in enumerate(clause.body):
        atoms = np.broadcast_to(_indices(atom, values, herbrand), shape)
        body[:, column] = atoms.ravel() if whole else atoms[keep]
    return _Piece(heads, keep.sum(axis=1), body)


def _indices(atom: ir.Atom, values: dict[str, np.ndarray], herbrand: Herbrand) -> np.ndarray:
    """Index of a body atom under every (head, assignment); FALSE where an argument repeats."""
    predicate = next(p for p in herbrand.predicates if p.key == atom.key)
    cell = tuple(
        values[term.name] if isinstance(term, ir.Var) else _position(herbrand, datatype, term)
        for term, datatype in zip(atom.args, predicate.types, strict=True)
    )
    return herbrand.tables[atom.key][cell]


def components(clause: ir.Clause, length: int) -> list[int]:
    """Which body atoms hang together by free variables; every other atom is alone. Padded to `length`.

    A component is named by its first atom.
    """
    free = {name for names in _free_variables(clause).values() for name in names}
    parent = list(range(length))

    def first_of(atom: int) -> int:
        while parent[atom] != atom:
            parent[atom] = parent[parent[atom]]  # keeps the way short
            atom = parent[atom]
        return atom

    seen: dict[str, int] = {}
    for i, atom in enumerate(clause.body):
        for name in {v.name for v in atom.variables()} & free:
            one, other = first_of(seen.setdefault(name, i)), first_of(i)
            parent[max(one, other)] = min(one, other)
    return [first_of(i) for i in range(length)]


def _assemble(
    program: ir.Program, herbrand: Herbrand, pieces: list[_Piece], substitutions: int, length: int
) -> GroundProgram:
    """Lay the clauses' rows under each other, with the padding rows spelt out."""
    atoms = herbrand.size
    padded = [_with_padding(piece, atoms, substitutions, length) for piece in pieces]
    initial, neural = _constants(program, herbrand)
    targets = [herbrand.index(t.name, tuple(str(a.name) for a in t.args)) for t in program.targets]
    start = np.cumsum(np.concatenate([np.zeros(1, np.int64), *(p[0] for p in padded)]))
    return GroundProgram(
        herbrand=herbrand,
        clauses=tuple(str(clause) for clause in program.clauses),
        S=substitutions,
        L=length,
        initial=initial,
        neural=neural,
        targets=np.array(targets, dtype=np.int32),
        slot_of=np.arange(atoms, dtype=np.int32),
        members=np.arange(atoms, dtype=np.int32),
        pair_clause=np.repeat(np.arange(len(pieces), dtype=np.int32), atoms),
        pair_head=np.tile(np.arange(atoms, dtype=np.int32), len(pieces)),
        pair_start=start,
        factors=np.concatenate([p[1] for p in padded]),
        power=np.concatenate([p[2] for p in padded]),
        multiplicity=np.concatenate([p[3] for p in padded]),
        nodes=np.zeros((0, 2), dtype=np.int32),
        components=np.array([components(c, length) for c in program.clauses]),
        active=atoms,
    )


def _with_padding(
    piece: _Piece, atoms: int, substitutions: int, length: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows of one clause for every ground atom: (rows per atom, factors, power, multiplicity).

    A head with fewer than S rows gets one all-false row that stands for the missing ones.
    """
    real = np.zeros(atoms, dtype=np.int64)
    real[piece.heads] = piece.counts
    missing = substitutions - real
    per_atom = real + (missing > 0)
    last = np.cumsum(per_atom)
    is_padding = np.zeros(last[-1], dtype=bool)
    is_padding[last[missing > 0] - 1] = True
    n = piece.body.shape[1]
    factors = np.full((len(is_padding), length), FALSE, dtype=np.int32)
    factors[~is_padding, :n] = piece.body
    factors[~is_padding, n:] = NOTHING
    power = np.where(is_padding, 0, length - n).astype(np.int32)
    multiplicity = np.ones(len(is_padding), dtype=np.int64)
    multiplicity[is_padding] = missing[missing > 0]
    return per_atom, factors, power, multiplicity


def _constants(program: ir.Program, herbrand: Herbrand) -> tuple[np.ndarray, np.ndarray]:
    """Starting values that no network decides, and where a network does decide: [G], [G]."""
    initial = np.zeros(herbrand.size, dtype=np.float32)
    initial[TRUE] = 1
    for fact in program.facts:
        initial[herbrand.index(fact.name, tuple(a.name for a in fact.args)) or FALSE] = 1
    initial[FALSE] = 0
    neural = np.zeros(herbrand.size, dtype=bool)
    for predicate in program.predicates:
        if predicate.role == ir.NEURAL:
            first, last = herbrand.offsets[predicate.key]
            neural[first:last] = True
    return initial, neural
