"""The phases of one step of reasoning on a tile of examples.

Arrays are [things, lanes]: a lane is an example. Every phase is given the plan's tables `t`, the call and the scratch
`s` whole (`tables.Tables`, `tables.Arguments`, `Scratch`), so that the backward pass can use it again. Soft-ors are
taken with base 2: `k` is log2(e)/gamma and `unit` is 1/k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nsfrc.engines.cpu.maths import INNER, LOWEST, exp2, larger, log2, power, smaller, softor

ONE, HALF, ZERO = np.float32(1.0), np.float32(0.5), np.float32(0.0)

# Up to this many lanes a vector of rows of one example beats a vector of examples.
FEW_LANES = 4
# Below this what is left of 1 after a head's shares is mostly rounding.
FEW_SHARES = np.float32(1e-4)

SUM = {**INNER, "fastmath": {*INNER["fastmath"], "reassoc"}}


class Scratch(NamedTuple):
    """What a step starts from and computes on the way to its result."""

    X: np.ndarray  # [active + 1 + nodes, lanes]: active slots, a row of ones, nodes
    rest: np.ndarray  # [passive, lanes]: passive slots, or one row that carries the largest of them
    scale: np.ndarray  # [powers, lanes]: true^power · k
    bottom: np.ndarray  # [lanes]: false^L
    offset: np.ndarray  # [pairs, lanes]: exponent that the sum over rows is relative to
    total: np.ndarray  # [pairs, lanes]: that sum
    pairs: np.ndarray  # [pairs, lanes]: C of each pair, normalised in place
    absent: np.ndarray  # [clauses, lanes]: C where the clause does not unify, normalised
    clause_z: np.ndarray  # [clauses, lanes]
    derived: np.ndarray  # [heads + 1, lanes]: R of each head, and last of all other atoms; normalised
    z: np.ndarray  # [2, lanes]: Z of R and Z of V
    mixed: np.ndarray  # [M, lanes]: H of atoms that head nothing; each clause's share when hard
    buffer: np.ndarray  # [longest run] for few lanes, and always at least [lanes]
    left: np.ndarray  # [lanes]
    sums: np.ndarray  # [lanes]


@njit(**INNER)
def fill(row, value):
    for i in range(len(row)):
        row[i] = value


@njit(**INNER)
def multiply_nodes(t, X):
    first = len(t.head_of) + 1
    for node in range(len(t.node_left)):
        left, right = t.node_left[node], t.node_right[node]
        for i in range(X.shape[1]):
            X[first + node, i] = X[left, i] * X[right, i]


@njit(**INNER)
def powers_of_constants(t, k, s):
    """true^power · k for every power that occurs, and false^L."""
    true, false = s.X[t.true], s.X[t.false]
    for p in range(len(t.powers)):
        n = t.powers[p]
        for i in range(len(true)):
            s.scale[p, i] = power(true[i], n) * k
    for i in range(len(false)):
        s.bottom[i] = power(false[i], t.L)


@njit(**SUM)
def _sum(values, count):
    total = ZERO
    for i in range(count):
        total += values[i]
    return total


@njit(**INNER)
def _sum_few(t, first, last, scale, offset, s):
    """sums[i] += Σ over rows of 2^(left·right·scale - offset), one lane after another, rows as vectors."""
    X, buffer = s.X, s.buffer
    for i in range(X.shape[1]):
        for row in range(first, last):
            buffer[row - first] = X[t.row_left[row], i] * X[t.row_right[row], i]
        k, shift = scale[i], offset[i]
        for row in range(last - first):
            buffer[row] = exp2(larger(buffer[row] * k - shift, LOWEST))
        s.sums[i] += _sum(buffer, last - first)


@njit(**INNER)
def _sum_group(row_right, first, last, offset, s):
    """sums[i] += Σ over rows of 2^(left·right - offset), lanes as vectors, four rows at a time.

    Exponents must be in range. left: the group's common factor, scaled.
    """
    X, left, sums = s.X, s.left, s.sums
    row = first
    while row + 4 <= last:
        a, b, c, d = row_right[row], row_right[row + 1], row_right[row + 2], row_right[row + 3]
        for i in range(X.shape[1]):
            f, shift = left[i], offset[i]
            sums[i] += (exp2(X[a, i] * f - shift) + exp2(X[b, i] * f - shift)) + (
                exp2(X[c, i] * f - shift) + exp2(X[d, i] * f - shift)
            )
        row += 4
    while row < last:
        a = row_right[row]
        for i in range(X.shape[1]):
            sums[i] += exp2(X[a, i] * left[i] - offset[i])
        row += 1


@njit(**INNER)
def _sum_group_unbounded(row_right, first, last, offset, s):
    """As `_sum_group`, for exponents that may fall out of range."""
    X, left, sums = s.X, s.left, s.sums
    for row in range(first, last):
        a = row_right[row]
        for i in range(X.shape[1]):
            sums[i] += exp2(larger(X[a, i] * left[i] - offset[i], LOWEST))


@njit(**INNER)
def _largest_exponent(t, first, last, X, scale, offset):
    for row in range(first, last):
        left, right = t.row_left[row], t.row_right[row]
        for i in range(X.shape[1]):
            offset[i] = larger(offset[i], X[left, i] * X[right, i] * scale[i])


@njit(**INNER)
def sum_pairs(t, k, unit, bounded, s):
    """C before normalisation: γ·log(Σ over rows + padding) for every pair."""
    X, bottom, left, sums = s.X, s.bottom, s.left, s.sums
    lanes = X.shape[1]
    for pair in range(len(t.pair_padding)):
        padding, shift, total = t.pair_padding[pair], s.offset[pair], s.total[pair]
        first_run, last_run = t.pair_start[pair], t.pair_start[pair + 1]
        fill(shift, k * HALF)
        if not bounded:
            for i in range(lanes):
                shift[i] = bottom[i] * k if padding > ZERO else np.float32(-3e38)
            for run in range(first_run, last_run):
                first, last = t.group_start[t.run_start[run]], t.group_start[t.run_start[run + 1]]
                _largest_exponent(t, first, last, X, s.scale[t.run_power[run]], shift)
        fill(total, ZERO)
        for i in range(lanes if padding > ZERO else 0):  # without padding `shift` knows nothing of bottom
            total[i] = padding * exp2(larger(bottom[i] * k - shift[i], LOWEST))
        for run in range(first_run, last_run):
            factor, times = s.scale[t.run_power[run]], t.run_times[run]
            fill(sums, ZERO)
            if lanes <= FEW_LANES:
                _sum_few(t, t.group_start[t.run_start[run]], t.group_start[t.run_start[run + 1]], factor, shift, s)
            else:
                for group in range(t.run_start[run], t.run_start[run + 1]):
                    first, last = t.group_start[group], t.group_start[group + 1]
                    common = t.row_left[first]
                    for i in range(lanes):
                        left[i] = X[common, i] * factor[i]
                    if bounded:
                        _sum_group(t.row_right, first, last, shift, s)
                    else:
                        _sum_group_unbounded(t.row_right, first, last, shift, s)
            for i in range(lanes):
                total[i] += times * sums[i]
        for i in range(lanes):
            s.pairs[pair, i] = shift[i] * unit + log2(total[i]) * unit


@njit(**INNER)
def over_batch(z):
    """The largest of all lanes, in every lane: the published scope of Z."""
    largest = z[0]
    for i in range(len(z)):
        largest = larger(largest, z[i])
    fill(z, largest)


@njit(**INNER)
def normalise_clauses(t, gamma, whole_batch, s):
    """Divide each clause's C by its Z."""
    bottom, pairs, absent, clause_z = s.bottom, s.pairs, s.absent, s.clause_z
    lanes, floor = pairs.shape[1], t.log_s * gamma
    for c in range(absent.shape[0]):
        first, last = t.clause_start[c], t.clause_start[c + 1]
        for i in range(lanes):
            absent[c, i] = floor + bottom[i]
            clause_z[c, i] = larger(ONE, absent[c, i])
        for pair in range(first, last):
            for i in range(lanes):
                clause_z[c, i] = larger(clause_z[c, i], pairs[pair, i])
        if whole_batch:
            over_batch(clause_z[c])
        for i in range(lanes):
            absent[c, i] /= clause_z[c, i]
        for pair in range(first, last):
            for i in range(lanes):
                pairs[pair, i] /= clause_z[c, i]


