"""nsfrc: compiles Prolog programs about objects in images into fused forward reasoning."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers and editors; at run time `__getattr__` imports them
    from nsfrc.compiler.findings import check
    from nsfrc.errors import CompileError, Diagnostic, NsfrcError
    from nsfrc.inference.predictor import Predictor
    from nsfrc.inference.results import Results, infer
    from nsfrc.learning.api import learn
    from nsfrc.learning.results import Learnt
    from nsfrc.models.detections import Detections, detections
    from nsfrc.pipelines import Pipeline, pipeline
    from nsfrc.prediction import Prediction
    from nsfrc.program import Program, compile, load
    from nsfrc.reasoner import Reasoner
    from nsfrc.valuation import FactsConverter, neural_predicate, number

__version__ = "0.1.0"


class _Checkout:
    """Finds `nsfrc.benchmarks`, `.grammars`, `.kernels` and `.programs`, in a checkout folders beside this one."""

    root = Path(__file__).resolve().parent.parent
    names = frozenset(f"nsfrc.{folder}" for folder in ("benchmarks", "grammars", "kernels", "programs"))

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name not in cls.names:
            return None
        from importlib.util import spec_from_file_location

        folder = cls.root / name.removeprefix("nsfrc.")
        return spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])


if (_Checkout.root / "setup.py").exists() and (_Checkout.root / "grammars").is_dir():
    sys.meta_path.insert(0, _Checkout)

__all__ = [
    "CompileError", "Detections", "Diagnostic", "FactsConverter", "Learnt", "NsfrcError", "Pipeline", "Prediction",
    "Predictor", "Program", "Reasoner", "Results", "__version__", "check", "compile", "detections", "infer", "learn",
    "load", "neural_predicate", "number", "pipeline",
]

_PUBLIC = {
    "check": "nsfrc.compiler.findings",
    "compile": "nsfrc.program",
    "load": "nsfrc.program",
    "Program": "nsfrc.program",
    "Reasoner": "nsfrc.reasoner",
    "pipeline": "nsfrc.pipelines",
    "Pipeline": "nsfrc.pipelines",
    "Prediction": "nsfrc.prediction",
    "infer": "nsfrc.inference.results",
    "Results": "nsfrc.inference.results",
    "detections": "nsfrc.models.detections",
    "Detections": "nsfrc.models.detections",
    "Predictor": "nsfrc.inference.predictor",
    "learn": "nsfrc.learning.api",
    "Learnt": "nsfrc.learning.results",
    "FactsConverter": "nsfrc.valuation",
    "NsfrcError": "nsfrc.errors",
    "CompileError": "nsfrc.errors",
    "Diagnostic": "nsfrc.errors",
    "neural_predicate": "nsfrc.valuation",
    "number": "nsfrc.valuation",
}
# Modules that `import nsfrc` alone gives too, as `nsfrc.explain.explain`.
_MODULES = ("data", "distributed", "errors", "explain", "inference", "learning", "perception", "pipelines", "program",
            "ray", "reasoner", "training", "valuation")


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that `import nsfrc` costs nothing."""
    if name in _MODULES:
        return importlib.import_module(f"nsfrc.{name}")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'nsfrc' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC, *_MODULES})
