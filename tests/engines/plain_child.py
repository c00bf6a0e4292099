"""The child process of `test_plain`: the CPU engine's kernels run as the Python they are written in.

    NUMBA_DISABLE_JIT=1 python -m tests.engines.plain_child

Only what stands for single instructions has no Python of its own and is written here once more. An index that is out
of range, which compiled code would read without a word, is an IndexError here. Prints the name of each case that
agrees with the reference.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import torch
from numba.core import config

from nsfrc.engines.cpu import maths, memory


def bits(x: np.float32) -> int:
    return int(np.float32(x).view(np.int32))


def number(pattern: int) -> np.float32:
    return np.uint32(pattern & 0xFFFFFFFF).view(np.float32)


def above(x: np.float32) -> int:
    """The bits of x less those of the square root of a half."""
    return bits(x) - 0x3F3504F3


def array_at(dtype: type) -> Callable[..., np.ndarray]:
    """As `memory._array_at`."""

    def at(address: int, *shape: int) -> np.ndarray:
        size = np.dtype(dtype).itemsize * int(np.prod(shape))
        if not size:
            return np.empty(shape, dtype)
        return np.frombuffer((ctypes.c_char * size).from_address(int(address)), dtype).reshape(shape)

    return at


rooms: dict[int, object] = {}


def allocate(size: int) -> int:
    room = ctypes.create_string_buffer(int(size))
    rooms[ctypes.addressof(room)] = room
    return ctypes.addressof(room)


MEMORY = {
    **{name: array_at(dtype) for name, dtype in (
        ("ints", np.int64), ("counts", np.int64), ("indices", np.uint32), ("flags", np.bool_), ("floats", np.float32),
        ("table", np.float32), ("stack", np.float32), ("doubles", np.float64))},
    "cell": lambda: allocate(8),
    "allocate": allocate,
    "release": lambda address: rooms.pop(address),
    "call_at": lambda address, number: ctypes.CFUNCTYPE(None, ctypes.c_int64)(int(address))(int(number)),
}
INSTRUCTIONS = {
    "larger": np.maximum,
    "smaller": np.minimum,
    "_swap_float_mode": lambda extra: 0,  # the mode is a matter of speed
    "_scale": lambda fraction, rounded: number(bits(fraction) + (bits(rounded) << 23)),
    "_exponent": lambda x: np.float32(above(x) >> 23),
    "_mantissa": lambda x: number(bits(x) - (above(x) & -0x800000)),
}

PROGRAM = """
:- semantics(paper).
:- type(object, slots(3)).
:- type(image, [img]).
:- type(color, [red, blue]).
:- neural(color(object, color)).
:- neural(near(object, object)).
:- pred(same(object, object)).
:- pred(far(object, object)).
:- pred(idle(color)).
:- pred(kp(image)).
:- target(kp(img)).
idle(red).
same(X, Y) :- color(X, Z), color(Y, Z).
same(X, Y) :- near(X, Y).
far(X, Y) :- same(X, Y), near(Y, X), color(X, red), color(X, red).
kp(img) :- same(A, B), same(B, C), near(A, C), far(A, C), idle(red).
"""

# Batch, rows of weights (None: hard) and options, of which gamma 0.004 is one whose exponents need their maximum.
CASES = {
    "one example": (1, None, {}),
    "few examples, soft": (3, 2, {}),
    "full vectors": (9, None, {}),
    "full vectors, soft, over the batch": (6, 2, {"normalise": "batch"}),
    "few examples, over the batch": (2, None, {"normalise": "batch"}),
    "in parts, over the batch": (17, None, {"normalise": "batch"}),
    "in parts, soft, over the batch": (17, 2, {"normalise": "batch"}),
    "targets only": (5, None, {"outputs": "targets"}),
    "neural atoms only": (5, 2, {"outputs": "targets", "inputs": "neural"}),
    "small gamma": (5, None, {"gamma": 0.004}),
    "small gamma, few examples": (2, None, {"gamma": 0.004}),
    "false is likely": (5, None, {"gamma": 0.002}),
    "false is likely, two clauses": (5, None, {"gamma": 0.002}),
}
ONE_CLAUSE = """
:- semantics(paper).
:- type(object, slots(3)).
:- type(color, [red, blue]).
:- neural(color(object, color)).
:- target(kp).
kp :- color(A, red), color(B, blue).
"""
# With a value above 1 the other clause has a large Z, so that next to nothing of it is left for atoms it does not head.
TWO_CLAUSES = f"{ONE_CLAUSE}:- neural(lit(object)).\n:- target(bright(obj1)).\nbright(O) :- lit(O)."


def stand_in() -> None:
    """Put Python in the place of single instructions, before anything imports them."""
    for module, names in ((maths, INSTRUCTIONS), (memory, MEMORY)):
        for name, plain in names.items():
            setattr(module, name, plain)


def main() -> None:
    assert config.DISABLE_JIT, "start this with NUMBA_DISABLE_JIT=1"
    stand_in()
    from nsfrc.engines.cpu import calls, seats
    from tests.engines.support import compile_text, valuations
    from tests.engines.test_engines import agree

    program = compile_text(PROGRAM)
    for name, (batch, mixtures, options) in CASES.items():
        generator = torch.Generator().manual_seed(0)
        W = None if mixtures is None else torch.randn(
            mixtures, program.plan.C, generator=generator, dtype=torch.float64)
        gradients = 5e-4 if "gamma" in options else 1e-4
        if name.startswith("false is likely"):
            program = compile_text(TWO_CLAUSES if "two" in name else ONE_CLAUSE)
        V0 = valuations(program, batch)
        parts = 2 if name.startswith("in parts") else 1
        torch.set_num_threads(parts)
        calls.WORTH_A_THREAD, seats.CHUNK = 1, 4
        assert len(calls._split_whole(batch, 1e9)) == parts
        if name.startswith("false is likely"):
            V0[:, 0] = 0.98
        if "two" in name:
            V0[:, program.index("lit(obj1)")] = 1.7
        agree(program, V0, W, gradients, steps=3, **options)
        print(name)


if __name__ == "__main__":
    main()