@njit(**INNER)
def is_among(t, clause, head):
    """Whether a clause is one of a head's."""
    found = False
    for j in range(t.head_start[head], t.head_start[head + 1]):
        found |= t.pair_clause[t.head_pairs[j]] == clause
    return found


@njit(**INNER)
def _combine_one_by_one(t, head, k, unit, s):
    """R of one head from what each clause gives it, where next to nothing is left of the others' shares."""
    first, last, head_pairs = t.head_start[head], t.head_start[head + 1], t.head_pairs
    pairs, absent, derived, buffer = s.pairs, s.absent, s.derived[head], s.buffer
    fill(derived, np.float32(-3e38))
    for j in range(first, last):
        for i in range(len(derived)):
            derived[i] = larger(derived[i], pairs[head_pairs[j], i])
    for c in range(absent.shape[0] if last - first < absent.shape[0] else 0):
        if not is_among(t, c, head):
            for i in range(len(derived)):
                derived[i] = larger(derived[i], absent[c, i])
    for i in range(len(derived)):
        buffer[i] = ZERO
    for j in range(first, last):
        for i in range(len(derived)):
            buffer[i] += exp2(larger((pairs[head_pairs[j], i] - derived[i]) * k, LOWEST))
    for c in range(absent.shape[0] if last - first < absent.shape[0] else 0):
        if not is_among(t, c, head):
            for i in range(len(derived)):
                buffer[i] += exp2(larger((absent[c, i] - derived[i]) * k, LOWEST))
    for i in range(len(derived)):
        derived[i] += log2(buffer[i]) * unit


