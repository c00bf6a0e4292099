"""The backward kernel: the steps in reverse, each recomputed from the V it started with.

No two tiles write to the same place, so gradients have the same bits in every run. Where Z exceeds 1
its gradient goes to the largest value: the first in atom order, values within rounding of each other
counting as equal, as they are in exact arithmetic.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nsfrc.engines.cpu.forward import BOUNDED_K, derive, in_unit_interval, new_scratch, padded_lanes, start
from nsfrc.engines.cpu.maths import INNER, KERNEL, LOWEST, exp2, flush_denormals, larger, power, restore, share_of_first
from nsfrc.engines.cpu.step import ONE, ZERO, fill, is_among, mix_head
from nsfrc.engines.cpu.tables import Arguments, unpack

TIE = np.float32(1.0 - 5e-7)
# As an exponent of 2; a head that is combined with shares (`step.FEW_SHARES`) is at most 13.3 below.
MOST_ABOVE = np.float32(14.0)


class Gradients(NamedTuple):
    """Gradients of what has the same name in `step.Scratch`, and V before and after a step."""

    before: np.ndarray  # [slots, lanes]: active ones, then rest
    after: np.ndarray
    values: np.ndarray  # [slots, lanes]: of V' at first, of V in the end
    X: np.ndarray
    power: np.ndarray  # [powers, lanes]: of true^power
    bottom: np.ndarray
    pairs: np.ndarray
    absent: np.ndarray
    derived: np.ndarray
    z: np.ndarray  # [lanes]: of the Z at hand
    unclaimed: np.ndarray  # [lanes]: whether nothing has claimed it yet
    factor: np.ndarray  # [lanes]: a group's common factor times its power of true
    left: np.ndarray  # [lanes]: of a group's common factor, without its power
    run: np.ndarray  # [lanes]: of a run's sum
    mixed: np.ndarray  # [M, lanes]


@njit(**INNER)
def _new_gradients(s, slots):
    lanes = s.X.shape[1]
    return Gradients(
        np.empty((slots, lanes), np.float32), np.empty((slots, lanes), np.float32),
        np.empty((slots, lanes), np.float32), np.empty(s.X.shape, np.float32), np.empty(s.scale.shape, np.float32),
        np.empty(lanes, np.float32), np.empty(s.pairs.shape, np.float32), np.empty(s.absent.shape, np.float32),
        np.empty(s.derived.shape, np.float32), np.empty(lanes, np.float32), np.empty(lanes, np.bool_),
        np.empty(lanes, np.float32), np.empty(lanes, np.float32), np.empty(lanes, np.float32),
        np.empty(s.mixed.shape, np.float32),
    )


@njit(**INNER)
def _open(z, g, whole_batch):
    """Before Z's gradient is given: every lane's still to be claimed; one maximum of a batch has all of it."""
    total = ZERO
    for i in range(len(z)):
        total += g.z[i]
        g.unclaimed[i] = z[i] > ONE
    if whole_batch:
        fill(g.z, total)


@njit(**INNER)
def _claim(values, g_values, g, whole_batch):
    """Give Z's gradient to g_values in lanes where `values`, divided by Z, are the first to reach 1."""
    for i in range(len(values)):
        if g.unclaimed[i] and values[i] >= TIE:
            g_values[i] += g.z[i]
            if whole_batch:
                fill(g.unclaimed, False)
            g.unclaimed[i] = False


@njit(**INNER)
def _undivide(values, g_values, z, g_z):
    """From the gradient of values/Z to that of values, in place; adds Z's to g_z. `values` are divided."""
    for row in range(values.shape[0]):
        for i in range(len(z)):
            g_values[row, i] /= z[i]
            g_z[i] -= g_values[row, i] * values[row, i]


