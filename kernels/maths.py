"""Soft-or and its parts, and how rows of the workspace are read and written."""

from __future__ import annotations

import triton
import triton.language as tl

# Below every exponent, and finite, so that the difference of two is a number.
LOWEST = tl.constexpr(-1e30)
# Values this close to the maximum count as equal to it: in exact arithmetic they mostly are.
TIE = tl.constexpr(1.0 - 5e-7)
# More than any rank; float32 holds every whole number up to it.
NO_RANK = tl.constexpr(16777216.0)
# Triton's interpreter knows no machine code.
COMPILED = tl.constexpr(not triton.knobs.runtime.interpret)


@triton.jit
def power(x, n, BITS: tl.constexpr):
    """x^n for whole n ≥ 0 below 2^BITS, by squaring: x may be negative or 0."""
    result = tl.full(x.shape, 1.0, tl.float32)
    for bit in tl.static_range(BITS):
        result = tl.where((n >> bit) & 1 == 1, result * x, result)
        x = x * x
    return result


@triton.jit
def log2(x):
    """Of a normal number, off by 2^-22 at most, or by as much of the result: what a soft-or adds is that times γ·ln 2.

    One instruction. Triton's own logarithm is 34, for digits that are lost when it is added to an exponent.
    """
    if COMPILED:
        return tl.inline_asm_elementwise("lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)
    else:
        return tl.log2(x)


@triton.jit
def softor(a, b, k, unit):
    """γ·log(exp(a/γ) + exp(b/γ))."""
    return tl.maximum(a, b) + unit * log2(1.0 + tl.exp2(-tl.abs(a - b) * k))


@triton.jit
def shares(a, b, k):
    """Derivatives of softor(a, b) by a and by b, each exact to the last digits however small."""
    e = tl.exp2(-tl.abs(a - b) * k)
    large, small = 1.0 / (1.0 + e), e / (1.0 + e)
    return tl.where(a >= b, large, small), tl.where(a >= b, small, large)


@triton.jit
def rounded(x):
    """A product that is about to be summed over threads, rounded first.

    In a sum over threads each adds its partner's value to its own. Were its own product fused with that addition, and
    so not rounded while the partner's is, threads that hold one sum would differ in its last bit. Adding 0 takes up the
    multiplication (as an fma, so it costs nothing), and every value is what its partner sees of it.
    """
    return x + 0.0


@triton.jit
def two(table, place, ok, other):
    """Entries [n] of a table of two whole numbers each, in one load; `other` of both where not ok."""
    table = table.to(tl.pointer_type(tl.int64), bitcast=True)
    both = tl.load(table + place, mask=ok, other=other | other << 32)
    return both.to(tl.int32), (both >> 32).to(tl.int32)


@triton.jit
def four(table, place):
    """Entries [n] of a table of four whole numbers each, in one load. Without a mask: places must be in the table."""
    table += 4 * place
    if COMPILED:
        return tl.inline_asm_elementwise(
            "ld.global.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l", [table],
            (tl.int32, tl.int32, tl.int32, tl.int32), is_pure=True, pack=1,
        )
    else:
        return tl.load(table), tl.load(table + 1), tl.load(table + 2), tl.load(table + 3)


@triton.jit
def longest(count, ENTRIES: tl.constexpr):
    """Entries that a tile of segments goes through: known, or what memory says of the first segment."""
    if ENTRIES > 0:
        return ENTRIES
    else:
        return tl.load(count)


@triton.jit
def get(work, row, stride, ok, L: tl.constexpr):
    """Rows [n] of the workspace: [n, wide], 0 where not ok [n]."""
    return tl.load(work + row[:, None] * stride + tl.arange(0, L.wide)[None, :], mask=ok[:, None], other=0.0)


@triton.jit
def get_every(work, row, stride, L: tl.constexpr):
    """Rows [n] of the workspace, all of which there are: [n, wide]. Without a mask, a load needs no 0 to begin with."""
    return tl.load(work + row[:, None] * stride + tl.arange(0, L.wide)[None, :])


@triton.jit
def put(work, row, stride, ok, value, L: tl.constexpr):
    tl.store(work + row[:, None] * stride + tl.arange(0, L.wide)[None, :], value, mask=ok[:, None])


@triton.jit
def get_all(work, row, stride, L: tl.constexpr):
    """Rows [p, r] of the workspace: [p, r, wide]."""
    return tl.load(work + row[:, :, None] * stride + tl.arange(0, L.wide)[None, None, :])


@triton.jit
def get_row(work, row, stride, L: tl.constexpr):
    return tl.load(work + row * stride + tl.arange(0, L.wide))


@triton.jit
def put_row(work, row, stride, value, L: tl.constexpr):
    tl.store(work + row * stride + tl.arange(0, L.wide), value)


@triton.jit
def examples(first, batch, L: tl.constexpr):
    """Examples of a tile, and which of its lanes are examples; spare lanes repeat the last one."""
    column = first + tl.arange(0, L.wide)
    return tl.minimum(column, batch - 1).to(tl.int64), column < batch
