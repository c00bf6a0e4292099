"""The backward kernel: each tile runs forward again, keeping V of every step, and then in reverse.

Nothing is kept between the two passes, and no two tiles write to the same place, so the gradients
have the same bits in every run. Where Z exceeds 1 its gradient goes to the first largest value, in
atom order; values within rounding of each other count as equal, as they are in exact arithmetic.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nsfrc.engines.cpu.forward import is_bounded, load_tile, padded_lanes, rest_rows
from nsfrc.engines.cpu.maths import FAST, LOWEST, exp2, power, share_of_first
from nsfrc.engines.cpu.step import ONE, ZERO, derive, mix_head, new_scratch, step

TIE = np.float32(1.0 - 5e-7)


@njit(fastmath=FAST, nogil=True)
def _share_with_batch(g_z, whole_batch):
    """A maximum over the whole batch collects every example's gradient in every lane."""
    if whole_batch:
        total = ZERO
        for i in range(len(g_z)):
            total += g_z[i]
        g_z[:] = total


@njit(fastmath=FAST, nogil=True)
def _give(values, g, z, g_z, whole_batch, open_lanes):
    """Add Z's gradient to g in lanes where `values` (already divided by Z) is the first to reach 1."""
    for i in range(len(values)):
        if open_lanes[i] and z[i] > ONE and values[i] >= TIE:
            g[i] += g_z[i]
            open_lanes[i] = False
            if whole_batch:
                open_lanes[:] = False


@njit(fastmath=FAST, nogil=True)
def _through_values(tables, before, before_rest, X, rest, gX, g_rest, order, k, whole_batch, scratch, g_derived):
    """From the gradient of V' to those of V (in place) and of R. X, rest hold V'."""
    lanes = X.shape[1]
    z, g_z, open_lanes = scratch.value_z, np.zeros(lanes, np.float32), np.ones(lanes, np.bool_)
    for slot in range(tables.active):
        for i in range(lanes):
            gX[slot, i] /= z[i]
            g_z[i] -= gX[slot, i] * X[slot, i]
    for slot in range(rest.shape[0]):
        for i in range(lanes):
            g_rest[slot, i] /= z[i]
            g_z[i] -= g_rest[slot, i] * rest[slot, i]
    _share_with_batch(g_z, whole_batch)
    for j in range(len(order)):
        slot = order[j]
        if slot < tables.active:
            _give(X[slot], gX[slot], z, g_z, whole_batch, open_lanes)
        elif slot - tables.active < rest.shape[0]:
            _give(rest[slot - tables.active], g_rest[slot - tables.active], z, g_z, whole_batch, open_lanes)
    g_derived[:] = ZERO
    for slot in range(tables.active):
        head = tables.head_of[slot]
        r, g_r = scratch.derived[head], g_derived[head]
        for i in range(lanes):
            mine = share_of_first(before[slot, i], r[i], k)
            g_r[i] += gX[slot, i] * (ONE - mine)
            gX[slot, i] *= mine
    r, g_r = scratch.derived[-1], g_derived[-1]
    for slot in range(rest.shape[0]):
        for i in range(lanes):
            mine = share_of_first(before_rest[slot, i], r[i], k)
            g_r[i] += g_rest[slot, i] * (ONE - mine)
            g_rest[slot, i] *= mine


@njit(fastmath=FAST, nogil=True)
def _through_derived_z(scratch, g_derived, whole_batch):
    """From the gradient of normalised R to that of R, in place. Atoms without clauses come first."""
    z, derived = scratch.derived_z, scratch.derived
    lanes, heads = len(z), derived.shape[0] - 1
    g_z, open_lanes = np.zeros(lanes, np.float32), np.ones(lanes, np.bool_)
    for h in range(heads + 1):
        for i in range(lanes):
            g_derived[h, i] /= z[i]
            g_z[i] -= g_derived[h, i] * derived[h, i]
    _share_with_batch(g_z, whole_batch)
    _give(derived[heads], g_derived[heads], z, g_z, whole_batch, open_lanes)
    for h in range(heads):
        _give(derived[h], g_derived[h], z, g_z, whole_batch, open_lanes)


