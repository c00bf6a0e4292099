"""The backward kernel: the steps in reverse, each recomputed from the V it started with.

No two tiles write to the same place, so gradients have the same bits in every run. `through` has the phases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nsfrc.engines.cpu.forward import derive, is_bounded, new_scratch, padded_lanes, start
from nsfrc.engines.cpu.maths import INNER, flush_denormals, restore
from nsfrc.engines.cpu.meeting import BOUNDED_AT, FINE_AT, all_say
from nsfrc.engines.cpu.memory import allocate, begin, cell, fill, ints, load_row, new_row, new_table, release
from nsfrc.engines.cpu.reading import read_base, read_call, read_tables
from nsfrc.engines.cpu.step import ONE, ZERO
from nsfrc.engines.cpu.tables import FINE, NO_MEMORY
from nsfrc.engines.cpu.through import (
    tell_above,
    through_constants,
    through_hard,
    through_nodes,
    through_rows,
    through_soft,
)
from nsfrc.engines.cpu.through_z import through_clause_z, through_derived_z, through_values


@njit(**INNER)
def _load(past, first, last, out):
    """Lanes first … last of past [slots, B]; spare lanes repeat the last one."""
    for slot in range(out.shape[0]):
        load_row(past[slot, first:last], out[slot])


@njit(**INNER)
def _load_gradient(slot_of, g_out, first, last, outputs, g):
    for slot in range(g.shape[0]):
        fill(g[slot], ZERO)
    for i in range(last - first):
        for j in range(len(outputs)):
            g[slot_of[outputs[j]], i] += g_out[first + i, j]


@njit(**INNER)
def _store_gradient(members, constant, active, V0, g, first, last, targets_only, neural_only, g_V0):
    """Write each slot's gradient to its first atom; the row that carries a maximum to the largest atom."""
    for i in range(first, last):
        largest = members[active] if len(members) > active else 0
        for slot in range(len(members)):
            atom = members[slot]
            if slot >= active and targets_only:
                best = start(V0, constant, i, largest, neural_only)
                if start(V0, constant, i, atom, neural_only) > best:
                    largest = atom
            elif not neural_only or not constant[atom] >= ZERO:
                g_V0[i, atom] = g[slot, i - first]
        if targets_only and len(members) > active and not (neural_only and constant[largest] >= ZERO):
            g_V0[i, largest] = g[active, i - first]


class Gradients(NamedTuple):
    """Room for a tile: V before and after a step, and what gradients of what become."""

    X: np.ndarray
    before: np.ndarray  # [kept, lanes]
    after: np.ndarray
    g: np.ndarray  # [kept, lanes]: of V
    gX: np.ndarray
    power: np.ndarray  # as `Scratch.scale`
    pairs: np.ndarray
    absent: np.ndarray
    derived: np.ndarray
    mixed: np.ndarray  # [M, lanes]
    z: np.ndarray  # [lanes], as all that follow
    bottom: np.ndarray
    value: np.ndarray
    left: np.ndarray
    factor: np.ndarray
    g_left: np.ndarray


@njit(**INNER)
def _lay_out(cursor, tables, call, lanes):
    """The room of a tile, from where the cursor is."""
    rows, kept, clauses = len(tables.head_of) + 1 + len(tables.node_left), call.past.shape[1], call.weights.shape[1]
    pairs, heads, powers = len(tables.pair_clause), len(tables.heads), len(tables.powers)
    mixtures = clauses if call.hard else call.weights.shape[0]
    s = new_scratch(cursor, powers, pairs, clauses, heads, mixtures, len(tables.row_left), lanes)
    return s, Gradients(
        new_table(cursor, rows, lanes), new_table(cursor, kept, lanes), new_table(cursor, kept, lanes),
        new_table(cursor, kept, lanes), new_table(cursor, rows, lanes), new_table(cursor, powers, lanes),
        new_table(cursor, pairs, lanes), new_table(cursor, clauses, lanes), new_table(cursor, heads + 1, lanes),
        new_table(cursor, call.weights.shape[0], lanes), new_row(cursor, lanes), new_row(cursor, lanes),
        new_row(cursor, lanes), new_row(cursor, lanes), new_row(cursor, lanes), new_row(cursor, lanes),
    )


