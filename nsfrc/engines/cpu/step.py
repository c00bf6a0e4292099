"""One step of reasoning on a tile of examples, phase by phase.

Arrays are [things, lanes]: a lane is an example. `X` holds the active slots, a row of ones, and the
nodes. `rest` holds the passive slots, or one row that carries the largest of them. Each phase writes
the arrays it is given, so that the backward pass can use them. Soft-ors are taken with base 2:
`k` is log2(e)/gamma and `unit` is 1/k (see `tables.Constants`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nsfrc.engines.cpu.maths import FAST, LOWEST, exp2, log2, power, softor

ONE = np.float32(1.0)
ZERO = np.float32(0.0)

# Below this many lanes a vector of rows of one example beats a vector of examples.
FEW_LANES = 4
# With values in [0, 1] and 1/gamma up to this, 2^(x·k - k/2) neither overflows nor vanishes.
BOUNDED_K = np.float32(200.0)

SUM = FAST | {"reassoc"}


class Scratch(NamedTuple):
    """What a step computes on the way to its result."""

    scale: np.ndarray  # [powers, lanes]: true^power · k
    bottom: np.ndarray  # [lanes]: false^L
    offset: np.ndarray  # [pairs, lanes]: exponent that the sum over rows is relative to
    total: np.ndarray  # [pairs, lanes]: that sum
    pairs: np.ndarray  # [pairs, lanes]: C for each pair, normalised in place
    absent: np.ndarray  # [clauses, lanes]: C where the clause does not unify, normalised
    clause_z: np.ndarray  # [clauses, lanes]
    derived: np.ndarray  # [heads + 1, lanes]: R for each head, and last for all other atoms; normalised
    derived_z: np.ndarray  # [lanes]
    value_z: np.ndarray  # [lanes]


@njit(fastmath=FAST)
def new_scratch(tables, clauses, lanes):
    pairs, heads = len(tables.pair_clause), len(tables.heads)
    return Scratch(
        np.empty((len(tables.powers), lanes), np.float32),
        np.empty(lanes, np.float32),
        np.empty((pairs, lanes), np.float32),
        np.empty((pairs, lanes), np.float32),
        np.empty((pairs, lanes), np.float32),
        np.empty((clauses, lanes), np.float32),
        np.empty((clauses, lanes), np.float32),
        np.empty((heads + 1, lanes), np.float32),
        np.empty(lanes, np.float32),
        np.empty(lanes, np.float32),
    )


@njit(fastmath=FAST, nogil=True)
def multiply_nodes(tables, X):
    first = tables.active + 1
    for node in range(len(tables.node_left)):
        a, b, out = X[tables.node_left[node]], X[tables.node_right[node]], X[first + node]
        for i in range(X.shape[1]):
            out[i] = a[i] * b[i]


@njit(fastmath=FAST, nogil=True)
def powers_of_constants(tables, X, k, scratch):
    """true^power · k for every power that occurs, and false^L."""
    true, false = X[tables.true], X[tables.false]
    for p in range(len(tables.powers)):
        n, out = tables.powers[p], scratch.scale[p]
        for i in range(X.shape[1]):
            out[i] = power(true[i], n) * k
    for i in range(X.shape[1]):
        scratch.bottom[i] = power(false[i], tables.L)


@njit(fastmath=FAST, nogil=True)
def _sum_rows(tables, X, first, last, scale, offset, total):
    """total[i] += Σ times · 2^(left·right·scale - offset), lanes as vectors."""
    for row in range(first, last):
        a, b, times = X[tables.row_left[row]], X[tables.row_right[row]], tables.row_times[row]
        for i in range(X.shape[1]):
            total[i] += times * exp2(max(a[i] * b[i] * scale[i] - offset[i], LOWEST))


@njit(fastmath=FAST, nogil=True)
def _sum_rows_bounded(tables, X, first, last, scale, offset, total):
    """As `_sum_rows` for exponents known to be in range."""
    for row in range(first, last):
        a, b, times = X[tables.row_left[row]], X[tables.row_right[row]], tables.row_times[row]
        for i in range(X.shape[1]):
            total[i] += times * exp2(a[i] * b[i] * scale[i] - offset[i])


@njit(fastmath=FAST, nogil=True)
def _sum_rows_few(tables, X, first, last, scale, offset, total, buffer):
    """As `_sum_rows` with rows as vectors, one lane after another."""
    for i in range(X.shape[1]):
        lane = X[:, i]
        terms = buffer[: last - first]
        for row in range(len(terms)):
            terms[row] = lane[tables.row_left[first + row]] * lane[tables.row_right[first + row]]
        times = tables.row_times[first:last]
        k, shift = scale[i], offset[i]
        for row in range(len(terms)):
            terms[row] = times[row] * exp2(max(terms[row] * k - shift, LOWEST))
        total[i] += _total(terms)


@njit(fastmath=SUM, nogil=True)
def _total(values):
    total = ZERO
    for i in range(len(values)):
        total += values[i]
    return total


@njit(fastmath=FAST, nogil=True)
def _largest_exponent(tables, X, pair, k, scratch, offset):
    """offset[i] = the largest exponent of the pair's rows, padding included."""
    for i in range(X.shape[1]):
        offset[i] = scratch.bottom[i] * k if tables.pair_padding[pair] > ZERO else np.float32(-3e38)
    for run in range(tables.pair_start[pair], tables.pair_start[pair + 1]):
        scale = scratch.scale[tables.run_power[run]]
        for row in range(tables.run_start[run], tables.run_start[run + 1]):
            a, b = X[tables.row_left[row]], X[tables.row_right[row]]
            for i in range(X.shape[1]):
                offset[i] = max(offset[i], a[i] * b[i] * scale[i])