@njit(fastmath=FAST, nogil=True)
def _through_hard(tables, k, scratch, shares, g_derived, g_pairs, g_absent):
    """From the gradient of R to those of C, every clause chosen once. `derived` is normalised, so undo it."""
    lanes, heads = len(scratch.bottom), len(tables.heads)
    z = scratch.derived_z
    absent_total = g_derived[heads].copy()
    for h in range(heads):
        for i in range(lanes):
            absent_total[i] += g_derived[h, i] * exp2(
                max((scratch.derived[heads, i] - scratch.derived[h, i]) * z[i] * k, LOWEST))
    for c in range(g_absent.shape[0]):
        for i in range(lanes):
            g_absent[c, i] = absent_total[i]
    for h in range(heads):
        for j in range(tables.head_start[h], tables.head_start[h + 1]):
            pair = tables.head_pairs[j]
            c = tables.pair_clause[pair]
            for i in range(lanes):
                r = scratch.derived[h, i] * z[i]
                weight = g_derived[h, i] * exp2(max((scratch.derived[heads, i] * z[i] - r) * k, LOWEST))
                g_absent[c, i] -= weight
                g_pairs[pair, i] = g_derived[h, i] * exp2(max((scratch.pairs[pair, i] - r) * k, LOWEST))
    for c in range(g_absent.shape[0]):
        for i in range(lanes):
            g_absent[c, i] *= shares[c, i]


@njit(fastmath=FAST, nogil=True)
def _through_soft(tables, k, weights, scratch, mixed, g_derived, g_pairs, g_absent, g_weights, used):
    """From the gradient of R to those of C and of the weights; `used` lanes count for the weights."""
    lanes, heads = mixed.shape[1], len(tables.heads)
    z = scratch.derived_z
    h_values, g_mixed, g_h = np.empty_like(mixed), np.zeros_like(mixed), np.empty(lanes, np.float32)
    g_pairs[:] = ZERO
    g_absent[:] = ZERO
    for h in range(heads + 1):
        mix_head(tables, h, weights, scratch, mixed, h_values)
        for m in range(weights.shape[0]):
            for i in range(lanes):
                g_h[i] = g_derived[h, i] * exp2(max((h_values[m, i] - scratch.derived[h, i] * z[i]) * k, LOWEST))
                g_mixed[m, i] += g_h[i]
            if h < heads:
                for j in range(tables.head_start[h], tables.head_start[h + 1]):
                    pair = tables.head_pairs[j]
                    c = tables.pair_clause[pair]
                    total = 0.0
                    for i in range(lanes):
                        g_pairs[pair, i] += g_h[i] * weights[m, c]
                        g_absent[c, i] -= g_h[i] * weights[m, c]
                    for i in range(used):
                        total += g_h[i] * (scratch.pairs[pair, i] - scratch.absent[c, i])
                    g_weights[m, c] += total
    for m in range(weights.shape[0]):
        for c in range(weights.shape[1]):
            total = 0.0
            for i in range(lanes):
                g_absent[c, i] += g_mixed[m, i] * weights[m, c]
            for i in range(used):
                total += g_mixed[m, i] * scratch.absent[c, i]
            g_weights[m, c] += total


