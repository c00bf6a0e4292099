"""The forward kernel: tiles of examples, all steps of one tile before the next."""

from __future__ import annotations

import numpy as np
from numba import njit

from nsfrc.engines.cpu.maths import COUNT, INNER, flush_denormals, larger, restore, smaller
from nsfrc.engines.cpu.meeting import BOUNDED_AT, FINE_AT, all_say
from nsfrc.engines.cpu.memory import (
    allocate,
    begin,
    cell,
    copy,
    fill,
    floats,
    ints,
    load_atom,
    new_row,
    new_table,
    release,
)
from nsfrc.engines.cpu.normalising import normalise_clauses, normalise_derived, update_values
from nsfrc.engines.cpu.reading import read_base, read_call, read_tables
from nsfrc.engines.cpu.step import (
    ONE,
    ZERO,
    Scratch,
    combine_hard,
    combine_soft,
    multiply_nodes,
    powers_of_constants,
    sum_pairs,
)
from nsfrc.engines.cpu.tables import FEW_LANES, FINE, NO_MEMORY, OTHER_START, VECTOR

# With values in [0, 1] and k up to this, 2^(x·k - k/2) neither overflows nor vanishes.
BOUNDED_K = np.float32(200.0)
LARGEST = np.finfo(np.float32).max


@njit(**INNER)
def padded_lanes(examples, call):
    """Lanes for so many examples of a call: whole vectors, unless its examples share a maximum or are few.

    Few that are left for a last tile are added up as all others are, wherever tiles begin.
    """
    if call.whole_batch or call.last - call.first <= FEW_LANES:
        return examples
    return (examples + VECTOR - 1) // VECTOR * VECTOR


@njit(**INNER)
def new_scratch(cursor, powers, pairs, clauses, heads, mixtures, rows, lanes):
    return Scratch(
        new_table(cursor, powers, lanes),
        new_table(cursor, 1, lanes),
        new_table(cursor, pairs, lanes),
        new_table(cursor, pairs, lanes),
        new_table(cursor, pairs, lanes),
        new_table(cursor, clauses, lanes),
        new_table(cursor, clauses, lanes),
        new_table(cursor, heads + 1, lanes),
        new_table(cursor, 2, lanes),
        new_table(cursor, mixtures, lanes),
        new_row(cursor, max(rows, lanes) if lanes <= FEW_LANES else lanes),
        new_row(cursor, lanes),
        new_row(cursor, lanes),
    )


@njit(**COUNT)
def _survey(call, constant):
    """FINE; or an example with a NaN or infinity; or OTHER_START if atoms that are not neural must start as the program
    says and do not.
    """
    other = ZERO
    for example in range(call.first, call.last):
        V0 = call.V0[example]
        wrong = ZERO
        for atom in range(len(V0)):
            wrong += ZERO if abs(V0[atom]) <= LARGEST else ONE
        if wrong > ZERO:
            return example
        for atom in range(len(V0) if call.must_start_so else 0):
            other += ONE if (constant[atom] >= ZERO) & (V0[atom] != constant[atom]) else ZERO
    return OTHER_START if other > ZERO else FINE


@njit(**INNER)
def start(V0, constant, example, atom, neural_only):
    """The starting value of an atom; with neural_only, `constant` where there is one, whatever V0 says."""
    return constant[atom] if neural_only and constant[atom] >= ZERO else V0[example, atom]


@njit(**INNER)
def _load_start(V0, constant, atom, neural_only, row):
    """Where an atom starts in the examples V0 [used, G]: `start` in every lane."""
    if neural_only and constant[atom] >= ZERO:
        fill(row, constant[atom])
        return
    load_atom(V0, atom, row)


@njit(**INNER)
def _load_tile(members, constant, V0, active, X, rest, other, targets_only, neural_only):
    """Read examples V0 [used, G] into lanes. other: room for a row."""
    fill(X[active], ONE)
    for slot in range(active):
        _load_start(V0, constant, members[slot], neural_only, X[slot])
    for slot in range(active, len(members)):
        if slot == active or not targets_only:
            _load_start(V0, constant, members[slot], neural_only, rest[slot - active])
            continue
        _load_start(V0, constant, members[slot], neural_only, other)
        for i in range(len(other)):
            rest[0, i] = other[i] if other[i] > rest[0, i] else rest[0, i]


@njit(**INNER)
def _in_unit_interval(values, rows):
    least, most = ONE, ZERO
    x = floats(values.ctypes.data, rows * values.shape[1])
    for i in range(len(x)):
        least, most = smaller(least, x[i]), larger(most, x[i])
    return least >= ZERO and most <= ONE


@njit(**INNER)
def is_bounded(X, active, rest, k):
    """Whether exponents stay in range without looking for their maximum."""
    return k <= BOUNDED_K and _in_unit_interval(X, active) and _in_unit_interval(rest, rest.shape[0])


