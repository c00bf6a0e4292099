"""The forward kernel: tiles of examples, all steps of one tile before the next."""

from __future__ import annotations

import numpy as np
from numba import njit

from nsfrc.engines.cpu.maths import KERNEL, flush_denormals, restore
from nsfrc.engines.cpu.step import (
    FEW_LANES,
    ONE,
    ZERO,
    Scratch,
    combine_hard,
    combine_soft,
    multiply_nodes,
    normalise_clauses,
    normalise_rows,
    powers_of_constants,
    sum_pairs,
    update_values,
)
from nsfrc.engines.cpu.tables import unpack

VECTOR = 8  # float32 lanes of a 256-bit register; tiles are filled up to a multiple of it
# With values in [0, 1] and k up to this, 2^(x·k - k/2) neither overflows nor vanishes.
BOUNDED_K = np.float32(200.0)
LARGEST = np.finfo(np.float32).max


@njit(**KERNEL)
def padded_lanes(examples, whole_batch):
    """Lanes for so many examples: whole vectors, unless the examples share a maximum or are few."""
    if whole_batch or examples <= FEW_LANES:
        return examples
    return (examples + VECTOR - 1) // VECTOR * VECTOR


@njit(**KERNEL)
def new_scratch(powers, pairs, clauses, heads, mixtures, rows, lanes):
    return Scratch(
        np.empty((powers, lanes), np.float32),
        np.empty((1, lanes), np.float32),
        np.empty((pairs, lanes), np.float32),
        np.empty((pairs, lanes), np.float32),
        np.empty((pairs, lanes), np.float32),
        np.empty((clauses, lanes), np.float32),
        np.empty((clauses, lanes), np.float32),
        np.empty((heads + 1, lanes), np.float32),
        np.empty((2, lanes), np.float32),
        np.empty((mixtures, lanes), np.float32),
        np.empty(max(rows, lanes) if lanes <= FEW_LANES else lanes, np.float32),
    )


@njit(nogil=True, cache=True)
def survey(V0, constant):
    """(whether atoms that are not neural start as the program says, an example with a NaN or infinity or -1)."""
    as_declared = True
    for i in range(V0.shape[0]):
        for atom in range(V0.shape[1]):
            if not abs(V0[i, atom]) <= LARGEST:
                return False, i
            as_declared &= constant[atom] < ZERO or V0[i, atom] == constant[atom]
    return as_declared, -1


@njit(**KERNEL)
def start(V0, constant, example, atom, neural_only):
    """The starting value of an atom; with neural_only, `constant` where there is one, whatever V0 says."""
    return constant[atom] if neural_only and constant[atom] >= ZERO else V0[example, atom]


@njit(**KERNEL)
def _load_tile(members, constant, V0, first, last, active, X, rest, targets_only, neural_only):
    """Read examples first … last of V0 [B, G] into lanes; spare lanes repeat the last example."""
    for i in range(X.shape[1]):
        example = min(first + i, last - 1)
        X[active, i] = ONE
        for slot in range(active):
            X[slot, i] = start(V0, constant, example, members[slot], neural_only)
        for slot in range(active, len(members)):
            value = start(V0, constant, example, members[slot], neural_only)
            if not targets_only:
                rest[slot - active, i] = value
            else:
                rest[0, i] = value if slot == active else max(rest[0, i], value)


@njit(**KERNEL)
def _in_unit_interval(values, rows):
    for row in range(rows):
        for i in range(values.shape[1]):
            if not (ZERO <= values[row, i] <= ONE):
                return False
    return True


@njit(**KERNEL)
def is_bounded(X, active, rest, k):
    """Whether exponents stay in range without looking for their maximum."""
    return k <= BOUNDED_K and _in_unit_interval(X, active) and _in_unit_interval(rest, rest.shape[0])


