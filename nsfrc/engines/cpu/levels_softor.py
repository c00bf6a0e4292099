"""softor⁰ of a head's reasons, and its way back.

With m the largest reason and d_k = exp(x_k/γ) − 1, each divided by exp(m/γ), softor⁰ is m + γ·log(1 + Σ d_k − d_m). A
reason of 0 adds exactly nothing, and where there is one reason alone the sum is d_m, so that softor⁰ is m to the bit.
With a large γ exponentials lie close to 1 and their differences lose digits, γ times what each is off by: from FLAT on
`flat` takes expm1.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from nsfrc.engines.cpu.maths import INNER, LOWEST, exp2, larger, log2

ZERO, ONE = np.float32(0.0), np.float32(1.0)
FLAT = np.float32(0.5)
CONSTANT_ONE = 1  # the row of X that holds it


@njit(**INNER)
def largest(t, first, last, X, top):
    """The largest of some rows' products and of what `top` holds."""
    row, end = np.int64(first), np.int64(last)
    while row + 4 <= end:
        a, b, c, d = X[t.row_left[row]], X[t.row_left[row + 1]], X[t.row_left[row + 2]], X[t.row_left[row + 3]]
        e, f, g, h = X[t.row_right[row]], X[t.row_right[row + 1]], X[t.row_right[row + 2]], X[t.row_right[row + 3]]
        for i in range(len(top)):
            most = larger(larger(a[i] * e[i], b[i] * f[i]), larger(c[i] * g[i], d[i] * h[i]))
            top[i] = larger(top[i], most)
        row += 4
    while row < end:
        left, right = X[t.row_left[row]], X[t.row_right[row]]
        for i in range(len(top)):
            top[i] = larger(top[i], left[i] * right[i])
        row += 1


@njit(**INNER)
def vanishing_of(top, k, flat):
    """exp(−m/γ), what a reason of 0 has beside the largest."""
    return np.float32(math.exp(-top * k * math.log(2))) if flat else exp2(larger(-top * k, LOWEST))


@njit(**INNER)
def vanishing(k, flat, top, none):
    for i in range(len(top)):
        none[i] = vanishing_of(top[i], k, flat)


@njit(**INNER)
def gain(x, top, none, k, flat):
    """d_k of one reason: how far it stands above a reason of 0."""
    if flat:
        return np.float32(none * math.expm1(x * k * math.log(2)))
    return exp2(larger((x - top) * k, LOWEST)) - none


@njit(**INNER)
def _add_four(t, row, times, k, X, top, none, total):
    """Add the gains of four rows, one after the other."""
    a, b, c, d = X[t.row_left[row]], X[t.row_left[row + 1]], X[t.row_left[row + 2]], X[t.row_left[row + 3]]
    e, f, g, h = X[t.row_right[row]], X[t.row_right[row + 1]], X[t.row_right[row + 2]], X[t.row_right[row + 3]]
    for i in range(len(total)):
        most, nothing, found = top[i], none[i], total[i]
        found += times * gain(a[i] * e[i], most, nothing, k, False)
        found += times * gain(b[i] * f[i], most, nothing, k, False)
        found += times * gain(c[i] * g[i], most, nothing, k, False)
        total[i] = found + times * gain(d[i] * h[i], most, nothing, k, False)


@njit(**INNER)
def add_gains(t, first_run, last_run, k, flat, X, top, none, total):
    """Add the gains of the rows of some runs to `total`."""
    for run in range(first_run, last_run):
        times = t.run_times[run]
        row, last = np.int64(t.run_start[run]), np.int64(t.run_start[run + 1])
        while not flat and row + 4 <= last:
            _add_four(t, row, times, k, X, top, none, total)
            row += 4
        while row < last:
            left, right = X[t.row_left[row]], X[t.row_right[row]]
            for i in range(len(total)):
                total[i] += times * gain(left[i] * right[i], top[i], none[i], k, flat)
            row += 1


@njit(**INNER)
def softor_of(top, none, total, k, unit, flat):
    """1 + Σ d_k − d_m and softor⁰, of the largest reason and the sum of all gains."""
    others = larger(total - gain(top, top, none, k, flat), ZERO)
    if flat:
        return ONE + others, np.float32(top + math.log1p(others) / (k * math.log(2)))
    return ONE + others, top + unit * log2(ONE + others)


@njit(**INNER)
def close(k, unit, flat, top, none, total, value):
    """softor⁰ of a head; `total` keeps 1 + Σ d_k − d_m, for the way back."""
    for i in range(len(value)):
        total[i], value[i] = softor_of(top[i], none[i], total[i], k, unit, flat)


@njit(**INNER)
def weight(x, top, k):
    """exp(x/γ) beside the largest: divided by `total`, the derivative of softor⁰ by this reason."""
    return exp2(larger((x - top) * k, LOWEST))


@njit(**INNER)
def through_runs(t, first_run, last_run, k, X, top, scaled, gX, g_left):
    """Gradients of rows' factors. scaled: the gradient of softor⁰ divided by `total`; g_left: room for one factor's."""
    for run in range(first_run, last_run):
        row, last = np.int64(t.run_start[run]), np.int64(t.run_start[run + 1])
        while row < last:
            left = t.row_left[row]
            for i in range(len(top)):
                g_left[i] = ZERO
            row = _through_group(t, row, last, left, t.run_times[run], k, X, top, scaled, gX, g_left)
            g_a = gX[left]
            for i in range(len(top)):
                g_a[i] += g_left[i]


@njit(**INNER)
def _through_group(t, row, last, left, times, k, X, top, scaled, gX, g_left):
    """Rows from `row` on that have the same left factor, whose gradient goes to g_left; returns the row after them."""
    a = X[left]
    while row < last and t.row_left[row] == left:
        right = t.row_right[row]
        b, g_b = X[right], gX[right]
        for i in range(len(top)):
            g = times * scaled[i] * weight(a[i] * b[i], top[i], k)
            g_left[i] += g * b[i]
            g_b[i] += g * a[i]
        row += 1
    return row