@njit(**INNER)
def _through_values(t, k, whole_batch, s, g):
    """From the gradient of V' to those of V (in place) and of R."""
    derived, z = s.derived, s.z[1]
    active, last, lanes = len(t.head_of), derived.shape[0] - 1, len(z)
    fill(g.z, ZERO)
    _undivide(g.after, g.values, z, g.z)
    _open(z, g, whole_batch)
    for j in range(len(t.order)):
        slot = t.order[j]
        if slot < g.after.shape[0]:
            _claim(g.after[slot], g.values[slot], g, whole_batch)
    for h in range(last + 1):
        fill(g.derived[h], ZERO)
    for slot in range(g.before.shape[0]):
        head = t.head_of[slot] if slot < active else last
        for i in range(lanes):
            mine = share_of_first(g.before[slot, i], derived[head, i], k)
            g.derived[head, i] += g.values[slot, i] * (ONE - mine)
            g.values[slot, i] *= mine


@njit(**INNER)
def _through_derived_z(whole_batch, s, g):
    """From the gradient of normalised R to that of R, in place. Atoms that head nothing come first."""
    last = s.derived.shape[0] - 1
    fill(g.z, ZERO)
    _undivide(s.derived, g.derived, s.z[0], g.z)
    _open(s.z[0], g, whole_batch)
    _claim(s.derived[last], g.derived[last], g, whole_batch)
    for h in range(last):
        _claim(s.derived[h], g.derived[h], g, whole_batch)


@njit(**INNER)
def _has_few_shares(head, k, s):
    """Whether R of a head is so far below that of atoms that head nothing that their shares say nothing of it."""
    most, derived, z = ZERO, s.derived, s.z[0]
    last = derived.shape[0] - 1
    for i in range(len(z)):
        most = larger(most, (derived[last, i] - derived[head, i]) * z[i] * k)
    return most > MOST_ABOVE


@njit(**INNER)
def _through_hard(t, k, s, g):
    """From the gradient of R to those of C, every clause chosen once. `derived` has been divided by z."""
    pairs, absent, derived, z, shares = s.pairs, s.absent, s.derived, s.z[0], s.mixed
    g_derived, g_pairs, g_absent = g.derived, g.pairs, g.absent
    heads, lanes, clauses = len(t.heads), len(z), g_absent.shape[0]
    for c in range(clauses):
        for i in range(lanes):
            g_absent[c, i] = g_derived[heads, i]
    for h in range(heads):
        first, last = t.head_start[h], t.head_start[h + 1]
        for j in range(first, last):
            pair = t.head_pairs[j]
            for i in range(lanes):
                g_pairs[pair, i] = g_derived[h, i] * exp2(larger((pairs[pair, i] - derived[h, i] * z[i]) * k, LOWEST))
        if last - first == clauses or _has_few_shares(h, k, s):
            continue
        for i in range(lanes):
            kept = g_derived[h, i] * exp2(larger((derived[heads, i] - derived[h, i]) * z[i] * k, LOWEST))
            for c in range(clauses):
                g_absent[c, i] += kept
            for j in range(first, last):
                g_absent[t.pair_clause[t.head_pairs[j]], i] -= kept
    for c in range(clauses):
        for i in range(lanes):
            g_absent[c, i] *= shares[c, i]
    for h in range(heads):
        first, last = t.head_start[h], t.head_start[h + 1]
        if last - first < clauses and _has_few_shares(h, k, s):
            for c in range(clauses):
                if not is_among(t, c, h):
                    for i in range(lanes):
                        share = exp2(larger((absent[c, i] - derived[h, i] * z[i]) * k, LOWEST))
                        g_absent[c, i] += g_derived[h, i] * share