@njit(**KERNEL)
def _store_tile(slot_of, X, rest, active, first, last, outputs, out):
    """Write atoms `outputs` of lanes to out[first:last]."""
    for i in range(last - first):
        for j in range(len(outputs)):
            slot = slot_of[outputs[j]]
            out[first + i, j] = X[slot, i] if slot < active else rest[slot - active, i]


@njit(**KERNEL)
def _remember(X, active, rest, first, last, past):
    """Keep V of a step for the backward pass: past [active + rest, B]."""
    if past.shape[0]:
        for i in range(last - first):
            for slot in range(active):
                past[slot, first + i] = X[slot, i]
            for slot in range(rest.shape[0]):
                past[active + slot, first + i] = rest[slot, i]


@njit(**KERNEL)
def derive(tables, gamma, k, unit, weights, hard, bounded, whole_batch, X, s):
    """R of every head, normalised, from the values in X; fills X's nodes and all of the scratch `s` but Z of V."""
    multiply_nodes(tables.node_left, tables.node_right, len(tables.head_of) + 1, X)
    powers_of_constants(tables.powers, tables.true, tables.false, tables.L, k, X, s.scale, s.bottom)
    sum_pairs(
        tables.row_left, tables.row_right, tables.group_start, tables.run_start, tables.run_power,
        tables.run_times, tables.pair_start, tables.pair_padding, k, unit, bounded,
        X, s.scale, s.bottom, s.offset, s.total, s.pairs, s.buffer,
    )
    normalise_clauses(tables.clause_start, tables.log_s * gamma, whole_batch, s.bottom, s.pairs,
                      s.absent, s.clause_z)
    if hard:
        combine_hard(tables.head_start, tables.head_pairs, tables.pair_clause, k, unit,
                     s.pairs, s.absent, s.derived, s.mixed, s.buffer)
    else:
        combine_soft(tables.head_start, tables.head_pairs, tables.pair_clause, k, unit,
                     weights, s.pairs, s.absent, s.derived, s.mixed, s.buffer)
    normalise_rows(s.derived, s.z[0], whole_batch)


@njit(cache=True, **KERNEL)
def forward(
    indices, floats, layout, base, V0, first, last, tile, weights, hard, steps, whole_batch, outputs, targets_only,
    neural_only, past, past_z, out,
):
    """Reason about examples first … last of V0 [B, G]: writes the atoms `outputs` to out [B, len(outputs)].

    indices, floats, layout: `tables.Packed`; base: `tables.base_two`; weights [M, C] count unless `hard`.
    past [steps + 1, active + rest, B] and past_z [steps, B] take V of every step and its Z, unless empty.
    """
    mode = flush_denormals()
    tables = unpack(indices, floats, layout)
    gamma, k, unit = base[0], base[1], base[2]
    active, passive = len(tables.head_of), len(tables.members) - len(tables.head_of)
    done = first
    while done < last:
        end = min(done + tile, last)
        lanes = padded_lanes(end - done, whole_batch)
        X = np.empty((active + 1 + len(tables.node_left), lanes), np.float32)
        rest = np.empty((min(passive, 1) if targets_only else passive, lanes), np.float32)
        s = new_scratch(len(tables.powers), len(tables.pair_clause), weights.shape[1], len(tables.heads),
                        weights.shape[0], len(tables.row_left), lanes)
        _load_tile(tables.members, tables.constant, V0, done, end, active, X, rest, targets_only, neural_only)
        bounded = is_bounded(X, active, rest, k)
        for t in range(steps):
            _remember(X, active, rest, done, end, past[t])
            derive(tables, gamma, k, unit, weights, hard, bounded, whole_batch, X, s)
            update_values(tables.head_of, gamma, k, whole_batch, X, rest, s.derived, s.z[1])
            for i in range(end - done if past_z.shape[0] else 0):
                past_z[t, done + i] = s.z[1, i]
        _remember(X, active, rest, done, end, past[steps])
        _store_tile(tables.slot_of, X, rest, active, done, end, outputs, out)
        done = end
    restore(mode)
