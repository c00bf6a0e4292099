"""These tests run the kernels: on a card where there is one, else in Triton's interpreter.

The interpreter must be asked for before kernels are imported, so they have a process of their own:
`TRITON_INTERPRET=1 pytest tests/kernels/values`, as `make test` does.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import triton

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
    from triton.runtime import interpreter

    patched = set()

    def call(self, *arguments, **constants):
        if triton.language not in self.fn.__globals__.values() and self.fn not in patched:
            interpreter._patch_lang(self.fn)
            patched.add(self.fn)
        return self.rewrite()(*arguments, **constants)

    interpreter.InterpretedFunction.__call__ = call
    options = interpreter.interpreter_builder.options
    interpreter.interpreter_builder.options = replace(options, sanitize_overflow=False)


if INTERPRETED:
    _quicken()
