"""The CPU engine's own exp2, log2 and soft-or against numpy in float64, over all that they are defined for."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch
from numba import njit

from nsfrc.contexts import flushed_denormals
from nsfrc.engines.cpu import maths, native
from tests.engines.support import compile_text, valuations

GAMMA = np.float32(0.01)
K = np.float32(1 / (np.log(2) * 0.01))


def over(function, *columns):
    """A kernel's function for every row of numbers, in float32."""

    @njit(**maths.KERNEL)
    def loop(table, out):
        for i in range(len(out)):
            out[i] = row(table, i)

    row = {
        1: njit(**maths.KERNEL)(lambda t, i: function(t[0, i])),
        2: njit(**maths.KERNEL)(lambda t, i: function(t[0, i], t[1, i])),
    }[len(columns)]
    out = np.empty(len(columns[0]), np.float32)
    loop(np.array(columns, np.float32), out)
    return out.astype(np.float64)


def relative(mine, theirs):
    return np.abs(mine / theirs - 1).max()


def test_exp2():
    x = np.linspace(-126, 127, 20_001).astype(np.float32)
    assert relative(over(maths.exp2, x), np.exp2(x.astype(np.float64))) < 3e-7
    whole = np.arange(-126, 128, dtype=np.float32)
    assert np.array_equal(over(maths.exp2, whole), np.exp2(whole.astype(np.float64)))


def test_log2():
    x = np.exp2(np.linspace(-125.9, 127, 20_001)).astype(np.float32)
    assert np.abs(over(maths.log2, x) - np.log2(x.astype(np.float64))).max() < 8e-6
    near = np.linspace(0.9, 1.1, 4_000).astype(np.float32)
    assert np.abs(over(maths.log2, near) - np.log2(near.astype(np.float64))).max() < 2e-8
    assert over(maths.log2, np.ones(1, np.float32)) == 0


def pairs():
    values = np.linspace(0, 1, 101)
    a, b = np.meshgrid(values, np.concatenate([values, values[:-1] + 0.003]))
    return a.ravel().astype(np.float32), b.ravel().astype(np.float32)


def test_softor_and_its_derivative():
    a, b = pairs()
    wide = [x.astype(np.float64) for x in (a, b)]
    softor = njit(**maths.KERNEL)(lambda x, y: maths.softor(x, y, GAMMA, K))
    assert np.abs(over(softor, a, b) - 0.01 * np.logaddexp(wide[0] / 0.01, wide[1] / 0.01)).max() < 2e-7
    share = njit(**maths.KERNEL)(lambda x, y: maths.share_of_first(x, y, K))
    first, second = over(share, a, b), over(share, b, a)
    assert np.abs(first - 1 / (1 + np.exp((wide[1] - wide[0]) / 0.01))).max() < 2e-5
    assert np.abs(first + second - 1).max() < 2e-7


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_power(n):
    x = np.linspace(0, 1.5, 50).astype(np.float32)
    assert np.allclose(over(njit(**maths.KERNEL)(lambda v: maths.power(v, n)), x), x.astype(np.float64) ** n, rtol=1e-6)


# [x, its half in another float mode, its half after that]; volatile, so that nothing is moved past a change of mode.
HALVES = """
declare i32 @nsfrc_float_mode(i32)
define i64 @nsfrc_halves(i64 %address) {
  %numbers = inttoptr i64 %address to ptr
  %within = getelementptr float, ptr %numbers, i64 1
  %after = getelementptr float, ptr %numbers, i64 2
  %mode = call i32 @nsfrc_float_mode(i32 FLUSH)
  %x = load volatile float, ptr %numbers
  %half = fmul float %x, 0.5
  store volatile float %half, ptr %within
  %back = sub i32 0, %mode
  %other = call i32 @nsfrc_float_mode(i32 %back)
  %again = load volatile float, ptr %numbers
  %whole = fmul float %again, 0.5
  store volatile float %whole, ptr %after
  ret i64 0
}
"""


def test_the_processor_keeps_its_mode():
    """Numbers below 1e-38 are 0 between the two changes of mode and only there."""
    text = HALVES.replace("FLUSH", str(maths.FLUSH))
    address = native._engine(native._compile(text)).get_function_address("nsfrc_halves")
    numbers = np.array([1.2e-38, -1, -1], np.float32)
    ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(numbers.ctypes.data)
    assert numbers[2] > 0 and (numbers[1] == 0 or not native.ON_X86)


@pytest.mark.parametrize("semantics", ["", ":- semantics(paper)."])
def test_kernels_leave_the_mode_as_it_was(semantics):
    program = compile_text(f"{semantics}\n:- neural(p).\n:- target(q).\nq :- p.")
    V0 = valuations(program, 5).float().requires_grad_()
    program.reasoner("cpu")(V0).sum().backward()
    assert float(torch.tensor(1.2e-38) * 0.5) > 0


def test_torch_keeps_its_mode():
    """A training must not leave the process with numbers below 1e-38 taken for 0."""
    with flushed_denormals():
        assert float(torch.tensor(1.2e-38) * 0.5) == 0 or not native.ON_X86
        with flushed_denormals():
            pass
        assert float(torch.tensor(1.2e-38) * 0.5) == 0 or not native.ON_X86
    assert float(torch.tensor(1.2e-38) * 0.5) > 0
