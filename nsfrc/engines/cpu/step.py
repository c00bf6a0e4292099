"""The phases of one step of reasoning on a tile of examples.

Arrays are [things, lanes]: a lane is an example. `X` holds the active slots, a row of ones, and the
nodes. `rest` holds the passive slots, or one row that carries the largest of them. Every phase is
given the tables it reads and the arrays it fills, so that the backward pass can use them again;
`tables.Tables` and `Scratch` say what they are. Soft-ors are taken with base 2: `k` is
log2(e)/gamma and `unit` is 1/k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nsfrc.engines.cpu.maths import INNER, LOWEST, exp2, larger, log2, power, smaller
from nsfrc.engines.cpu.meeting import CLAUSES, LEAST_BOTTOM, MOST_BOTTOM, largest_said, meet, say, smallest_said
from nsfrc.engines.cpu.memory import fill
from nsfrc.engines.cpu.one import HALF, ONE, ZERO, add_up, sum_pairs_of_one
from nsfrc.engines.cpu.tables import FEW_LANES

# Below this what is left of 1 after a head's shares is mostly rounding.
FEW_SHARES = np.float32(1e-4)


class Scratch(NamedTuple):
    """What a step computes on the way to its result."""

    scale: np.ndarray  # [powers, lanes]: true^power · k
    bottom: np.ndarray  # [1, lanes]: false^L
    offset: np.ndarray  # [pairs, lanes]: exponent that the sum over rows is relative to
    total: np.ndarray  # [pairs, lanes]: that sum
    pairs: np.ndarray  # [pairs, lanes]: C of each pair, normalised in place
    absent: np.ndarray  # [clauses, lanes]: C where the clause does not unify, normalised
    clause_z: np.ndarray  # [clauses, lanes]
    derived: np.ndarray  # [heads + 1, lanes]: R of each head, and last of all other atoms; normalised
    z: np.ndarray  # [2, lanes]: Z of R and Z of V
    mixed: np.ndarray  # [M, lanes]: H of atoms that head nothing; each clause's share when hard
    buffer: np.ndarray  # [longest run] for few lanes, and always at least [lanes]
    left: np.ndarray  # [lanes]: a common factor, scaled
    sums: np.ndarray  # [lanes]


@njit(**INNER)
def multiply_nodes(node_left, node_right, first, X):
    for node in range(len(node_left)):
        left, right = node_left[node], node_right[node]
        for i in range(X.shape[1]):
            X[first + node, i] = X[left, i] * X[right, i]


@njit(**INNER)
def powers_of_constants(powers, true, false, length, k, X, scale, bottom):
    """true^power · k for every power that occurs, and false^L."""
    for p in range(len(powers)):
        n = powers[p]
        for i in range(X.shape[1]):
            scale[p, i] = power(X[true, i], n) * k
    for i in range(X.shape[1]):
        bottom[0, i] = power(X[false, i], length)


@njit(**INNER)
def _sum_few(row_left, row_right, first, last, X, scale, offset, sums, buffer):
    """sums[i] += Σ over rows of 2^(left·right·scale - offset), one lane after another, rows as vectors."""
    for i in range(X.shape[1]):
        for row in range(first, last):
            buffer[row - first] = X[row_left[row], i] * X[row_right[row], i]
        k, shift = scale[i], offset[i]
        for row in range(last - first):
            buffer[row] = exp2(larger(buffer[row] * k - shift, LOWEST))
        sums[i] += add_up(buffer, last - first)


@njit(**INNER)
def _sum_group(row_right, first, last, X, left, offset, sums):
    """sums[i] += Σ over rows of 2^(left·right - offset), lanes as vectors, four rows at a time.

    Exponents must be in range. left: the group's common factor, scaled.
    """
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
def _sum_group_unbounded(row_right, first, last, X, left, offset, sums):
    """As `_sum_group`, for exponents that may fall out of range."""
    for row in range(first, last):
        a = row_right[row]
        for i in range(X.shape[1]):
            sums[i] += exp2(larger(X[a, i] * left[i] - offset[i], LOWEST))


@njit(**INNER)
def _largest_exponent(row_left, row_right, first, last, X, scale, offset):
    for row in range(first, last):
        left, right = row_left[row], row_right[row]
        for i in range(X.shape[1]):
            offset[i] = larger(offset[i], X[left, i] * X[right, i] * scale[i])


@njit(**INNER)
def sum_pairs(
    row_left, row_right, group_start, run_start, run_power, run_times, pair_start, pair_padding, k, unit, bounded,
    X, scale, bottom, offset, total, pairs, buffer, left, sums,
):
    """C before normalisation: γ·log(Σ over rows + padding) for every pair."""
    lanes = X.shape[1]
    if lanes == 1 and bounded:
        sum_pairs_of_one(row_left, row_right, group_start, run_start, run_power, run_times, pair_start, pair_padding,
                         k, unit, X, scale, bottom, offset, total, pairs, buffer)
        return
    for pair in range(len(pair_padding)):
        padding, shift = pair_padding[pair], offset[pair]
        first_run, last_run = pair_start[pair], pair_start[pair + 1]
        fill(shift, k * HALF)
        if not bounded:
            for i in range(lanes):
                shift[i] = bottom[0, i] * k if padding > ZERO else np.float32(-3e38)
            for run in range(first_run, last_run):
                _largest_exponent(row_left, row_right, group_start[run_start[run]], group_start[run_start[run + 1]],
                                  X, scale[run_power[run]], shift)
        fill(total[pair], ZERO)
        for i in range(lanes if padding > ZERO else 0):  # without padding `shift` knows nothing of bottom
            total[pair, i] = padding * exp2(larger(bottom[0, i] * k - shift[i], LOWEST))
        for run in range(first_run, last_run):
            factor, times = scale[run_power[run]], run_times[run]
            fill(sums, ZERO)
            if lanes <= FEW_LANES:
                first, last = group_start[run_start[run]], group_start[run_start[run + 1]]
                _sum_few(row_left, row_right, first, last, X, factor, shift, sums, buffer)
            else:
                for group in range(run_start[run], run_start[run + 1]):
                    first, last = group_start[group], group_start[group + 1]
                    common = row_left[first]  # in a loop it would be read again for every lane, one by one
                    for i in range(lanes):
                        left[i] = X[common, i] * factor[i]
                    if bounded:
                        _sum_group(row_right, first, last, X, left, shift, sums)
                    else:
                        _sum_group_unbounded(row_right, first, last, X, left, shift, sums)
            for i in range(lanes):
                total[pair, i] += times * sums[i]
        for i in range(lanes):
            pairs[pair, i] = shift[i] * unit + log2(total[pair, i]) * unit


@njit(**INNER)
def is_among(clause, first, last, head_pairs, pair_clause):
    """Whether a clause is one of a head's."""
    found = False
    for j in range(first, last):
        found |= pair_clause[head_pairs[j]] == clause
    return found