@njit(fastmath=FAST, nogil=True)
def _through_clause_z(tables, scratch, g_pairs, g_absent, whole_batch, g_bottom):
    """From the gradient of normalised C to that of C, in place; collects that of false^L."""
    lanes = len(g_bottom)
    for c in range(g_absent.shape[0]):
        z = scratch.clause_z[c]
        g_z, open_lanes = np.zeros(lanes, np.float32), np.ones(lanes, np.bool_)
        for i in range(lanes):
            g_absent[c, i] /= z[i]
            g_z[i] -= g_absent[c, i] * scratch.absent[c, i]
        for pair in range(tables.clause_start[c], tables.clause_start[c + 1]):
            for i in range(lanes):
                g_pairs[pair, i] /= z[i]
                g_z[i] -= g_pairs[pair, i] * scratch.pairs[pair, i]
        _share_with_batch(g_z, whole_batch)
        _give(scratch.absent[c], g_absent[c], z, g_z, whole_batch, open_lanes)
        for pair in range(tables.clause_start[c], tables.clause_start[c + 1]):
            _give(scratch.pairs[pair], g_pairs[pair], z, g_z, whole_batch, open_lanes)
        for i in range(lanes):
            g_bottom[i] += g_absent[c, i]


@njit(fastmath=FAST, nogil=True)
def _through_rows(tables, X, k, scratch, g_pairs, gX, g_power, g_bottom):
    """From the gradient of each pair's sum to those of its rows' factors, powers of true and padding."""
    lanes = X.shape[1]
    g = np.empty(lanes, np.float32)
    for pair in range(len(tables.pair_clause)):
        offset, padding = scratch.offset[pair], tables.pair_padding[pair]
        for i in range(lanes):
            g[i] = g_pairs[pair, i] / scratch.total[pair, i]
            g_bottom[i] += g[i] * padding * exp2(max(scratch.bottom[i] * k - offset[i], LOWEST))
        for run in range(tables.pair_start[pair], tables.pair_start[pair + 1]):
            p = tables.run_power[run]
            scale, g_scale = scratch.scale[p], g_power[p]
            for row in range(tables.run_start[run], tables.run_start[run + 1]):
                left, right = tables.row_left[row], tables.row_right[row]
                a, b, times = X[left], X[right], tables.row_times[row]
                ga, gb = gX[left], gX[right]
                for i in range(lanes):
                    product = a[i] * b[i]
                    gx = g[i] * times * exp2(max(product * scale[i] - offset[i], LOWEST))
                    g_scale[i] += gx * product
                    gx *= scale[i] / k
                    ga[i] += gx * b[i]
                    gb[i] += gx * a[i]


@njit(fastmath=FAST, nogil=True)
def _through_nodes(tables, X, gX):
    first = tables.active + 1
    for node in range(len(tables.node_left) - 1, -1, -1):
        left, right, g = tables.node_left[node], tables.node_right[node], gX[first + node]
        a, b, ga, gb = X[left], X[right], gX[left], gX[right]
        for i in range(X.shape[1]):
            ga[i] += g[i] * b[i]
            gb[i] += g[i] * a[i]


@njit(fastmath=FAST, nogil=True)
def _through_constants(tables, X, gX, g_power, g_bottom):
    for p in range(len(tables.powers)):
        n = tables.powers[p]
        if n > 0:
            for i in range(X.shape[1]):
                gX[tables.true, i] += g_power[p, i] * np.float32(n) * power(X[tables.true, i], n - 1)
    for i in range(X.shape[1]):
        gX[tables.false, i] += g_bottom[i] * np.float32(tables.L) * power(X[tables.false, i], tables.L - 1)


@njit(fastmath=FAST, nogil=True)
def _step_back(
    tables, X, rest, before, before_rest, gX, g_rest, weights, hard, g_weights, constants, bounded, whole_batch,
    scratch, mixed, order, used,
):
    """Gradients of one step, in place on gX and g_rest. X, rest: V after it, on return V before it."""
    k, lanes = constants.k, X.shape[1]
    g_derived = np.empty_like(scratch.derived)
    g_pairs, g_absent = np.empty_like(scratch.pairs), np.empty_like(scratch.absent)
    g_power, g_bottom = np.zeros_like(scratch.scale), np.zeros(lanes, np.float32)
    after, after_rest = X[: tables.active].copy(), rest.copy()
    X[: tables.active] = before
    derive(tables, X, weights, hard, constants, bounded, whole_batch, scratch, mixed)
    _through_values(tables, before, before_rest, after, after_rest, gX, g_rest, order, k, whole_batch,
                    scratch, g_derived)
    _through_derived_z(scratch, g_derived, whole_batch)
    if hard:
        _through_hard(tables, k, scratch, mixed, g_derived, g_pairs, g_absent)
    else:
        _through_soft(tables, k, weights, scratch, mixed, g_derived, g_pairs, g_absent, g_weights, used)
    _through_clause_z(tables, scratch, g_pairs, g_absent, whole_batch, g_bottom)
    gX[tables.active:] = ZERO
    _through_rows(tables, X, k, scratch, g_pairs, gX, g_power, g_bottom)
    _through_nodes(tables, X, gX)
    _through_constants(tables, X, gX, g_power, g_bottom)
    rest[:] = before_rest


