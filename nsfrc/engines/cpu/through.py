"""From the gradient of what a phase of a step fills to that of what it reads, phase by phase.

`through_z` has what goes through Z.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nsfrc.engines.cpu.maths import INNER, LOWEST, exp2, larger, power
from nsfrc.engines.cpu.meeting import CLAUSES, largest_said, say
from nsfrc.engines.cpu.memory import fill
from nsfrc.engines.cpu.step import ZERO, is_among, mix_head

# As an exponent of 2; a head that is combined with shares (`step.FEW_SHARES`) is at most 13.3 below.
MOST_ABOVE = np.float32(14.0)


@njit(**INNER)
def _most_above(head, last, z, k, derived):
    """How far R of a head is below that of atoms that head nothing, as an exponent of 2."""
    most = ZERO
    for i in range(len(z)):
        most = larger(most, (derived[last, i] - derived[head, i]) * z[i] * k)
    return most


@njit(**INNER)
def tell_above(meeting, clauses, z, k, derived):
    """Tells the other parts of a batch how far below each head is, so that all go through it in the same way; they must
    meet before `through_hard`."""
    heads = derived.shape[0] - 1
    for h in range(heads if meeting.parts > 1 else 0):
        say(meeting, CLAUSES + 2 * clauses + heads + h, _most_above(h, heads, z, k, derived))


@njit(**INNER)
def _has_few_shares(head, meeting, clauses, z, k, derived):
    """Whether R of a head is so far below that of atoms that head nothing that their shares say nothing of it."""
    heads = derived.shape[0] - 1
    own = _most_above(head, heads, z, k, derived)
    return largest_said(meeting, CLAUSES + 2 * clauses + heads + head, own) > MOST_ABOVE


@njit(**INNER)
def through_hard(
    head_start, head_pairs, pair_clause, k, meeting, pairs, absent, derived, z, shares, g_derived, g_pairs, g_absent,
    kept, all_kept,
):
    """From the gradient of R to those of C, every clause chosen once. `derived` has been divided by z.

    kept, all_kept [lanes]: what a head gives to clauses that do not head it, and what all of them do.
    """
    heads, lanes, clauses = len(head_start) - 1, len(z), g_absent.shape[0]
    for i in range(lanes):
        all_kept[i] = g_derived[heads, i]
    for c in range(clauses):
        fill(g_absent[c], ZERO)
    for h in range(heads):
        first, last = head_start[h], head_start[h + 1]
        for j in range(first, last):
            pair = head_pairs[j]
            for i in range(lanes):
                g_pairs[pair, i] = g_derived[h, i] * exp2(larger((pairs[pair, i] - derived[h, i] * z[i]) * k, LOWEST))
        if last - first == clauses or _has_few_shares(h, meeting, clauses, z, k, derived):
            continue
        for i in range(lanes):
            kept[i] = g_derived[h, i] * exp2(larger((derived[heads, i] - derived[h, i]) * z[i] * k, LOWEST))
            all_kept[i] += kept[i]
        for j in range(first, last):
            c = pair_clause[head_pairs[j]]
            for i in range(lanes):
                g_absent[c, i] -= kept[i]
    for c in range(clauses):
        for i in range(lanes):
            g_absent[c, i] = (g_absent[c, i] + all_kept[i]) * shares[c, i]
    for h in range(heads):
        first, last = head_start[h], head_start[h + 1]
        if last - first < clauses and _has_few_shares(h, meeting, clauses, z, k, derived):
            for c in range(clauses):
                if not is_among(c, first, last, head_pairs, pair_clause):
                    for i in range(lanes):
                        share = exp2(larger((absent[c, i] - derived[h, i] * z[i]) * k, LOWEST))
                        g_absent[c, i] += g_derived[h, i] * share


@njit(**INNER)
def through_soft(
    head_start, head_pairs, pair_clause, k, weights, pairs, absent, derived, z, mixed,
    g_derived, g_pairs, g_absent, g_weights, used, chunk, value, g_mixed,
):
    """From the gradient of R to those of C and of the weights; `used` lanes count for the weights, by chunks."""
    heads, lanes = len(head_start) - 1, len(z)
    for pair in range(g_pairs.shape[0]):
        fill(g_pairs[pair], ZERO)
    for c in range(g_absent.shape[0]):
        fill(g_absent[c], ZERO)
    for m in range(weights.shape[0]):
        fill(g_mixed[m], ZERO)
        for h in range(heads + 1):
            mix_head(h, head_start, head_pairs, pair_clause, weights, pairs, absent, mixed, m, value)
            for i in range(lanes):
                value[i] = g_derived[h, i] * exp2(larger((value[i] - derived[h, i] * z[i]) * k, LOWEST))
                g_mixed[m, i] += value[i]
            for j in range(head_start[h] if h < heads else 0, head_start[h + 1] if h < heads else 0):
                pair, c = head_pairs[j], pair_clause[head_pairs[j]]
                # Two loops: a product that is added twice in one may be rounded or not, as the compiler likes.
                for i in range(lanes):
                    g_pairs[pair, i] += value[i] * weights[m, c]
                for i in range(lanes):
                    g_absent[c, i] -= value[i] * weights[m, c]
                for at in range(0, used, chunk):
                    row = at // chunk * weights.shape[0] + m
                    for i in range(at, min(at + chunk, used)):
                        g_weights[row, c] += value[i] * (pairs[pair, i] - absent[c, i])
        for c in range(weights.shape[1]):
            for i in range(lanes):
                g_absent[c, i] += g_mixed[m, i] * weights[m, c]
            for at in range(0, used, chunk):
                row = at // chunk * weights.shape[0] + m
                for i in range(at, min(at + chunk, used)):
                    g_weights[row, c] += g_mixed[m, i] * absent[c, i]


@njit(**INNER)
def _through_group(row_right, first, last, X, g, left, offset, factor, gX, g_left):
    """Gradients of a group's rows. g [lanes]: of the run's sum; left: the common factor, scaled for exp2;
    factor: the common factor times the power of true; g_left collects Σ weight · right."""
    for row in range(first, last):
        right = row_right[row]
        for i in range(X.shape[1]):
            b = X[right, i]
            weight = g[i] * exp2(larger(b * left[i] - offset[i], LOWEST))
            g_left[i] += weight * b
            gX[right, i] += weight * factor[i]


@njit(**INNER)
def through_rows(
    row_left, row_right, group_start, run_start, run_power, run_times, pair_start, pair_padding, k, unit,
    X, scale, bottom, offset, total, g_pairs, gX, g_power, g_bottom, g, left, factor, g_left,
):
    """From the gradient of each pair's C to those of its rows' factors, powers of true and padding."""
    lanes = X.shape[1]
    for pair in range(len(pair_padding)):
        shift = offset[pair]
        for i in range(lanes):
            g_pairs[pair, i] /= total[pair, i]
        for i in range(lanes if pair_padding[pair] > ZERO else 0):
            padding = pair_padding[pair] * exp2(larger(bottom[0, i] * k - shift[i], LOWEST))
            g_bottom[i] += g_pairs[pair, i] * padding
        for run in range(pair_start[pair], pair_start[pair + 1]):
            p = run_power[run]
            for i in range(lanes):
                g[i] = g_pairs[pair, i] * run_times[run]
            for group in range(run_start[run], run_start[run + 1]):
                first, last = group_start[group], group_start[group + 1]
                common = row_left[first]
                for i in range(lanes):
                    left[i] = X[common, i] * scale[p, i]
                    factor[i] = left[i] * unit
                    g_left[i] = ZERO
                _through_group(row_right, first, last, X, g, left, shift, factor, gX, g_left)
                for i in range(lanes):
                    g_power[p, i] += g_left[i] * X[common, i]
                    gX[common, i] += g_left[i] * scale[p, i] * unit


@njit(**INNER)
def through_nodes(node_left, node_right, first, X, gX):
    for node in range(len(node_left) - 1, -1, -1):
        left, right = node_left[node], node_right[node]
        for i in range(X.shape[1]):
            g, a, b = gX[first + node, i], X[left, i], X[right, i]
            gX[left, i] += g * b
            gX[right, i] += g * a


@njit(**INNER)
def through_constants(powers, true, false, length, X, gX, g_power, g_bottom):
    for p in range(len(powers)):
        n = powers[p]
        for i in range(X.shape[1] if n > 0 else 0):
            gX[true, i] += g_power[p, i] * np.float32(n) * power(X[true, i], n - 1)
    for i in range(X.shape[1]):
        gX[false, i] += g_bottom[i] * np.float32(length) * power(X[false, i], length - 1)
