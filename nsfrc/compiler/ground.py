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

from nsfrc.compiler import ir, row_layout
from nsfrc.compiler.counting import counts_of
from nsfrc.compiler.filters import holds
from nsfrc.compiler.goal_text import GoalText
from nsfrc.compiler.graph import cycle_through_count, with_cycles
from nsfrc.compiler.grounded import NOTHING, GroundProgram
from nsfrc.compiler.herbrand import FALSE, TRUE, Herbrand
from nsfrc.compiler.row_layout import Piece, Rows, SpeltOut
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
    """Ground every clause; adds to `found` and raises when the program is too large.

    Under `paper` with every pair and padding row spelt out, as the index tensor has them.
    """
    if program.anchored:
        return ground_live(program, found, max_rows)[0]
    herbrand, pieces, substitutions = _pieces(program, found, max_rows)
    rows = row_layout.spelt_out(pieces, herbrand.size, substitutions, longest_body(program))
    return with_rows_of(program, herbrand, substitutions, rows)


def ground_live(
    program: ir.Program, found: Diagnostics, max_rows: int = MAX_ROWS
) -> tuple[GroundProgram, SpeltOut]:
    """As `ground`, without the rows that are all false (see passes/live.py), which are only counted."""
    herbrand, pieces, substitutions = _pieces(program, found, max_rows)
    length = longest_body(program)
    if program.anchored:
        grounded = with_cycles(with_rows_of(program, herbrand, substitutions, row_layout.possible(pieces, length)))
        _refuse_counts(program, grounded, found, max_rows)
        return grounded, SpeltOut(herbrand.size, grounded.rows, grounded.products)
    spelt_out = row_layout.counted(pieces, herbrand.size, substitutions, length)
    return with_rows_of(program, herbrand, substitutions, row_layout.live(pieces, length)), spelt_out


def _pieces(program: ir.Program, found: Diagnostics, max_rows: int) -> tuple[Herbrand, list[Piece], int]:
    """The ground atoms, the clauses one by one, and S."""
    if not program.clauses:
        hint = "add a clause, such as kp(X) :- in(O, X)."
        found.error("no-clauses", None, f"{program.name} has no clauses", hint)
        found.stop()
    herbrand = Herbrand.of(program.types, program.predicates, program.apart)
    _refuse_explosion(program, herbrand, found, max_rows)
    grounder = _Grounder(program, herbrand)
    pieces = [grounder.piece(clause) for clause in program.clauses]
    return herbrand, pieces, max([1, *(int(piece.counts.max(initial=0)) for piece in pieces)])


def sizes(program: ir.Program, herbrand: Herbrand) -> list[Size]:
    """Count heads and assignments of every clause without enumerating them; filters not applied."""
    heads: dict[tuple[object, ...], int] = {}
    return [_size(clause, program, herbrand, heads) for clause in program.clauses]


def _size(clause: ir.Clause, program: ir.Program, herbrand: Herbrand, known: dict[tuple[object, ...], int]) -> Size:
    """known: how many ground atoms unify with heads, by predicate and arguments."""
    free = tuple(_free_variables(clause).items())
    assignments = 1
    for datatype, variables in free:
        constants = len(herbrand.type_by_name[datatype].constants)
        apart = datatype in program.apart
        assignments *= math.perm(constants, len(variables)) if apart else constants ** len(variables)
    head = clause.head.name, *[(type(term), term.name) for term in clause.head.args]
    if head not in known:
        known[head] = len(_head_bindings(clause, herbrand)[0])
    return Size(known[head], assignments, tuple((t, tuple(vs)) for t, vs in free))


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


@dataclass(frozen=True, eq=False)
class _Space:
    """What heads and variables of a clause may be; clauses that are alike but for names have the same.

    values: of each variable, by number, to be broadcast to [heads, assignments]; keep: which of these are kept, None
    for all. columns: body atoms under all that are kept, by predicate and arguments, of which numbers are variables.
    """

    heads: np.ndarray
    shape: tuple[int, int]
    values: tuple[np.ndarray, ...]
    keep: np.ndarray | None
    counts: np.ndarray
    columns: dict[tuple[str | int, ...], np.ndarray]


