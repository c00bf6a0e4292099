"""These tests run the kernels: on a card where there is one, else in Triton's interpreter.

The interpreter must be asked for before kernels are imported, so they have a process of their own:
`TRITON_INTERPRET=1 pytest tests/kernels/values`, as `make test` does.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
from triton.language import core
from triton.runtime import interpreter

INTERPRETED = bool(triton.knobs.runtime.interpret)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not INTERPRETED and not torch.cuda.is_available():
        reason = "kernels run on a card, or with TRITON_INTERPRET=1 in the environment (make test does both suites)"
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


def _quicken() -> None:
    """Leave out what takes most of the interpreter's time.

    It patches triton.language at every call of a device function, which a launch has done already, but for functions
    that see only triton.language.core; and it does whole-number arithmetic twice to find overflows.
    """
    patched = set()

    def call(self, *arguments, **constants):
        if triton.language not in self.fn.__globals__.values() and self.fn not in patched:
            interpreter._patch_lang(self.fn)
            patched.add(self.fn)
        return self.rewrite()(*arguments, **constants)

    interpreter.InterpretedFunction.__call__ = call
    options = interpreter.interpreter_builder.options
    interpreter.interpreter_builder.options = replace(options, sanitize_overflow=False)


def _keep_types() -> None:
    """Work out a type's shape, name and numpy type once, not for every value of that type: two fifths of the time."""
    blocks: dict[tuple, dict] = {}
    numpy_types: dict[str, np.dtype] = {}
    make_block, numpy_type = core.block_type.__init__, interpreter._get_np_dtype
    of_scalars = core.tuple([]), core.constexpr(1)

    def new_block(self, element_ty, shape):
        key = element_ty.name, *(s.value if isinstance(s, core.constexpr) else s for s in shape)
        if key not in blocks:
            make_block(self, element_ty, shape)
            self.of_tensors = core.tuple([core.constexpr(s) for s in self.shape]), core.constexpr(self.numel)
            blocks[key] = dict(self.__dict__)
        self.__dict__.update(blocks[key])

    def new_tensor(self, handle, type):
        self.handle, self.type, self.dtype = handle, type, type.scalar
        self.shape, self.numel = type.of_tensors if type.is_block() else of_scalars

    def known_numpy_type(kind):
        name = kind.scalar.name
        if name not in numpy_types:
            numpy_types[name] = numpy_type(kind)
        return numpy_types[name]

    core.block_type.__init__, core.tensor.__init__ = new_block, new_tensor
    interpreter._get_np_dtype = known_numpy_type


if INTERPRETED:
    _quicken()
    _keep_types()
