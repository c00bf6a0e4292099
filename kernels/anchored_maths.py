"""softor⁰(x) = γ·log(1 + Σ times·(exp(x/γ) − 1)), which is at least its largest reason, `top`.

With base 2: k = log2(e)/γ and unit = 1/k. What is summed is a multiple of exp(top/γ), since exp(1/γ) may overflow:

    rest = Σ times·(exp((x − top)/γ) − exp(−top/γ)) − (1 − exp(−top/γ)),      softor⁰ = top + γ·log(1 + rest)

A reason of 0 adds exactly nothing, and of a single reason rest is exactly 0. WARM is for a γ so large that the
difference of two exponentials would lose digits, and that no exponential overflows. `inverse` is 1/(1 + rest), which
turns the exponential of a reason into its share of the gradient. Kernels of these lines are compiled without
enable_fp_fusion: a product must be rounded alike where it is the largest and where it is compared with that. What may
be fused says so (tl.fma).
"""

from __future__ import annotations

import triton
import triton.language as tl

from nsfrc.kernels.maths import log2

LN2 = tl.constexpr(0.6931471805599453)
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def less_one(y):
    """exp(y) − 1, exact to the last digits however small y is."""
    series = y * (1.0 + y * (1 / 2 + y * (1 / 6 + y * (1 / 24 + y * (1 / 120 + y * (1 / 720 + y * (1 / 5040)))))))
    return tl.where(tl.abs(y) < 0.35, series, tl.exp2(y * LOG2_E) - 1.0)


@triton.jit
def log_one_more(z):
    """log(1 + z), likewise."""
    s = z / (2.0 + z)
    square = s * s
    series = 2.0 * s * (1.0 + square * (1 / 3 + square * (1 / 5 + square * (1 / 7 + square * (1 / 9)))))
    return tl.where(tl.abs(z) < 0.3, series, tl.log2(1.0 + z) * LN2)


@triton.jit
def capped(x):
    """At most 1; a NaN stays one, which a card's own minimum would make 1."""
    return tl.minimum(x, 1.0, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def with_reasons(top, total, rows, times, k, WARM: tl.constexpr):
    """Largest reason and sum, with a tuple of more, each so many times; total is a multiple of exp(top/γ), or of 1
    where WARM. Together, reasons share the exponentials of the sum so far and of 0."""
    higher = top
    for i in tl.static_range(len(rows)):
        higher = tl.maximum(higher, rows[i])
    if WARM:
        for i in tl.static_range(len(rows)):
            total += times[i] * less_one(rows[i] * k * LN2)
    else:
        none = tl.exp2(-higher * k)
        total *= tl.exp2((top - higher) * k)
        for i in tl.static_range(len(rows)):
            total = tl.fma(tl.exp2((rows[i] - higher) * k) - none, times[i], total)
    return higher, total


@triton.jit
def summed(top, total, k, unit, WARM: tl.constexpr):
    """The soft-or, and `inverse`."""
    none = tl.exp2(-top * k)
    if WARM:
        rest = (total - less_one(top * k * LN2)) * none
        value = top + unit * LOG2_E * log_one_more(rest)
    else:
        rest = total - (1.0 - none)
        value = tl.where(rest == 0.0, top, top + unit * log2(1.0 + rest))
    return value, 1.0 / (1.0 + rest)


@triton.jit
def softor(rows, k, unit, WARM: tl.constexpr, times=1.0):
    """Of a tuple of reasons: their soft-or, but at most 1; and what `shares` needs, its top and `inverse`."""
    top = tl.maximum(rows[0], 0.0)
    for i in tl.static_range(1, len(rows)):
        top = tl.maximum(top, rows[i])
    total = tl.zeros_like(top)
    for i in tl.static_range(len(rows)):
        if WARM:
            total += less_one(rows[i] * k * LN2)
        else:
            total += tl.exp2((rows[i] - top) * k) - tl.exp2(-top * k)
    value, inverse = summed(top, total * times, k, unit, WARM)
    return tl.minimum(value, 1.0, propagate_nan=tl.PropagateNan.ALL), (top, inverse)


@triton.jit
def shares(g, rows, of, k, times=1.0):
    """Gradients of the reasons of a soft-or whose gradient is g, which passes the cap unchanged."""
    found = ()
    for i in tl.static_range(len(rows)):
        found += (g * of[1] * times * tl.exp2((rows[i] - of[0]) * k),)
    return found
