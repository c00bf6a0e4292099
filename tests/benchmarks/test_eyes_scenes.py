"""`benchmarks.eyes_scenes`: what is counted is what differs, under the kinds of things that it differs for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from nsfrc.benchmarks.eyes_scenes import compared, rows, table
from nsfrc.data.clevr.layouts import Entry
from nsfrc.data.clevr.making import CROWDED, hidden, scene
from nsfrc.data.clevr.outlines import boxes
from nsfrc.perception.attributes import CLEVR

DIMENSIONS = ("x1", "y1", "x2", "y2", "x", "y", "z", *CLEVR.values, "objectness")
ENTRY = Entry(Path("unused.png"), scene(CROWDED, 3, 0), "train")


def truth() -> torch.Tensor:
    """What a perfect detector says of the scene."""
    things = ENTRY.scene.things
    vectors = np.zeros((len(things) + 2, len(DIMENSIONS)), dtype=np.float32)
    vectors[: len(things), :4] = boxes(things, ENTRY.scene.camera)
    for row, thing in zip(vectors, things, strict=False):
        for value in (thing.shape, thing.size, thing.material, thing.color):
            row[DIMENSIONS.index(value)] = 1
        row[-1] = 1
    return torch.from_numpy(vectors)


def test_what_is_counted() -> None:
    whole = compared(truth(), DIMENSIONS, ENTRY)
    assert whole.right and whole.hidden == hidden(ENTRY.scene) > 0
    missed, misnamed, extra = truth(), truth(), truth()
    missed[1] = 0
    metal, rubber = (DIMENSIONS.index(value) for value in ("metal", "rubber"))
    misnamed[0, [metal, rubber]] = misnamed[0, [rubber, metal]]
    extra[-1] = extra[0]
    seen = [compared(vectors, DIMENSIONS, ENTRY) for vectors in (missed, misnamed, extra)]
    assert [[one.outcome for one in scene.things].count("missed") for scene in seen] == [1, 0, 0]
    assert [[one.outcome for one in scene.things].count("misnamed") for scene in seen] == [0, 1, 0]
    assert [scene.extra for scene in seen] == [0, 0, 1] and not any(scene.right for scene in seen)


def test_rows_are_of_the_things_that_they_name() -> None:
    missed = truth()
    missed[1] = 0
    thing = ENTRY.scene.things[1]
    made = rows([compared(vectors, DIMENSIONS, ENTRY) for vectors in (truth(), missed)], "yolo_clevr-n:12")
    found = {(row.about, row.value): row for row in made}
    whole = found["scenes", "all"]
    assert (whole.count, whole.right, whole.missed) == (2, 1, 1)
    for about in ("size", "material", "shape"):
        kind = [row for row in made if row.about == about]
        assert sum(row.count for row in kind) == 2 * len(ENTRY.scene.things)
        assert {row.value: row.missed for row in kind if row.missed} == {getattr(thing, about): 1}
    assert sum(row.count for row in made if row.about == "seen") == 2 * len(ENTRY.scene.things)
    assert table(made).splitlines()[2] == "| scenes all | 2 | 50.0 | 1 | 0 | 0 |"
