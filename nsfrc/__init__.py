"""nsfrc: compiles Prolog programs about objects in images into fused forward reasoning."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

# In a checkout `nsfrc.benchmarks`, `.grammars`, `.kernels` and `.programs` are folders beside this one.
_root = Path(__file__).resolve().parent.parent
if (_root / "setup.py").exists() and (_root / "grammars").is_dir():
    __path__.append(str(_root))

_PUBLIC = {
    "compile": "nsfrc.program",
    "load": "nsfrc.program",
    "Program": "nsfrc.program",
    "pipeline": "nsfrc.pipelines",
    "NsfrcError": "nsfrc.errors",
    "CompileError": "nsfrc.errors",
    "Diagnostic": "nsfrc.errors",
    "neural_predicate": "nsfrc.valuation",
}

__all__ = [*_PUBLIC, "__version__"]


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that `import nsfrc` costs nothing."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'nsfrc' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)