@njit(**INNER)
def _through_soft(t, k, weights, s, g, g_weights, used):
    """From the gradient of R to those of C and of the weights; `used` lanes count for the weights."""
    pairs, absent, derived, z = s.pairs, s.absent, s.derived, s.z[0]
    g_derived, g_pairs, g_absent = g.derived, g.pairs, g.absent
    heads, lanes = len(t.heads), len(z)
    value, g_mixed = np.empty(lanes, np.float32), np.empty((weights.shape[0], lanes), np.float32)
    for pair in range(g_pairs.shape[0]):
        fill(g_pairs[pair], ZERO)
    for c in range(g_absent.shape[0]):
        fill(g_absent[c], ZERO)
    for m in range(weights.shape[0]):
        fill(g_mixed[m], ZERO)
        for h in range(heads + 1):
            mix_head(t, h, weights, m, s, value)
            for i in range(lanes):
                value[i] = g_derived[h, i] * exp2(larger((value[i] - derived[h, i] * z[i]) * k, LOWEST))
                g_mixed[m, i] += value[i]
            for j in range(t.head_start[h] if h < heads else 0, t.head_start[h + 1] if h < heads else 0):
                pair = t.head_pairs[j]
                c = t.pair_clause[pair]
                for i in range(lanes):
                    g_pairs[pair, i] += value[i] * weights[m, c]
                    g_absent[c, i] -= value[i] * weights[m, c]
                for i in range(used):
                    g_weights[m, c] += value[i] * (pairs[pair, i] - absent[c, i])
        for c in range(weights.shape[1]):
            for i in range(lanes):
                g_absent[c, i] += g_mixed[m, i] * weights[m, c]
            for i in range(used):
                g_weights[m, c] += g_mixed[m, i] * absent[c, i]


@njit(**INNER)
def _through_clause_z(t, whole_batch, s, g):
    """From the gradient of normalised C to that of C, in place; collects that of false^L."""
    for c in range(g.absent.shape[0]):
        first, last, z = t.clause_start[c], t.clause_start[c + 1], s.clause_z[c]
        fill(g.z, ZERO)
        _undivide(s.absent[c : c + 1], g.absent[c : c + 1], z, g.z)
        _undivide(s.pairs[first:last], g.pairs[first:last], z, g.z)
        _open(z, g, whole_batch)
        _claim(s.absent[c], g.absent[c], g, whole_batch)
        for pair in range(first, last):
            _claim(s.pairs[pair], g.pairs[pair], g, whole_batch)
        for i in range(len(z)):
            g.bottom[i] += g.absent[c, i]


@njit(**INNER)
def _through_group(row_right, first, last, offset, s, g):
    """Gradients of a group's rows from that of its run; s.left: the common factor, scaled for exp2."""
    X, left, gX, g_run, factor, g_left = s.X, s.left, g.X, g.run, g.factor, g.left
    for row in range(first, last):
        right = row_right[row]
        for i in range(X.shape[1]):
            b = X[right, i]
            weight = g_run[i] * exp2(larger(b * left[i] - offset[i], LOWEST))
            g_left[i] += weight * b
            gX[right, i] += weight * factor[i]


@njit(**INNER)
def _through_rows(t, k, unit, s, g):
    """From the gradient of each pair's C to those of its rows' factors, powers of true and padding."""
    X, scale, bottom, left = s.X, s.scale, s.bottom, s.left
    g_left, factor = g.left, g.factor
    lanes = X.shape[1]
    for pair in range(len(t.pair_padding)):
        shift, g_pair = s.offset[pair], g.pairs[pair]
        for i in range(lanes):
            g_pair[i] /= s.total[pair, i]
        for i in range(lanes if t.pair_padding[pair] > ZERO else 0):
            padding = t.pair_padding[pair] * exp2(larger(bottom[i] * k - shift[i], LOWEST))
            g.bottom[i] += g_pair[i] * padding
        for run in range(t.pair_start[pair], t.pair_start[pair + 1]):
            p = t.run_power[run]
            for i in range(lanes):
                g.run[i] = g_pair[i] * t.run_times[run]
            for group in range(t.run_start[run], t.run_start[run + 1]):
                first, last = t.group_start[group], t.group_start[group + 1]
                common = t.row_left[first]
                for i in range(lanes):
                    left[i] = X[common, i] * scale[p, i]
                    factor[i] = left[i] * unit
                    g_left[i] = ZERO
                _through_group(t.row_right, first, last, shift, s, g)
                for i in range(lanes):
                    g.power[p, i] += g_left[i] * X[common, i]
                    g.X[common, i] += g_left[i] * scale[p, i] * unit


@njit(**INNER)
def _through_nodes(t, X, gX):
    first = len(t.head_of) + 1
    for node in range(len(t.node_left) - 1, -1, -1):
        left, right = t.node_left[node], t.node_right[node]
        for i in range(X.shape[1]):
            g, a, b = gX[first + node, i], X[left, i], X[right, i]
            gX[left, i] += g * b
            gX[right, i] += g * a


