"""Grounding: a typed program becomes rows of slots, by numpy over all assignments at once.

For a clause and a ground atom that unifies with its head, the free body variables run over the
injective assignments of each datatype; see `grounded.GroundProgram` for what comes out. Filters take
assignments away before `S` is counted. A body atom whose constants repeat is not in `G`: its place in
the row is `false`. Counting comes first, so that a program that would not fit is refused before
anything is built.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from nsfrc.compiler import ir
from nsfrc.compiler.counting import counts_of
from nsfrc.compiler.filters import holds
from nsfrc.compiler.goal_text import GoalText
from nsfrc.compiler.graph import cycle_through_count, with_cycles
from nsfrc.compiler.grounded import NOTHING, GroundProgram
from nsfrc.compiler.herbrand import FALSE, TRUE, Herbrand
from nsfrc.errors import Diagnostics
from nsfrc.records import dataclass

# Grounding and optimising take about 400 bytes per row with a body of a dozen atoms; this many rows
# stay below 16 GB.
MAX_ROWS = 30_000_000
KEPT_WAYS = 10_000


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
        hint = "add a clause, such as kp(X) :- in(O, X)."
        found.error("no-clauses", None, f"{program.name} has no clauses", hint)
        found.stop()
    herbrand = Herbrand.of(program.types, program.predicates, program.apart)
    _refuse_explosion(program, herbrand, found, max_rows)
    pieces = [_ground_clause(clause, program, herbrand) for clause in program.clauses]
    substitutions = max([1, *(int(p.counts.max(initial=0)) for p in pieces)])
    if program.anchored:
        rows = _possible(pieces, longest_body(program))
        grounded = with_cycles(with_rows_of(program, herbrand, substitutions, rows))
        _refuse_counts(program, grounded, found, max_rows)
        return grounded
    rows = _spelt_out(pieces, herbrand.size, substitutions, longest_body(program))
    return with_rows_of(program, herbrand, substitutions, rows)


def sizes(program: ir.Program, herbrand: Herbrand) -> list[Size]:
    """Count heads and assignments of every clause without enumerating them; filters not applied."""
    return [_size(clause, program, herbrand) for clause in program.clauses]


def _size(clause: ir.Clause, program: ir.Program, herbrand: Herbrand) -> Size:
    free = tuple(_free_variables(clause).items())
    assignments = 1
    for datatype, variables in free:
        constants = len(herbrand.type_by_name[datatype].constants)
        apart = datatype in program.apart
        assignments *= math.perm(constants, len(variables)) if apart else constants ** len(variables)
    return Size(len(_head_bindings(clause, herbrand)[0]), assignments, tuple((t, tuple(vs)) for t, vs in free))


def _refuse_explosion(program: ir.Program, herbrand: Herbrand, found: Diagnostics, max_rows: int) -> None:
    counted = sizes(program, herbrand)
    pairs, most_pairs = len(counted) * herbrand.size, max(max_rows, MAX_ROWS)
    if pairs > most_pairs:
        found.error(
            "too-large", None,
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
            "too-large", clause.span,
            f"this clause grounds to {size.rows:,} rows ({size.heads:,} head{'s' * (size.heads != 1)} × "
            f"{size.assignments:,} assignments of {variables or 'no variables'}); "
            f"the limit for the program is {max_rows:,}",
            "split the body into derived predicates with fewer variables each, use fewer slots (--slots), "
            "or raise the limit with --max-rows",
        )
    found.stop()


def _refuse_counts(program: ir.Program, grounded: GroundProgram, found: Diagnostics, max_rows: int) -> None:
    """Refuse counts of too much, and those that depend on their own result."""
    counts = grounded.counts
    choices = int((np.diff(counts.start) * np.diff(counts.wanted_start)).sum())
    if choices > max_rows:
        found.error("too-large", None, f"the counts of this program take {choices:,} steps; the limit is {max_rows:,}",
                    "count fewer variables at once, use fewer slots (--slots), or raise the limit with --max-rows")
    links = cycle_through_count(grounded)
    if links:
        text = GoalText(program)
        names = [text.goal(grounded.herbrand.atom(atom)) for atom, _ in links]
        clauses = [program.clauses[clause] for _, clause in links if clause != NOTHING]
        # An inner goal stands in a clause that is on the way as well.
        places = "; ".join(dict.fromkeys(f"{clause.head} {where}" for clause in clauses
                                         if clause.head.key not in text.inner and (where := _place(clause))))
        around = " → ".join([*names, names[0]])
        spans = [clause.span for clause in clauses]
        found.error("negative-cycle", next((span for span in spans if span), None),
                    f"a negation or count depends on its own result: {around}",
                    f"what is negated or counted must be decided first; the cycle runs through {places}")
    found.stop()


def _place(clause: ir.Clause) -> str:
    return f"({clause.span.source.name}:{clause.span.line})" if clause.span else ""


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
    predicate = herbrand.predicate_by_key[clause.head.key]
    first, last = herbrand.offsets[clause.head.key]
    arguments = herbrand.arguments(clause.head.key)
    keep = np.ones(last - first, dtype=bool)
    column_of: dict[str, int] = {}
    for column, term in enumerate(clause.head.args):
        if isinstance(term, ir.Const):
            keep &= arguments[:, column] == _position(herbrand, predicate.types[column], term)
        else:  # same(C, C) derives same(red, red) and not same(red, blue)
            keep &= arguments[:, column] == arguments[:, column_of.setdefault(term.name, column)]
    columns = {name: arguments[keep, column] for name, column in column_of.items()}
    return np.arange(first, last)[keep], columns


def _position(herbrand: Herbrand, datatype: str, term: ir.Const) -> int:
    return herbrand.type_by_name[datatype].constants.index(term.name)


def injective(constants: int, variables: int) -> np.ndarray:
    """All ways to give different constants to the variables, in lexicographic order: [ways, variables]."""
    few = math.perm(constants, variables) <= KEPT_WAYS
    return _few_ways(constants, variables) if few else _ways(constants, variables)


@lru_cache(maxsize=64)
def _few_ways(constants: int, variables: int) -> np.ndarray:
    """Clauses of one program ask for the same ones again and again."""
    return _ways(constants, variables)


def _ways(constants: int, variables: int) -> np.ndarray:
    position = np.min_scalar_type(constants)
    ways = np.zeros((1, 0), dtype=position)
    for _ in range(variables):
        taken = np.repeat(ways, constants, axis=0)
        chosen = np.tile(np.arange(constants, dtype=position), len(ways))
        fresh = (taken != chosen[:, None]).all(axis=1)
        ways = np.concatenate([taken[fresh], chosen[fresh, None]], axis=1)
    ways.setflags(write=False)
    return ways


def _any(constants: int, variables: int) -> np.ndarray:
    """All ways to give constants to the variables, in lexicographic order: [ways, variables]."""
    grid = np.indices((constants,) * variables, dtype=np.min_scalar_type(constants))
    return grid.reshape(variables, -1).T


def _assignments(
    clause: ir.Clause, program: ir.Program, herbrand: Herbrand
) -> tuple[dict[str, np.ndarray], int]:
    """Values of the free variables: all assignments, of different constants where a datatype is kept apart."""
    columns: dict[str, np.ndarray] = {}
    count = 1
    for datatype, variables in _free_variables(clause).items():
        constants = len(herbrand.type_by_name[datatype].constants)
        ways = (injective if datatype in program.apart else _any)(constants, len(variables))
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


def _ground_clause(clause: ir.Clause, program: ir.Program, herbrand: Herbrand) -> _Piece:
    heads, bound = _head_bindings(clause, herbrand)
    if not len(heads):  # no row whatever the assignments, which nothing bounds then
        return _Piece(heads, np.zeros(0, dtype=np.int64), np.empty((0, len(clause.body)), dtype=np.int32))
    free, count = _assignments(clause, program, herbrand)
    shape = (len(heads), count)
    values = {name: v[:, None] for name, v in bound.items()} | {name: v[None, :] for name, v in free.items()}
    keep = np.ones(shape, dtype=bool)
    for condition in clause.filters:
        keep &= holds(condition, clause, values, herbrand)
    if program.anchored:
        for one, other in _kept_from_head(clause, program):
            keep &= values[one] != values[other]
    whole = keep.all()
    body = np.empty((int(keep.sum()), len(clause.body)), dtype=np.int32)
    for column, atom in enumerate(clause.body):
        atoms = np.broadcast_to(_indices(atom, values, herbrand), shape)
        body[:, column] = atoms.ravel() if whole else atoms[keep]
    return _Piece(heads, keep.sum(axis=1), body)


def _kept_from_head(clause: ir.Clause, program: ir.Program) -> Iterator[tuple[str, str]]:
    """Free variables with variables of the head, where they stand for different objects."""
    types = dict(clause.types)
    for datatype, variables in _free_variables(clause).items():
        if datatype in program.apart:
            for variable in clause.head.variables():
                if types[variable.name] == datatype:
                    yield from ((name, variable.name) for name in variables)


def _indices(atom: ir.Atom, values: dict[str, np.ndarray], herbrand: Herbrand) -> np.ndarray:
    """Index of a body atom under every (head, assignment); FALSE where an argument repeats."""
    predicate = herbrand.predicate_by_key[atom.key]
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


@dataclass(frozen=True)
class Rows:
    """The rows of all clauses, as `GroundProgram` has them: what does not follow from the program without grounding."""

    pair_clause: np.ndarray
    pair_head: np.ndarray
    pair_start: np.ndarray
    factors: np.ndarray
    power: np.ndarray
    multiplicity: np.ndarray


def _spelt_out(pieces: list[_Piece], atoms: int, substitutions: int, length: int) -> Rows:
    """Lay the clauses' rows under each other, with the padding rows spelt out."""
    padded = [_with_padding(piece, atoms, substitutions, length) for piece in pieces]
    return Rows(
        pair_clause=np.repeat(np.arange(len(pieces), dtype=np.int32), atoms),
        pair_head=np.tile(np.arange(atoms, dtype=np.int32), len(pieces)),
        pair_start=np.cumsum(np.concatenate([np.zeros(1, np.int64), *(p[0] for p in padded)])),
        factors=np.concatenate([p[1] for p in padded]),
        power=np.concatenate([p[2] for p in padded]),
        multiplicity=np.concatenate([p[3] for p in padded]),
    )