@njit(fastmath=FAST, nogil=True)
def sum_pairs(tables, X, k, unit, bounded, scratch):
    """C before normalisation: γ·log(Σ over rows + padding) for every pair."""
    lanes = X.shape[1]
    buffer = np.empty(len(tables.row_times) if lanes <= FEW_LANES else 0, np.float32)
    for pair in range(len(tables.pair_clause)):
        offset, total = scratch.offset[pair], scratch.total[pair]
        if bounded:
            offset[:] = k * np.float32(0.5)
        else:
            _largest_exponent(tables, X, pair, k, scratch, offset)
        padding = tables.pair_padding[pair]
        for i in range(lanes):
            total[i] = padding * exp2(max(scratch.bottom[i] * k - offset[i], LOWEST))
        for run in range(tables.pair_start[pair], tables.pair_start[pair + 1]):
            scale = scratch.scale[tables.run_power[run]]
            first, last = tables.run_start[run], tables.run_start[run + 1]
            if lanes <= FEW_LANES:
                _sum_rows_few(tables, X, first, last, scale, offset, total, buffer)
            elif bounded:
                _sum_rows_bounded(tables, X, first, last, scale, offset, total)
            else:
                _sum_rows(tables, X, first, last, scale, offset, total)
        values = scratch.pairs[pair]
        for i in range(lanes):
            values[i] = offset[i] * unit + log2(total[i]) * unit


@njit(fastmath=FAST, nogil=True)
def _over_batch(z):
    """The largest of all lanes, in every lane: the published scope of Z."""
    largest = z[0]
    for i in range(len(z)):
        largest = max(largest, z[i])
    z[:] = largest


@njit(fastmath=FAST, nogil=True)
def normalise_clauses(tables, gamma, whole_batch, scratch):
    """Divide each clause's C by its Z; fills `absent` and `clause_z`."""
    lanes = len(scratch.bottom)
    floor = gamma * np.float32(np.log(np.float32(tables.S)))
    for c in range(scratch.absent.shape[0]):
        absent, z = scratch.absent[c], scratch.clause_z[c]
        for i in range(lanes):
            absent[i] = floor + scratch.bottom[i]
            z[i] = max(ONE, absent[i])
        for pair in range(tables.clause_start[c], tables.clause_start[c + 1]):
            values = scratch.pairs[pair]
            for i in range(lanes):
                z[i] = max(z[i], values[i])
        if whole_batch:
            _over_batch(z)
        for i in range(lanes):
            absent[i] /= z[i]
        for pair in range(tables.clause_start[c], tables.clause_start[c + 1]):
            values = scratch.pairs[pair]
            for i in range(lanes):
                values[i] /= z[i]


@njit(fastmath=FAST, nogil=True)
def absent_shares(scratch, k, unit, shares):
    """R of atoms that head nothing, with every clause chosen once; `shares`: each clause's part of it."""
    clauses, lanes = scratch.absent.shape
    common = scratch.derived[-1]
    total = np.zeros(lanes, np.float32)
    common[:] = scratch.absent[0]
    for c in range(clauses):
        for i in range(lanes):
            common[i] = max(common[i], scratch.absent[c, i])
    for c in range(clauses):
        absent, share = scratch.absent[c], shares[c]
        for i in range(lanes):
            share[i] = exp2(max((absent[i] - common[i]) * k, LOWEST))
            total[i] += share[i]
    for i in range(lanes):
        common[i] += log2(total[i]) * unit
    for c in range(clauses):
        share = shares[c]
        for i in range(lanes):
            share[i] /= total[i]


@njit(fastmath=FAST, nogil=True)
def combine_hard(tables, k, unit, scratch, shares):
    """R before normalisation when every clause is chosen once (M = C)."""
    clauses, lanes = scratch.absent.shape
    absent_shares(scratch, k, unit, shares)
    common = scratch.derived[-1]
    top, total = np.empty(lanes, np.float32), np.empty(lanes, np.float32)
    for h in range(len(tables.heads)):
        first, last = tables.head_start[h], tables.head_start[h + 1]
        top[:] = common
        for j in range(first, last):
            values = scratch.pairs[tables.head_pairs[j]]
            for i in range(lanes):
                top[i] = max(top[i], values[i])
        total[:] = ONE
        for j in range(first, last):
            share = shares[tables.pair_clause[tables.head_pairs[j]]]
            for i in range(lanes):
                total[i] -= share[i]
        for i in range(lanes):
            rest = max(total[i], ZERO) if last - first < clauses else ZERO
            total[i] = rest * exp2(max((common[i] - top[i]) * k, LOWEST))
        for j in range(first, last):
            values = scratch.pairs[tables.head_pairs[j]]
            for i in range(lanes):
                total[i] += exp2(max((values[i] - top[i]) * k, LOWEST))
        out = scratch.derived[h]
        for i in range(lanes):
            out[i] = top[i] + log2(total[i]) * unit