@njit(**INNER)
def _through_constants(t, X, g):
    for p in range(len(t.powers)):
        n = t.powers[p]
        for i in range(X.shape[1] if n > 0 else 0):
            g.X[t.true, i] += g.power[p, i] * np.float32(n) * power(X[t.true, i], n - 1)
    for i in range(X.shape[1]):
        g.X[t.false, i] += g.bottom[i] * np.float32(t.L) * power(X[t.false, i], t.L - 1)


@njit(**INNER)
def _load(past, first, last, out):
    """Lanes first … last of past [slots, B]; spare lanes repeat the last one."""
    for slot in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[slot, i] = past[slot, min(first + i, last - 1)]


@njit(**INNER)
def _clear(values):
    for row in range(values.shape[0]):
        fill(values[row], ZERO)


@njit(**INNER)
def _load_gradient(t, call, g_out, first, last, g_values):
    _clear(g_values)
    for i in range(last - first):
        for j in range(len(call.outputs)):
            g_values[t.slot_of[call.outputs[j]], i] += g_out[first + i, j]


@njit(**INNER)
def _store_gradient(t, call, g_values, first, last, g_V0):
    """Write each slot's gradient to its first atom; the row that carries a maximum to the largest atom."""
    members, constant, active = t.members, t.constant, len(t.head_of)
    for i in range(first, last):
        largest = members[active] if len(members) > active else 0
        for slot in range(len(members)):
            atom = members[slot]
            if slot >= active and call.targets_only:
                if start(t, call, i, atom) > start(t, call, i, largest):
                    largest = atom
            elif not call.neural_only or not constant[atom] >= ZERO:
                g_V0[i, atom] = g_values[slot, i - first]
        if call.targets_only and len(members) > active and not (call.neural_only and constant[largest] >= ZERO):
            g_V0[i, largest] = g_values[active, i - first]


@njit(cache=True, **KERNEL)
def backward(g_out, g_V0, g_weights, *arguments):
    """Gradients of some examples: writes g_V0 [B, G], adds to g_weights [M, C] (float64).

    arguments: `Arguments`, those of `forward`, past and past_z as it left them.
    g_out: gradient of the outputs, [B, outputs].
    """
    call = Arguments(*arguments)
    mode = flush_denormals()
    t = unpack(call.indices, call.floats, call.layout)
    k, unit, whole_batch = call.base[1], call.base[2], call.whole_batch
    active, kept = len(t.head_of), call.past.shape[1]
    done = call.first
    while done < call.last:
        end = min(done + call.tile, call.last)
        s = new_scratch(t, call.weights, 0, padded_lanes(end - done, whole_batch))
        g = _new_gradients(s, kept)
        _load(call.past[0], done, end, g.before)
        bounded = k <= BOUNDED_K and in_unit_interval(g.before, kept)
        _load_gradient(t, call, g_out, done, end, g.values)
        for step in range(call.steps - 1, -1, -1):
            _load(call.past[step], done, end, g.before)
            _load(call.past[step + 1], done, end, g.after)
            _load(call.past_z[step : step + 1], done, end, s.z[1:2])
            for slot in range(active):
                for i in range(s.X.shape[1]):
                    s.X[slot, i] = g.before[slot, i]
            fill(s.X[active], ONE)
            derive(t, call, bounded, s)

            _through_values(t, k, whole_batch, s, g)
            _through_derived_z(whole_batch, s, g)
            if call.hard:
                _through_hard(t, k, s, g)
            else:
                _through_soft(t, k, call.weights, s, g, g_weights, end - done)
            fill(g.bottom, ZERO)
            _through_clause_z(t, whole_batch, s, g)
            _clear(g.X)
            _clear(g.power)
            _through_rows(t, k, unit, s, g)
            _through_nodes(t, s.X, g.X)
            _through_constants(t, s.X, g)
            for slot in range(active):
                for i in range(s.X.shape[1]):
                    g.values[slot, i] += g.X[slot, i]
        _store_gradient(t, call, g.values, done, end, g_V0)
        done = end
    restore(mode)