class _Grounder:
    """Grounds clauses one by one; small spaces, which many of them share, are kept."""

    def __init__(self, program: ir.Program, herbrand: Herbrand) -> None:
        self._program, self._herbrand = program, herbrand
        self._spaces: dict[tuple[object, ...], _Space] = {}

    def piece(self, clause: ir.Clause) -> Piece:
        free = _free_variables(clause)
        number: dict[str, int] = {}
        for variable in clause.head.variables():
            number.setdefault(variable.name, len(number))
        head = tuple(number[term.name] if isinstance(term, ir.Var) else term.name for term in clause.head.args)
        for variables in free.values():
            for name in variables:
                number[name] = len(number)
        key = clause.head.key, head, tuple((datatype, len(names)) for datatype, names in free.items())
        space = self._spaces.get(key) or self._space(clause, number)
        small = space.shape[0] * space.shape[1] <= KEPT_WAYS
        if small:
            self._spaces[key] = space
        if clause.filters and len(space.heads):
            return self._filtered(clause, space, number)
        body = np.empty((int(space.counts.sum()), len(clause.body)), dtype=np.int32)
        if len(body):
            for column, atom in enumerate(clause.body):
                body[:, column] = self._column(atom, space, number, small)
        return Piece(space.heads, space.counts, body)

    def _space(self, clause: ir.Clause, number: dict[str, int]) -> _Space:
        heads, bound = _head_bindings(clause, self._herbrand)
        if not len(heads):  # no row whatever the assignments, which nothing bounds then
            return _Space(heads, (0, 0), (), None, np.zeros(0, dtype=np.int64), {})
        free, count = _assignments(clause, self._program, self._herbrand)
        values = {name: v[:, None] for name, v in bound.items()} | {name: v[None, :] for name, v in free.items()}
        keep = None
        if self._program.anchored:
            for one, other in _kept_from_head(clause, self._program):
                different = np.broadcast_to(values[one] != values[other], (len(heads), count))
                keep = different if keep is None else keep & different
        counts = np.full(len(heads), count, dtype=np.int64) if keep is None else keep.sum(axis=1)
        return _Space(heads, (len(heads), count), tuple(values[name] for name in number), keep, counts, {})

    def _filtered(self, clause: ir.Clause, space: _Space, number: dict[str, int]) -> Piece:
        values = dict(zip(number, space.values, strict=True))
        keep = np.ones(space.shape, dtype=bool) if space.keep is None else space.keep.copy()
        for condition in clause.filters:
            keep &= holds(condition, clause, values, self._herbrand)
        body = np.empty((int(keep.sum()), len(clause.body)), dtype=np.int32)
        for column, atom in enumerate(clause.body):
            body[:, column] = np.broadcast_to(_indices(atom, values, self._herbrand), space.shape)[keep]
        return Piece(space.heads, keep.sum(axis=1), body)

    def _column(self, atom: ir.Atom, space: _Space, number: dict[str, int], keep: bool) -> np.ndarray:
        """A body atom in every row."""
        key = atom.name, *[number[term.name] if isinstance(term, ir.Var) else term.name for term in atom.args]
        column = space.columns.get(key)
        if column is None:
            values = dict(zip(number, space.values, strict=True))
            atoms = np.broadcast_to(_indices(atom, values, self._herbrand), space.shape)
            column = atoms.ravel() if space.keep is None else atoms[space.keep]
            if keep:
                space.columns[key] = column
        return column


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
        for term in atom.args:
            if isinstance(term, ir.Var) and term.name in free and (before := seen.setdefault(term.name, i)) != i:
                one, other = first_of(before), first_of(i)
                parent[max(one, other)] = min(one, other)
    return [first_of(i) for i in range(length)]


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
