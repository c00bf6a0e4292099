"""exp2, log2 and soft-or for float32 lanes, written so that LLVM turns loops over them into vectors.

The polynomials were fitted to Chebyshev nodes; their largest relative errors are noted beside them.
A result enters a valuation multiplied by gamma, so an error of 2e-7 here is 2e-9 there at the default.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# No `reassoc`: exp2 rounds by adding and subtracting a large number, which that flag would cancel.
# Divisions that check for zero, as Python's do, would keep loops from becoming vectors.
KERNEL: dict[str, Any] = {
    "fastmath": {"contract", "nnan", "ninf", "nsz"}, "nogil": True, "error_model": "numpy",
}
# For kernels and what they call: no wrapper for calls from Python, which would take several times as long to compile as
# a function itself that is given whole tables, and no counting of references, as all memory is the caller's (`memory`).
INNER: dict[str, Any] = {**KERNEL, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
# For counting what may be NaN: sums in any order, and nothing else taken for granted.
COUNT: dict[str, Any] = {**INNER, "fastmath": {"reassoc"}}
RETURNS_ARRAY: dict[str, Any] = {**INNER, "inline": "always"}  # numba wants references counted to return an array alone

LOWEST = np.float32(-126.0)  # 2^-126 is the smallest normal float32
_ROUNDER = np.float32(12582912.0)  # 1.5 * 2^23: adding it leaves the nearest integer in the low bits

_I32 = ir.IntType(32)
FLUSH = 0x8040  # x86: results below 1e-38 are 0, and so are operands


def _two_floats(name):  # type: ignore[no-untyped-def]
    """An LLVM instruction on two floats. Python's max and min become conditional stores, which are slow."""

    @intrinsic
    def call(typingctx, a, b):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            real = ir.FloatType()
            function = builder.module.declare_intrinsic(name, [real], ir.FunctionType(real, [real, real]))
            return builder.call(function, args)

        return types.float32(types.float32, types.float32), codegen

    return call


larger = _two_floats("llvm.maxnum")
smaller = _two_floats("llvm.minnum")


@intrinsic
def _swap_float_mode(typingctx, extra):  # type: ignore[no-untyped-def]
    """Replace the processor's float mode: by `extra` added to it, or, if negative, by -extra. Returns the old.

    `native` knows how, by the processor.
    """

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kind = ir.FunctionType(_I32, [_I32])
        name = "nsfrc_float_mode"
        return builder.call(builder.module.globals.get(name) or ir.Function(builder.module, kind, name), args)

    return types.int32(types.int32), codegen


@njit(**INNER)
def flush_denormals():
    """Take numbers below 1e-38 for 0 from here on; returns the mode to restore. They are slow to compute with."""
    return _swap_float_mode(np.int32(FLUSH))


@njit(**INNER)
def restore(mode):
    _swap_float_mode(np.int32(-mode))


@intrinsic
def _scale(typingctx, fraction, rounded):  # type: ignore[no-untyped-def]
    """fraction * 2^n, where n is the integer in the low bits of `rounded`."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        exponent = builder.shl(builder.bitcast(args[1], _I32), ir.Constant(_I32, 23))
        return builder.bitcast(builder.add(builder.bitcast(args[0], _I32), exponent), ir.FloatType())

    return types.float32(types.float32, types.float32), codegen


@intrinsic
def _exponent(typingctx, x):  # type: ignore[no-untyped-def]
    """The e for which x = m * 2^e with m in [0.707, 1.414)."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        shifted = builder.sub(builder.bitcast(args[0], _I32), ir.Constant(_I32, 0x3F3504F3))
        return builder.sitofp(builder.ashr(shifted, ir.Constant(_I32, 23)), ir.FloatType())

    return types.float32(types.float32), codegen


@intrinsic
def _mantissa(typingctx, x):  # type: ignore[no-untyped-def]
    """The m for which x = m * 2^e with m in [0.707, 1.414)."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        bits = builder.bitcast(args[0], _I32)
        shifted = builder.sub(bits, ir.Constant(_I32, 0x3F3504F3))
        exponent = builder.and_(shifted, ir.Constant(_I32, -0x800000))
        return builder.bitcast(builder.sub(bits, exponent), ir.FloatType())

    return types.float32(types.float32), codegen


# 2^f = 1 + f·q(f) on [-0.5, 0.5], relative error 1.7e-7; exact at 0.
_E0, _E1, _E2, _E3, _E4 = (
    np.float32(c) for c in (0.6931471228599548, 0.24022351205348969, 0.05550500378012657,
                            0.009666245430707932, 0.001333353342488408)
)


@njit(**INNER)
def exp2(t):
    """2^t for t in [-126, 127]."""
    rounded = t + _ROUNDER
    f = t - (rounded - _ROUNDER)
    q = (((_E4 * f + _E3) * f + _E2) * f + _E1) * f + _E0
    return _scale(f * q + np.float32(1.0), rounded)


# log2(1 + f) = f·q(f) on [0.707 - 1, 1.414 - 1], relative error 2.6e-8.
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8 = (
    np.float32(c) for c in (1.4426950216293335, -0.7213473320007324, 0.48091062903404236, -0.3607036769390106,
                            0.28791624307632446, -0.23894494771957397, 0.21571584045886993,
                            -0.20726893842220306, 0.1258353739976883)
)


@njit(**INNER)
def log2(x):
    """Base-2 logarithm of a normal positive number."""
    f = _mantissa(x) - np.float32(1.0)
    q = (((_L8 * f + _L7) * f + _L6) * f + _L5) * f + _L4
    q = (((q * f + _L3) * f + _L2) * f + _L1) * f + _L0
    return _exponent(x) + f * q


# log(1 + e) = e·q(e) on [0, 1], relative error 3e-8.
_P0, _P1, _P2, _P3, _P4, _P5, _P6, _P7, _P8 = (
    np.float32(c) for c in (0.9999999403953552, -0.4999949336051941, 0.3331909477710724, -0.2484297752380371,
                            0.1910598874092102, -0.1366320699453354, 0.07822549343109131,
                            -0.029504956677556038, 0.005232624243944883)
)


@njit(**INNER)
def softor(a, b, gamma, k):
    """gamma·log(exp(a/gamma) + exp(b/gamma)); k is log2(e)/gamma."""
    top = larger(a, b)
    e = exp2(larger((smaller(a, b) - top) * k, LOWEST))
    q = (((_P8 * e + _P7) * e + _P6) * e + _P5) * e + _P4
    q = (((q * e + _P3) * e + _P2) * e + _P1) * e + _P0
    return top + gamma * e * q


@njit(**INNER)
def share_of_first(a, b, k):
    """Derivative of softor by its first argument: exp(a/gamma) / (exp(a/gamma) + exp(b/gamma))."""
    e = exp2(larger((smaller(a, b) - larger(a, b)) * k, LOWEST))
    small = e / (np.float32(1.0) + e)
    return np.float32(1.0) - small if a >= b else small


@njit(**INNER)
def power(x, n):
    """x^n for a whole n ≥ 0."""
    result = np.float32(1.0)
    for _ in range(n):
        result *= x
    return result
