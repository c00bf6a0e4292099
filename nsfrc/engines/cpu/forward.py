"""The forward kernel: tiles of examples, all steps of one tile before the next."""

from __future__ import annotations

import numpy as np
from numba import njit

from nsfrc.engines.cpu.maths import INNER, KERNEL, flush_denormals, restore
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
from nsfrc.engines.cpu.tables import Arguments, unpack

VECTOR = 8  # float32 lanes of a 256-bit register; tiles are filled up to a multiple of it
# With values in [0, 1] and k up to this, 2^(x·k - k/2) neither overflows nor vanishes.
BOUNDED_K = np.float32(200.0)
LARGEST = np.finfo(np.float32).max


@njit(**INNER)
def padded_lanes(examples, whole_batch):
    """Lanes for so many examples: whole vectors, unless the examples share a maximum or are few."""
    if whole_batch or examples <= FEW_LANES:
        return examples
    return (examples + VECTOR - 1) // VECTOR * VECTOR


@njit(**INNER)
def new_scratch(t, weights, rest, lanes):
    """rest: how many passive slots have a row."""
    powers, pairs, heads, nodes = len(t.powers), len(t.pair_clause), len(t.heads), len(t.node_left)
    mixtures, clauses = weights.shape
    return Scratch(
        np.empty((len(t.head_of) + 1 + nodes, lanes), np.float32),
        np.empty((rest, lanes), np.float32),
        np.empty((powers, lanes), np.float32),
        np.empty(lanes, np.float32),
        np.empty((pairs, lanes), np.float32),
        np.empty((pairs, lanes), np.float32),
        np.empty((pairs, lanes), np.float32),
        np.empty((clauses, lanes), np.float32),
        np.empty((clauses, lanes), np.float32),
        np.empty((heads + 1, lanes), np.float32),
        np.empty((2, lanes), np.float32),
        np.empty((mixtures, lanes), np.float32),
        np.empty(max(len(t.row_left), lanes) if lanes <= FEW_LANES else lanes, np.float32),
        np.empty(lanes, np.float32),
        np.empty(lanes, np.float32),
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


@njit(**INNER)
def start(t, call, example, atom):
    """The starting value of an atom; with neural_only, `constant` where there is one, whatever V0 says."""
    return t.constant[atom] if call.neural_only and t.constant[atom] >= ZERO else call.V0[example, atom]


@njit(**INNER)
def _load_tile(t, call, first, last, s):
    """Read examples first … last into lanes; spare lanes repeat the last example."""
    X, rest, active = s.X, s.rest, len(t.head_of)
    for i in range(X.shape[1]):
        example = min(first + i, last - 1)
        X[active, i] = ONE
        for slot in range(active):
            X[slot, i] = start(t, call, example, t.members[slot])
        for slot in range(active, len(t.members)):
            value = start(t, call, example, t.members[slot])
            if not call.targets_only:
                rest[slot - active, i] = value
            else:
                rest[0, i] = value if slot == active else max(rest[0, i], value)


@njit(**INNER)
def in_unit_interval(values, rows):
    for row in range(rows):
        for i in range(values.shape[1]):
            if not (ZERO <= values[row, i] <= ONE):
                return False
    return True


@njit(**INNER)
def _store_tile(t, call, s, first, last, out):
    """Write the atoms that are asked for to out[first:last]."""
    active = len(t.head_of)
    for i in range(last - first):
        for j in range(len(call.outputs)):
            slot = t.slot_of[call.outputs[j]]
            out[first + i, j] = s.X[slot, i] if slot < active else s.rest[slot - active, i]


@njit(**INNER)
def _remember(t, s, first, last, past):
    """Keep V of a step for the backward pass: past [active + rest, B]."""
    if past.shape[0]:
        active = len(t.head_of)
        for i in range(last - first):
            for slot in range(active):
                past[slot, first + i] = s.X[slot, i]
            for slot in range(s.rest.shape[0]):
                past[active + slot, first + i] = s.rest[slot, i]


@njit(**INNER)
def derive(t, call, bounded, s):
    """R of every head, normalised, from the values in X; fills X's nodes and all of the scratch but Z of V.

    bounded: whether exponents stay in range without looking for their maximum.
    """
    gamma, k, unit = call.base[0], call.base[1], call.base[2]
    multiply_nodes(t, s.X)
    powers_of_constants(t, k, s)
    sum_pairs(t, k, unit, bounded, s)
    normalise_clauses(t, gamma, call.whole_batch, s)
    if call.hard:
        combine_hard(t, k, unit, s)
    else:
        combine_soft(t, k, unit, call.weights, s)
    normalise_rows(s.derived, s.z[0], call.whole_batch)


@njit(cache=True, **KERNEL)
def forward(out, *arguments):
    """Reason about some examples: writes the atoms that are asked for to out [B, outputs]; arguments: `Arguments`."""
    call = Arguments(*arguments)
    mode = flush_denormals()
    t = unpack(call.indices, call.floats, call.layout)
    gamma, k = call.base[0], call.base[1]
    active, passive = len(t.head_of), len(t.members) - len(t.head_of)
    done = call.first
    while done < call.last:
        end = min(done + call.tile, call.last)
        rest = min(passive, 1) if call.targets_only else passive
        s = new_scratch(t, call.weights, rest, padded_lanes(end - done, call.whole_batch))
        _load_tile(t, call, done, end, s)
        bounded = k <= BOUNDED_K and in_unit_interval(s.X, active) and in_unit_interval(s.rest, rest)
        for step in range(call.steps):
            _remember(t, s, done, end, call.past[step])
            derive(t, call, bounded, s)
            update_values(t, gamma, k, call.whole_batch, s)
            for i in range(end - done if call.past_z.shape[0] else 0):
                call.past_z[step, done + i] = s.z[1, i]
        _remember(t, s, done, end, call.past[call.steps])
        _store_tile(t, call, s, done, end, out)
        done = end
    restore(mode)
