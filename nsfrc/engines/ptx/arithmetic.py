"""What instructions compute, on arrays over threads. Every result is rounded as PTX defines it.

`ex2.approx`, `lg2.approx`, `rcp.approx` and `div.full` may be off by a unit or two in the last place on a card; here
they are the float nearest to what the host's own functions give.
"""

from __future__ import annotations

from typing import Any

import numpy as np

u1, u2, u4, u8 = np.uint8, np.uint16, np.uint32, np.uint64
i2, i4, i8 = np.int16, np.int32, np.int64
f4, f8 = np.float32, np.float64
Array = Any  # a numpy array over threads, or a scalar of one of these types

LOW = np.int64(0x1FFFFFFF)  # bits of a float64 that a float32 does not have
HALF = np.int64(0x10000000)
SMALLEST = f8(2.0**-126)
SUBNORMAL = u4(0x00FFFFFF)
SIGN = u4(0x80000000)
ONE = u4(1)

some = np.count_nonzero  # whether any of an array is true: far quicker than .any() on small ones


def spread(x: Array, threads: int) -> np.ndarray:
    """A value for every thread; constants are repeated."""
    return x if isinstance(x, np.ndarray) and x.ndim else np.full(threads, x)


def flush(x: Array) -> Array:
    """Subnormal numbers become zeros of the same sign (`.ftz`)."""
    bits = x.view(u4)
    subnormal = (bits << ONE) - ONE < SUBNORMAL  # the double of zero, less one, is the largest of all
    return np.where(subnormal, bits & SIGN, bits).view(f4) if some(subnormal) else x


def fma(a: Array, b: Array, c: Array, flushed: bool) -> Array:
    """a·b + c, rounded once. The product is exact in float64; where its sum with c, already rounded, lies half-way
    between two float32, the bits that it lost decide."""
    product, third = np.multiply(a, b, dtype=f8), np.asarray(c, f8)
    total = product + third
    halfway = (total.view(i8) & LOW) == HALF
    if some(halfway) or (not flushed and some(np.abs(total) < SMALLEST)):
        total = _to_odd(total, product, third)
    return np.asarray(total, f4)


def _to_odd(total: Array, a: Array, b: Array) -> Array:
    """A rounded sum with its last bit set where rounding lost something: rounding again is then rounding once."""
    part = total - a
    lost = (a - (total - part)) + (b - part)
    bits = np.asarray(total).view(i8)
    away = (lost > 0) == (total > 0)
    odd = np.where(bits & 1, bits, bits + np.where(away, 1, -1))
    return np.where((lost != 0) & np.isfinite(total), odd, bits).view(f8)


def shift_left(x: Array, by: Array, bits: int) -> Array:
    kind = x.dtype.type
    return np.where(by >= bits, kind(0), x << np.minimum(by, bits - 1).astype(kind))


def shift_right(x: Array, by: Array, bits: int) -> Array:
    """Of a signed number the sign is repeated."""
    kind = x.dtype.type
    moved = x >> np.minimum(by, bits - 1).astype(kind)
    return moved if x.dtype.kind == "i" else np.where(by >= bits, kind(0), moved)


def bit_field(x: Array, position: int, length: int, signed: bool) -> Array:
    """Bits position … position + length - 1 of x, as far as it has them. x: uint32 or uint64."""
    kind = x.dtype.type
    length = min(length, 8 * x.dtype.itemsize - position)
    if length <= 0:
        assert position < 8 * x.dtype.itemsize, "a field that begins beyond the number"
        return np.zeros_like(x)
    found = (x >> kind(position)) & kind((1 << length) - 1)
    if not signed:
        return found
    top = kind(1 << (length - 1))
    return (found ^ top) - top


def permute_bytes(a: Array, b: Array, selector: int) -> Array:
    """prmt: every byte of the result is one of the eight bytes of a and b, or its sign."""
    pool = [(x >> u4(8 * i)) & u4(255) for x in (a, b) for i in range(4)]
    result = u4(0)
    for i in range(4):
        choice = selector >> (4 * i) & 15
        byte = pool[choice & 7]
        if choice & 8:
            byte = np.where(byte & u4(128), u4(255), u4(0))
        result = result | byte << u4(8 * i)
    return result


def shuffled_lanes(lane: np.ndarray, mode: str, by: Array, clamp: int) -> np.ndarray:
    """The lane that each lane takes its value from; its own where there is none."""
    segment = clamp >> 8 & 31
    last = (lane & segment) | (clamp & 31 & ~segment)
    by = np.asarray(by).astype(i8)
    if mode == "up":
        source = lane - by
        return np.where(source >= last, source, lane)
    source = {"bfly": lane ^ by, "down": lane + by, "idx": (lane & segment) | (by & ~segment & 31)}[mode]
    return np.where(source <= last, source, lane)
