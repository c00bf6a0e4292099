"""Classes of scenes checked with the shipped programs: the target that the program values most must be the label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsfrc.data import agreement
from nsfrc.data.clevr.scenes import DIMENSIONS, Scene, truth


def scores(name: str, scenes: Sequence[Scene]) -> np.ndarray:
    """The value of each class's target on the true things of each scene of a set: [scenes, classes]."""
    return agreement.values(
        name.replace("-", "_"), DIMENSIONS, lambda objects: np.stack([truth(scene, objects) for scene in scenes])
    )


def check(name: str, scenes: Sequence[Scene], indexes: Sequence[int]) -> None:
    """Raise when the program disagrees with the label of a scene; `indexes` are the scenes' numbers."""
    for index, scene, row in zip(indexes, scenes, scores(name, scenes), strict=True):
        if row.argmax() != scene.label:
            said = ", ".join(f"{score:.3f}" for score in row)
            raise agreement.disagreement(
                f"scene {index} of {name} is labelled {scene.label}, but the program values its classes {said}"
            )
