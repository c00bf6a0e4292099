"""Phases of a step for one example: rows, pairs and slots in the place of lanes."""

from __future__ import annotations

import numpy as np
from numba import njit

from nsfrc.engines.cpu.maths import INNER, LOWEST, exp2, larger, log2, softor
from nsfrc.engines.cpu.memory import floats

ONE, HALF, ZERO = np.float32(1.0), np.float32(0.5), np.float32(0.0)
SUM = {**INNER, "fastmath": {*INNER["fastmath"], "reassoc"}}


@njit(**SUM)
def add_up(values, count):
    total = ZERO
    for i in range(count):
        total += values[i]
    return total


@njit(**INNER)
def sum_pairs_of_one(
    row_left, row_right, group_start, run_start, run_power, run_times, pair_start, pair_padding, k, unit,
    X, scale, bottom, offset, total, pairs, buffer,
):
    """As `step.sum_pairs`, to the bit, for exponents in range: what that reads from memory is read from there here."""
    shift, count = k * HALF, len(pair_padding)
    x, sums = floats(X.ctypes.data, X.size), floats(total.ctypes.data, count)
    shifts, out = floats(offset.ctypes.data, count), floats(pairs.ctypes.data, count)
    for row in range(len(row_left)):
        buffer[row] = x[row_left[row]] * x[row_right[row]]
    for run in range(len(run_power)):
        factor = scale[run_power[run], 0]
        for row in range(group_start[run_start[run]], group_start[run_start[run + 1]]):
            buffer[row] = buffer[row] * factor - shift
    for row in range(len(row_left)):
        buffer[row] = exp2(larger(buffer[row], LOWEST))
    nothing = exp2(larger(bottom[0, 0] * k - shift, LOWEST))
    for pair in range(count):
        shifts[pair] = shift
        sums[pair] = pair_padding[pair] * nothing if pair_padding[pair] > ZERO else ZERO
    for pair in range(count):
        for run in range(pair_start[pair], pair_start[pair + 1]):
            first, last = group_start[run_start[run]], group_start[run_start[run + 1]]
            sums[pair] += run_times[run] * add_up(buffer[first:last], last - first)
    for pair in range(count):
        out[pair] = shifts[pair] * unit + log2(sums[pair]) * unit


@njit(**INNER)
def update_one(head_of, gamma, k, X, rest, derived, buffer):
    """As `normalising.update_values`; returns Z."""
    active, last = len(head_of), derived.shape[0] - 1
    x, passive = floats(X.ctypes.data, active), floats(rest.ctypes.data, rest.size)
    for slot in range(active):
        buffer[slot] = derived[head_of[slot], 0]
    for slot in range(active):
        x[slot] = softor(x[slot], buffer[slot], gamma, k)
    z, other = ONE, derived[last, 0]
    for slot in range(active):
        z = larger(z, x[slot])
    for slot in range(len(passive)):
        passive[slot] = softor(passive[slot], other, gamma, k)
    for slot in range(len(passive)):
        z = larger(z, passive[slot])
    for slot in range(active):
        x[slot] /= z
    for slot in range(len(passive)):
        passive[slot] /= z
    return z