@njit(fastmath=FAST, nogil=True)
def _load_gradient(tables, g_out, first, last, outputs, gX, g_rest):
    gX[:] = ZERO
    g_rest[:] = ZERO
    for i in range(last - first):
        for j in range(len(outputs)):
            slot = tables.slot_of[outputs[j]]
            if slot < tables.active:
                gX[slot, i] += g_out[first + i, j]
            else:
                g_rest[slot - tables.active, i] += g_out[first + i, j]


@njit(fastmath=FAST, nogil=True)
def _store_gradient(tables, V0, gX, g_rest, first, last, targets_only, g_V0):
    for i in range(last - first):
        row, values = g_V0[first + i], V0[first + i]
        for slot in range(tables.active):
            row[tables.members[slot]] = gX[slot, i]
        if targets_only and g_rest.shape[0]:
            largest = tables.members[tables.active]
            for slot in range(tables.active, tables.slots):
                if values[tables.members[slot]] > values[largest]:
                    largest = tables.members[slot]
            row[largest] = g_rest[0, i]
        elif not targets_only:
            for slot in range(tables.active, tables.slots):
                row[tables.members[slot]] = g_rest[slot - tables.active, i]


@njit(fastmath=FAST, nogil=True, cache=True)
def backward(
    tables, V0, first, last, tile, weights, hard, constants, steps, whole_batch, outputs, targets_only, order,
    g_out, g_V0, g_weights,
):
    """Gradients of examples first … last: writes g_V0 [B, G], adds to g_weights [M, C] (float64).

    order: slots in atom order, for ties of Z. g_out: gradient of the outputs, [B, len(outputs)].
    """
    done = first
    while done < last:
        end = min(done + tile, last)
        lanes = padded_lanes(end - done, whole_batch)
        X = np.empty((tables.active + 1 + len(tables.node_left), lanes), np.float32)
        rest = np.empty((rest_rows(tables, targets_only), lanes), np.float32)
        scratch = new_scratch(tables, weights.shape[1], lanes)
        mixed = np.empty((weights.shape[0], lanes), np.float32)
        load_tile(tables, V0, done, end, X, rest, targets_only)
        bounded = is_bounded(X, rest, tables.active, constants.k)
        past = np.empty((steps, tables.active, lanes), np.float32)
        past_rest = np.empty((steps, rest.shape[0], lanes), np.float32)
        past_z = np.empty((steps, lanes), np.float32)
        for t in range(steps):
            past[t] = X[: tables.active]
            past_rest[t] = rest
            step(tables, X, rest, weights, hard, constants, bounded, whole_batch, scratch, mixed)
            past_z[t] = scratch.value_z
        gX, g_rest = np.empty_like(X), np.empty_like(rest)
        _load_gradient(tables, g_out, done, end, outputs, gX, g_rest)
        for t in range(steps - 1, -1, -1):
            scratch.value_z[:] = past_z[t]
            _step_back(tables, X, rest, past[t], past_rest[t], gX, g_rest, weights, hard, g_weights, constants,
                       bounded, whole_batch, scratch, mixed, order, end - done)
        _store_gradient(tables, V0, gX, g_rest, done, end, targets_only, g_V0)
        done = end