def _possible(pieces: list[_Piece], length: int) -> Rows:
    """The rows that may hold: under `anchored` one with a false atom adds nothing, and none is padding."""
    parts = []
    for number, piece in enumerate(pieces):
        heads = np.repeat(piece.heads, piece.counts)
        possible = (piece.body != FALSE).all(axis=1)
        factors = np.full((int(possible.sum()), length), NOTHING, dtype=np.int32)
        factors[:, : piece.body.shape[1]] = piece.body[possible]
        parts.append((number, heads[possible], factors))
    heads = np.concatenate([part[1] for part in parts]).astype(np.int32)
    clause = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part[1]) for part in parts])
    first = np.flatnonzero(np.r_[True, (np.diff(heads) != 0) | (np.diff(clause) != 0)][: len(heads)])
    return Rows(
        pair_clause=clause[first], pair_head=heads[first],
        pair_start=np.append(first, len(heads)).astype(np.int64),
        factors=np.concatenate([part[2] for part in parts]),
        power=np.zeros(len(heads), dtype=np.int32), multiplicity=np.ones(len(heads), dtype=np.int64),
    )


def with_rows_of(program: ir.Program, herbrand: Herbrand, substitutions: int, rows: Rows) -> GroundProgram:
    """A program and its rows as a ground program in which every atom has a slot of its own; without its cycles."""
    atoms, length = np.arange(herbrand.size, dtype=np.int32), longest_body(program)
    initial, neural = _constants(program, herbrand)
    targets = [herbrand.index(t.name, tuple(a.name for a in t.args)) or FALSE for t in program.targets]
    return GroundProgram(
        herbrand=herbrand, clauses=program.clauses, S=substitutions, L=length,
        initial=initial, neural=neural, targets=np.array(targets, dtype=np.int32), slot_of=atoms, members=atoms,
        pair_clause=rows.pair_clause, pair_head=rows.pair_head, pair_start=rows.pair_start,
        factors=rows.factors, power=rows.power, multiplicity=rows.multiplicity,
        nodes=np.zeros((0, 2), dtype=np.int32),
        components=np.array([components(c, length) for c in program.clauses]),
        active=herbrand.size,
        cycle=np.full(herbrand.size, NOTHING, dtype=np.int64),
        counts=counts_of(program, herbrand),
    )


def longest_body(program: ir.Program) -> int:
    """L of the index tensor."""
    return max([1, *(len(clause.body) for clause in program.clauses)])


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
        if predicate.role in ir.INPUTS:
            first, last = herbrand.offsets[predicate.key]
            neural[first:last] = True
    return initial, neural
