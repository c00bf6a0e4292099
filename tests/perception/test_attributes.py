"""Classes are combinations of attributes, in the order that figures and weights use."""

from __future__ import annotations

import torch

from nsfrc.data import kandinsky
from nsfrc.data.figures import COLORS, SHAPES
from nsfrc.perception.attributes import KANDINSKY, Attributes

THREE = Attributes((("a", "b"), ("p", "q", "r"), ("x", "y")))


def test_kandinsky_is_what_the_figures_have() -> None:
    assert KANDINSKY.groups == (COLORS, SHAPES)
    assert KANDINSKY.classes[5] == "yellow triangle"
    assert ("x1", "y1", "x2", "y2", *KANDINSKY.values, "objectness") == kandinsky.DIMENSIONS


def test_index_finds_the_class() -> None:
    for attributes in (KANDINSKY, THREE):
        assert [attributes.index(*name.split()) for name in attributes.classes] == list(range(len(attributes.classes)))


def test_marginals_sum_the_classes_that_have_a_value() -> None:
    for attributes in (KANDINSKY, THREE, Attributes((("only", "two"),))):
        likely = torch.rand(2, 5, len(attributes.classes), dtype=torch.float64)
        found = attributes.marginals(likely)
        for column, value in enumerate(attributes.values):
            having = [i for i, name in enumerate(attributes.classes) if value in name.split()]
            assert torch.allclose(found[..., column], likely[..., having].sum(-1))