@njit(**INNER)
def _combine_one_by_one(first, last, head_pairs, pair_clause, k, unit, pairs, absent, derived, buffer):
    """R of one head from what each clause gives it, where next to nothing is left of the others' shares."""
    fill(derived, np.float32(-3e38))
    for j in range(first, last):
        for i in range(len(derived)):
            derived[i] = larger(derived[i], pairs[head_pairs[j], i])
    for c in range(absent.shape[0] if last - first < absent.shape[0] else 0):
        if not is_among(c, first, last, head_pairs, pair_clause):
            for i in range(len(derived)):
                derived[i] = larger(derived[i], absent[c, i])
    for i in range(len(derived)):
        buffer[i] = ZERO
    for j in range(first, last):
        for i in range(len(derived)):
            buffer[i] += exp2(larger((pairs[head_pairs[j], i] - derived[i]) * k, LOWEST))
    for c in range(absent.shape[0] if last - first < absent.shape[0] else 0):
        if not is_among(c, first, last, head_pairs, pair_clause):
            for i in range(len(derived)):
                buffer[i] += exp2(larger((absent[c, i] - derived[i]) * k, LOWEST))
    for i in range(len(derived)):
        derived[i] += log2(buffer[i]) * unit


@njit(**INNER)
def _least_share(first, last, head_pairs, pair_clause, shares, buffer):
    """What is left of 1, in `buffer`, without the shares of a head's clauses; and the least of it."""
    least = ZERO if last - first == shares.shape[0] else ONE
    fill(buffer, ONE)
    for j in range(first, last):
        c = pair_clause[head_pairs[j]]
        for i in range(len(buffer)):
            buffer[i] -= shares[c, i]
    for i in range(len(buffer)):
        least = smaller(least, buffer[i])
    return least


