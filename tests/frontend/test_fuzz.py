"""A small share of `benchmarks/fuzz.py`: a program or diagnostics, never anything else."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load_fuzz() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"
    spec = importlib.util.spec_from_file_location("fuzz", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz"] = module
    spec.loader.exec_module(module)
    return module


def test_fuzz() -> None:
    outcomes, failures = load_fuzz().run(1500, seed=1, progress=False)
    assert not failures, f"{failures[0][0]}\n{failures[0][1]!r}"
    assert outcomes["program"] and outcomes["refused"]