@njit(fastmath=FAST, nogil=True)
def mix_absent(weights, scratch, mixed):
    """H of atoms that head nothing: mixed[m] = Σ_c weights[m, c]·absent[c]."""
    for m in range(weights.shape[0]):
        mixed[m, :] = ZERO
        for c in range(weights.shape[1]):
            w, absent = weights[m, c], scratch.absent[c]
            for i in range(mixed.shape[1]):
                mixed[m, i] += w * absent[i]


@njit(fastmath=FAST, nogil=True)
def mix_head(tables, head, weights, scratch, mixed, out):
    """H of a head: what it has more than an absent atom, clause by clause; the last head is `absent`."""
    out[:] = mixed
    if head == len(tables.heads):
        return
    for j in range(tables.head_start[head], tables.head_start[head + 1]):
        pair = tables.head_pairs[j]
        c = tables.pair_clause[pair]
        values, absent = scratch.pairs[pair], scratch.absent[c]
        for m in range(weights.shape[0]):
            for i in range(out.shape[1]):
                out[m, i] += weights[m, c] * (values[i] - absent[i])


@njit(fastmath=FAST, nogil=True)
def combine_soft(tables, k, unit, weights, scratch, mixed):
    """R before normalisation for weights [M, C] of the clauses."""
    lanes = mixed.shape[1]
    mix_absent(weights, scratch, mixed)
    h_values = np.empty_like(mixed)
    top, total = np.empty(lanes, np.float32), np.empty(lanes, np.float32)
    for h in range(len(tables.heads) + 1):
        mix_head(tables, h, weights, scratch, mixed, h_values)
        top[:] = h_values[0]
        for m in range(weights.shape[0]):
            for i in range(lanes):
                top[i] = max(top[i], h_values[m, i])
        total[:] = ZERO
        for m in range(weights.shape[0]):
            for i in range(lanes):
                total[i] += exp2(max((h_values[m, i] - top[i]) * k, LOWEST))
        out = scratch.derived[h]
        for i in range(lanes):
            out[i] = top[i] + log2(total[i]) * unit


@njit(fastmath=FAST, nogil=True)
def normalise_derived(whole_batch, scratch):
    z, derived = scratch.derived_z, scratch.derived
    z[:] = ONE
    for h in range(derived.shape[0]):
        for i in range(len(z)):
            z[i] = max(z[i], derived[h, i])
    if whole_batch:
        _over_batch(z)
    for h in range(derived.shape[0]):
        for i in range(len(z)):
            derived[h, i] /= z[i]


@njit(fastmath=FAST, nogil=True)
def update_values(tables, X, rest, gamma, k, whole_batch, scratch):
    """V' = softor(V, R), normalised, in place."""
    lanes = X.shape[1]
    z, derived = scratch.value_z, scratch.derived
    z[:] = ONE
    for slot in range(tables.active):
        values, r = X[slot], derived[tables.head_of[slot]]
        for i in range(lanes):
            values[i] = softor(values[i], r[i], gamma, k)
            z[i] = max(z[i], values[i])
    common = derived[-1]
    for slot in range(rest.shape[0]):
        values = rest[slot]
        for i in range(lanes):
            values[i] = softor(values[i], common[i], gamma, k)
            z[i] = max(z[i], values[i])
    if whole_batch:
        _over_batch(z)
    for slot in range(tables.active):
        for i in range(lanes):
            X[slot, i] /= z[i]
    for slot in range(rest.shape[0]):
        for i in range(lanes):
            rest[slot, i] /= z[i]


@njit(fastmath=FAST, nogil=True)
def derive(tables, X, weights, hard, constants, bounded, whole_batch, scratch, mixed):
    """R of every head, normalised, from the values in X; fills the nodes and all of `scratch` but `value_z`.

    mixed [M, lanes]: scratch for the clause mixture.
    """
    k, unit = constants.k, constants.unit
    multiply_nodes(tables, X)
    powers_of_constants(tables, X, k, scratch)
    sum_pairs(tables, X, k, unit, bounded, scratch)
    normalise_clauses(tables, constants.gamma, whole_batch, scratch)
    if hard:
        combine_hard(tables, k, unit, scratch, mixed)
    else:
        combine_soft(tables, k, unit, weights, scratch, mixed)
    normalise_derived(whole_batch, scratch)


@njit(fastmath=FAST, nogil=True)
def step(tables, X, rest, weights, hard, constants, bounded, whole_batch, scratch, mixed):
    """One step in place on X (active slots) and rest."""
    derive(tables, X, weights, hard, constants, bounded, whole_batch, scratch, mixed)
    update_values(tables, X, rest, constants.gamma, constants.k, whole_batch, scratch)