@njit(**INNER)
def _through_step(tables, call, gamma, k, unit, bounded, used, s, r):
    """From the gradient of V after a step to that of V before it, in place."""
    active, lanes = len(tables.head_of), r.X.shape[1]
    for slot in range(active):
        for i in range(lanes):
            r.X[slot, i] = r.before[slot, i]
    fill(r.X[active], ONE)
    derive(tables, call, gamma, k, unit, bounded, r.X, s)
    if call.hard:
        tell_above(call.meeting, s.absent.shape[0], s.z[0], k, s.derived)
    through_values(tables.head_of, tables.order, k, call, r.before, r.after, s.z[1], s.derived, r.g, r.derived, r.z)
    through_derived_z(s.derived, s.z[0], r.derived, call, r.z)
    if call.hard:
        through_hard(tables.head_start, tables.head_pairs, tables.pair_clause, k, call.meeting, s.pairs, s.absent,
                     s.derived, s.z[0], s.mixed, r.derived, r.pairs, r.absent, r.value, r.left)
    else:
        through_soft(tables.head_start, tables.head_pairs, tables.pair_clause, k, call.weights, s.pairs, s.absent,
                     s.derived, s.z[0], s.mixed, r.derived, r.pairs, r.absent, call.g_weights, used,
                     call.meeting.chunk, r.value, r.mixed)
    fill(r.bottom, ZERO)
    through_clause_z(tables.clause_start, call, s.pairs, s.absent, s.clause_z, r.pairs, r.absent, r.bottom, r.z)
    for row in range(r.gX.shape[0]):
        fill(r.gX[row], ZERO)
    for p in range(r.power.shape[0]):
        fill(r.power[p], ZERO)
    through_rows(
        tables.row_left, tables.row_right, tables.group_start, tables.run_start, tables.run_power,
        tables.run_times, tables.pair_start, tables.pair_padding, k, unit,
        r.X, s.scale, s.bottom, s.offset, s.total, r.pairs, r.gX, r.power, r.bottom, r.value, r.left, r.factor,
        r.g_left,
    )
    through_nodes(tables.node_left, tables.node_right, active + 1, r.X, r.gX)
    through_constants(tables.powers, tables.true, tables.false, tables.L, r.X, r.gX, r.power, r.bottom)
    for slot in range(active):
        for i in range(lanes):
            r.g[slot, i] += r.gX[slot, i]


@njit(**INNER)
def backward(address):
    """Gradients of examples first … last: writes g_V0 [B, G], adds to g_weights [M, C] (float64).

    address: of the record that `forward` had, with past and past_z as it left them; `out` is the outputs' gradient.
    """
    tables, call = read_tables(address), read_call(address)
    gamma, k, unit = read_base(address)
    cursor = ints(cell(), 1)
    cursor[0] = 0
    _lay_out(cursor, tables, call, padded_lanes(min(call.tile, call.last - call.first), call))
    room = allocate(cursor[0] + begin(1))
    if not all_say(call.meeting, FINE_AT, room != 0):
        if room != 0:
            release(room)
        return NO_MEMORY
    mode = flush_denormals()
    active, kept, done = len(tables.head_of), call.past.shape[1], call.first
    while done < call.last:
        end = min(done + call.tile, call.last)
        cursor[0] = begin(room)
        s, r = _lay_out(cursor, tables, call, padded_lanes(end - done, call))
        _load(call.past[0], done, end, r.before)
        bounded = all_say(call.meeting, BOUNDED_AT, is_bounded(r.before, kept, r.before[:0], k))
        _load_gradient(tables.slot_of, call.out, done, end, call.outputs, r.g)
        for t in range(call.steps - 1, -1, -1):
            _load(call.past[t], done, end, r.before)
            _load(call.past[t + 1], done, end, r.after)
            _load(call.past_z[t : t + 1], done, end, s.z[1:2])
            _through_step(tables, call, gamma, k, unit, bounded, end - done, s, r)
        _store_gradient(tables.members, tables.constant, active, call.V0, r.g, done, end, call.targets_only,
                        call.neural_only, call.g_V0)
        done = end
    restore(mode)
    release(room)
    return FINE
