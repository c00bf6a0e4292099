"""Where perception says that objects are, for the report."""

from __future__ import annotations

import numpy as np
import torch

from nsfrc.data.clevr.making import free
from nsfrc.data.clevr.scenes import Scene, truth
from nsfrc.perception.base import Perception
from nsfrc.perception.camera import HEIGHT, WIDTH, Camera
from nsfrc.perception.slot_attention import SlotAttention


class Boxes(Perception):
    dimensions = ("objectness", "y1", "x1", "x2", "y2")

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images


class Nowhere(Boxes):
    dimensions = ("objectness", "x", "y", "z")


def test_objects_with_boxes_are_in_their_middles() -> None:
    vectors = np.array([[1.0, 0.2, 0.5, 0.7, 0.4], [0.5, 0.0, 0.0, 1.0, 0.5]])
    found = Boxes().places(vectors)
    assert found is not None and np.allclose(found, [[0.6, 0.3], [0.5, 0.25]])


def test_without_boxes_nothing_is_known() -> None:
    assert Nowhere().places(np.zeros((2, 4))) is None


def test_slots_are_where_the_camera_sees_them() -> None:
    model = SlotAttention(10, size=32)
    for index in range(5):
        made = free(0, index)
        usual = Scene(made.things, Camera())
        count = len(made.things)
        found = model.places(truth(usual, 10))
        assert found.shape == (10, 2)
        assert np.allclose(found[:count], usual.pixels[:, :2] / (WIDTH, HEIGHT), atol=1e-5)
        # The camera of the image stood elsewhere; its dots are off by less than a small thing is wide.
        off = np.abs(model.places(truth(made, 10))[:count] - made.pixels[:, :2] / (WIDTH, HEIGHT))
        assert off.max() < 0.08