@njit(**INNER)
def combine_hard(t, k, unit, s):
    """R before normalisation when every clause is chosen once (M = C).

    shares: what each clause contributes to atoms that head nothing, as a part of 1; a head loses
    the shares of its clauses and gains their C. Each head has at most one pair of a clause.
    """
    pairs, absent, derived, shares, buffer = s.pairs, s.absent, s.derived, s.mixed, s.buffer
    clauses, lanes = absent.shape
    heads = len(t.heads)
    for i in range(lanes):
        derived[heads, i] = absent[0, i]
        buffer[i] = ZERO
    for c in range(clauses):
        for i in range(lanes):
            derived[heads, i] = larger(derived[heads, i], absent[c, i])
    for c in range(clauses):
        for i in range(lanes):
            shares[c, i] = exp2(larger((absent[c, i] - derived[heads, i]) * k, LOWEST))
            buffer[i] += shares[c, i]
    for i in range(lanes):
        derived[heads, i] += log2(buffer[i]) * unit
    for c in range(clauses):
        for i in range(lanes):
            shares[c, i] /= buffer[i]
    for h in range(heads):
        first, last = t.head_start[h], t.head_start[h + 1]
        least = ZERO if last - first == clauses else ONE
        for i in range(lanes):
            derived[h, i] = derived[heads, i]
            buffer[i] = ONE
        for j in range(first, last):
            pair = t.head_pairs[j]
            c = t.pair_clause[pair]
            for i in range(lanes):
                derived[h, i] = larger(derived[h, i], pairs[pair, i])
                buffer[i] -= shares[c, i]
        for i in range(lanes):
            least = smaller(least, buffer[i])
        if least < FEW_SHARES:
            _combine_one_by_one(t, h, k, unit, s)
            continue
        for i in range(lanes):
            buffer[i] *= exp2(larger((derived[heads, i] - derived[h, i]) * k, LOWEST))
        for j in range(first, last):
            pair = t.head_pairs[j]
            for i in range(lanes):
                buffer[i] += exp2(larger((pairs[pair, i] - derived[h, i]) * k, LOWEST))
        for i in range(lanes):
            derived[h, i] += log2(buffer[i]) * unit


@njit(**INNER)
def mix_head(t, head, weights, m, s, out):
    """H[m] of a head: that of an absent atom, and what each of its clauses gives more."""
    for i in range(len(out)):
        out[i] = s.mixed[m, i]
    if head < len(t.heads):
        for j in range(t.head_start[head], t.head_start[head + 1]):
            pair = t.head_pairs[j]
            c = t.pair_clause[pair]
            for i in range(len(out)):
                out[i] += weights[m, c] * (s.pairs[pair, i] - s.absent[c, i])


@njit(**INNER)
def combine_soft(t, k, unit, weights, s):
    """R before normalisation for weights [M, C]: a running soft-or over m."""
    absent, derived, mixed, sums = s.absent, s.derived, s.mixed, s.sums
    lanes = absent.shape[1]
    value = s.buffer[:lanes]
    for m in range(weights.shape[0]):
        fill(mixed[m], ZERO)
        for c in range(weights.shape[1]):
            for i in range(lanes):
                mixed[m, i] += weights[m, c] * absent[c, i]
    for h in range(derived.shape[0]):
        for m in range(weights.shape[0]):
            mix_head(t, h, weights, m, s, value)
            for i in range(lanes):
                derived[h, i] = value[i] if m == 0 else larger(derived[h, i], value[i])
        fill(sums, ZERO)
        for m in range(weights.shape[0]):
            mix_head(t, h, weights, m, s, value)
            for i in range(lanes):
                sums[i] += exp2(larger((value[i] - derived[h, i]) * k, LOWEST))
        for i in range(lanes):
            derived[h, i] += log2(sums[i]) * unit


@njit(**INNER)
def normalise_rows(values, z, whole_batch):
    """Divide all rows by max(1, their largest), lane by lane or over the batch; z [lanes] keeps it."""
    fill(z, ONE)
    for row in range(values.shape[0]):
        for i in range(len(z)):
            z[i] = larger(z[i], values[row, i])
    if whole_batch:
        over_batch(z)
    for row in range(values.shape[0]):
        for i in range(len(z)):
            values[row, i] /= z[i]


@njit(**INNER)
def update_values(t, gamma, k, whole_batch, s):
    """V' = softor(V, R), normalised, in place."""
    head_of, X, rest, derived, z = t.head_of, s.X, s.rest, s.derived, s.z[1]
    lanes, last = X.shape[1], derived.shape[0] - 1
    fill(z, ONE)
    for slot in range(len(head_of)):
        head = head_of[slot]
        for i in range(lanes):
            X[slot, i] = softor(X[slot, i], derived[head, i], gamma, k)
            z[i] = larger(z[i], X[slot, i])
    for slot in range(rest.shape[0]):
        for i in range(lanes):
            rest[slot, i] = softor(rest[slot, i], derived[last, i], gamma, k)
            z[i] = larger(z[i], rest[slot, i])
    if whole_batch:
        over_batch(z)
    for slot in range(len(head_of)):
        for i in range(lanes):
            X[slot, i] /= z[i]
    for slot in range(rest.shape[0]):
        for i in range(lanes):
            rest[slot, i] /= z[i]
