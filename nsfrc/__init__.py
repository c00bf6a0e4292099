"""nsfrc: compiles Prolog programs about objects in images into fused forward reasoning."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers and editors; at run time `__getattr__` imports them
    from nsfrc.errors import CompileError, Diagnostic, NsfrcError
    from nsfrc.pipelines import Pipeline, Prediction, pipeline
    from nsfrc.program import Program, compile, load
    from nsfrc.reasoner import Reasoner
    from nsfrc.valuation import FactsConverter, neural_predicate

__version__ = "0.1.0"

# In a checkout `nsfrc.benchmarks`, `.grammars`, `.kernels` and `.programs` are folders beside this one.
_root = Path(__file__).resolve().parent.parent
if (_root / "setup.py").exists() and (_root / "grammars").is_dir():
    __path__.append(str(_root))

__all__ = [
    "CompileError", "Diagnostic", "FactsConverter", "NsfrcError", "Pipeline", "Prediction", "Program", "Reasoner",
    "__version__", "compile", "load", "neural_predicate", "pipeline",
]

_PUBLIC = {
    "compile": "nsfrc.program",
    "load": "nsfrc.program",
    "Program": "nsfrc.program",
    "Reasoner": "nsfrc.reasoner",
    "pipeline": "nsfrc.pipelines",
    "Pipeline": "nsfrc.pipelines",
    "Prediction": "nsfrc.pipelines",
    "FactsConverter": "nsfrc.valuation",
    "NsfrcError": "nsfrc.errors",
    "CompileError": "nsfrc.errors",
    "Diagnostic": "nsfrc.errors",
    "neural_predicate": "nsfrc.valuation",
}
# Modules that `import nsfrc` alone gives too, as `nsfrc.explain.explain`.
_MODULES = ("data", "errors", "explain", "inference", "perception", "pipelines", "program", "reasoner", "training",
            "valuation")


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that `import nsfrc` costs nothing."""
    if name in _MODULES:
        return importlib.import_module(f"nsfrc.{name}")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'nsfrc' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC, *_MODULES})
