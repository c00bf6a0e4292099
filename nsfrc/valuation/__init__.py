"""The facts converter: object vectors → V0, through neural predicates that users may add to."""

from __future__ import annotations

from nsfrc.valuation.arguments import Attributes, Input, Objects
from nsfrc.valuation.facts import FactsConverter
from nsfrc.valuation.plugins import load_plugin
from nsfrc.valuation.registry import names, neural_predicate, number

__all__ = ["Attributes", "FactsConverter", "Input", "Objects", "load_plugin", "names", "neural_predicate", "number"]