@njit(**INNER)
def _tell_shares(head_start, head_pairs, pair_clause, meeting, shares, buffer):
    """Tells the other parts of a batch what is left for each head, so that all combine it in the same way.

    Whether that was necessary: shares are the same everywhere where false^L is, as it almost always is.
    """
    least, most = smallest_said(meeting, LEAST_BOTTOM, ZERO), largest_said(meeting, MOST_BOTTOM, ZERO)
    if meeting.parts == 1 or least == most:
        return False
    for h in range(len(head_start) - 1):
        left = _least_share(head_start[h], head_start[h + 1], head_pairs, pair_clause, shares, buffer)
        say(meeting, CLAUSES + 2 * shares.shape[0] + h, left)
    meet(meeting)
    return True


@njit(**INNER)
def combine_hard(head_start, head_pairs, pair_clause, k, unit, meeting, pairs, absent, derived, shares, buffer):
    """R before normalisation when every clause is chosen once (M = C).

    shares: what each clause contributes to atoms that head nothing, as a part of 1; a head loses
    the shares of its clauses and gains their C. Each head has at most one pair of a clause.
    """
    clauses, lanes = absent.shape
    heads = len(head_start) - 1
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
    left = buffer[:lanes]
    told = _tell_shares(head_start, head_pairs, pair_clause, meeting, shares, left)
    for h in range(heads):
        first, last = head_start[h], head_start[h + 1]
        least = _least_share(first, last, head_pairs, pair_clause, shares, left)
        for i in range(lanes):
            derived[h, i] = derived[heads, i]
        for j in range(first, last):
            pair = head_pairs[j]
            for i in range(lanes):
                derived[h, i] = larger(derived[h, i], pairs[pair, i])
        if told:
            least = smallest_said(meeting, CLAUSES + 2 * clauses + h, least)
        if least < FEW_SHARES:
            _combine_one_by_one(first, last, head_pairs, pair_clause, k, unit, pairs, absent, derived[h], buffer)
            continue
        for i in range(lanes):
            buffer[i] *= exp2(larger((derived[heads, i] - derived[h, i]) * k, LOWEST))
        for j in range(first, last):
            pair = head_pairs[j]
            for i in range(lanes):
                buffer[i] += exp2(larger((pairs[pair, i] - derived[h, i]) * k, LOWEST))
        for i in range(lanes):
            derived[h, i] += log2(buffer[i]) * unit


@njit(**INNER)
def mix_head(head, head_start, head_pairs, pair_clause, weights, pairs, absent, mixed, m, out):
    """H[m] of a head: that of an absent atom, and what each of its clauses gives more."""
    for i in range(len(out)):
        out[i] = mixed[m, i]
    if head < len(head_start) - 1:
        for j in range(head_start[head], head_start[head + 1]):
            pair, c = head_pairs[j], pair_clause[head_pairs[j]]
            for i in range(len(out)):
                out[i] += weights[m, c] * (pairs[pair, i] - absent[c, i])


@njit(**INNER)
def combine_soft(head_start, head_pairs, pair_clause, k, unit, weights, pairs, absent, derived, mixed, buffer, sums):
    """R before normalisation for weights [M, C]: a running soft-or over m."""
    lanes = absent.shape[1]
    value = buffer[:lanes]
    for m in range(weights.shape[0]):
        fill(mixed[m], ZERO)
        for c in range(weights.shape[1]):
            for i in range(lanes):
                mixed[m, i] += weights[m, c] * absent[c, i]
    for h in range(derived.shape[0]):
        for m in range(weights.shape[0]):
            mix_head(h, head_start, head_pairs, pair_clause, weights, pairs, absent, mixed, m, value)
            for i in range(lanes):
                derived[h, i] = value[i] if m == 0 else larger(derived[h, i], value[i])
        fill(sums, ZERO)
        for m in range(weights.shape[0]):
            mix_head(h, head_start, head_pairs, pair_clause, weights, pairs, absent, mixed, m, value)
            for i in range(lanes):
                sums[i] += exp2(larger((value[i] - derived[h, i]) * k, LOWEST))
        for i in range(lanes):
            derived[h, i] += log2(sums[i]) * unit