@njit(**INNER)
def _store_tile(slot_of, X, rest, active, first, last, outputs, out):
    """Write atoms `outputs` of lanes to out[first:last]."""
    for i in range(last - first):
        for j in range(len(outputs)):
            slot = slot_of[outputs[j]]
            out[first + i, j] = X[slot, i] if slot < active else rest[slot - active, i]


@njit(**INNER)
def _remember(X, active, rest, first, last, past):
    """Keep V of a step for the backward pass: past [active + rest, B]."""
    if past.shape[0]:
        for slot in range(active):
            copy(X[slot], past[slot, first:last])
        for slot in range(rest.shape[0]):
            copy(rest[slot], past[active + slot, first:last])


@njit(**INNER)
def derive(tables, call, gamma, k, unit, bounded, X, s):
    """R of every head, normalised, from the values in X; fills X's nodes and all of the scratch `s` but Z of V."""
    multiply_nodes(tables.node_left, tables.node_right, len(tables.head_of) + 1, X)
    powers_of_constants(tables.powers, tables.true, tables.false, tables.L, k, X, s.scale, s.bottom)
    sum_pairs(
        tables.row_left, tables.row_right, tables.group_start, tables.run_start, tables.run_power,
        tables.run_times, tables.pair_start, tables.pair_padding, k, unit, bounded,
        X, s.scale, s.bottom, s.offset, s.total, s.pairs, s.buffer, s.left, s.sums,
    )
    normalise_clauses(tables.clause_start, tables.log_s * gamma, call.whole_batch, call.meeting, s.bottom, s.pairs,
                      s.absent, s.clause_z)
    if call.hard:
        combine_hard(tables.head_start, tables.head_pairs, tables.pair_clause, k, unit, call.meeting,
                     s.pairs, s.absent, s.derived, s.mixed, s.buffer)
    else:
        combine_soft(tables.head_start, tables.head_pairs, tables.pair_clause, k, unit,
                     call.weights, s.pairs, s.absent, s.derived, s.mixed, s.buffer, s.sums)
    normalise_derived(s.derived, s.z[0], call.whole_batch, call.meeting)


@njit(**INNER)
def _lay_out(cursor, tables, call, lanes):
    """X, the passive slots or the largest of them, and the scratch of a tile, from where the cursor is."""
    active, passive = len(tables.head_of), len(tables.members) - len(tables.head_of)
    mixtures = len(tables.clause_start) - 1 if call.hard else call.weights.shape[0]
    X = new_table(cursor, active + 1 + len(tables.node_left), lanes)
    rest = new_table(cursor, min(passive, 1) if call.targets_only else passive, lanes)
    return X, rest, new_scratch(cursor, len(tables.powers), len(tables.pair_clause), call.weights.shape[1],
                                len(tables.heads), mixtures, max(len(tables.row_left), active), lanes)


@njit(**INNER)
def forward(address):
    """Reason about examples first … last of V0 [B, G]: writes the atoms `outputs` to out [B, len(outputs)].

    address: of a record, see `tables.Fixed` and `tables.Own`. Returns FINE, or why it did nothing: see `_survey`. Where
    examples share a Z, no part does anything unless all of them can.
    """
    tables, call = read_tables(address), read_call(address)
    found, room = _survey(call, tables.constant), 0
    gamma, k, unit = read_base(address)
    cursor = ints(cell(), 1)
    cursor[0] = 0
    _lay_out(cursor, tables, call, padded_lanes(min(call.tile, call.last - call.first), call))
    if found == FINE:
        room = allocate(cursor[0] + begin(1))
        found = FINE if room != 0 else NO_MEMORY
    if not all_say(call.meeting, FINE_AT, found == FINE):
        if room != 0:
            release(room)
        return found
    mode = flush_denormals()
    active, done = len(tables.head_of), call.first
    while done < call.last:
        end = min(done + call.tile, call.last)
        cursor[0] = begin(room)
        X, rest, s = _lay_out(cursor, tables, call, padded_lanes(end - done, call))
        _load_tile(tables.members, tables.constant, call.V0[done:end], active, X, rest, s.sums, call.targets_only,
                   call.neural_only)
        bounded = all_say(call.meeting, BOUNDED_AT, is_bounded(X, active, rest, k))
        for t in range(call.steps):
            _remember(X, active, rest, done, end, call.past[t])
            derive(tables, call, gamma, k, unit, bounded, X, s)
            update_values(tables.head_of, gamma, k, call.whole_batch, call.meeting, X, rest, s.derived, s.z[1],
                          s.buffer)
            if call.past_z.shape[0]:
                copy(s.z[1], call.past_z[t, done:end])
        _remember(X, active, rest, done, end, call.past[call.steps])
        _store_tile(tables.slot_of, X, rest, active, done, end, call.outputs, call.out)
        done = end
    restore(mode)
    release(room)
    return FINE
