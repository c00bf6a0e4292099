"""`benchmarks.eyes`: every kind of picture is what its row says, and what is counted is what differs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nsfrc.benchmarks.eyes import EyesRow, compared, table
from nsfrc.benchmarks.eyes_pictures import Group, groups
from nsfrc.data.figures import Figure
from nsfrc.data.kandinsky import truth
from nsfrc.data.looks import CONTRAST, GROUNDS, PALETTES, contrast
from nsfrc.data.rules import RULES

GROUPS = {f"{group.about} {group.value}": group for group in groups()}


@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
def test_pictures_are_the_same_every_time_and_have_the_label_they_say(group: Group) -> None:
    one, other = (list(group.pictures(2)) for _ in "ab")
    for first, again in zip(one, other, strict=True):
        assert first.pixels.dtype == np.uint8 and np.array_equal(first.pixels, again.pixels)
        assert first.shapes == again.shapes and bool(first.shapes) == (group.about != "nothing")
        if first.pattern is not None:
            assert RULES[first.pattern](first.shapes) == first.label


def test_reserved_palettes_are_shown_on_reserved_grounds() -> None:
    for name, palette in PALETTES.items():
        for picture in GROUPS[f"palette {name}"].pictures(4):
            ground = tuple(picture.pixels[0, 0].tolist())
            assert ground in GROUNDS.values() and min(contrast(color, ground) for color in palette) >= CONTRAST


def test_what_is_counted() -> None:
    picture = next(GROUPS["pattern twopairs"].pictures(1))
    right = torch.from_numpy(truth(Figure(picture.shapes), 6))
    assert compared(right, picture, True).right
    missed, misnamed, extra = right.clone(), right.clone(), right.clone()
    missed[1] = 0
    misnamed[0, 4:7] = misnamed[0, 4:7].roll(1)
    extra[4] = extra[0]
    seen = [compared(vectors, picture, None) for vectors in (missed, misnamed, extra)]
    assert [(one.missed, one.misnamed, one.extra) for one in seen] == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    assert not any(one.right for one in seen) and seen[0].objects == 4


def test_the_table() -> None:
    row = EyesRow("size", "0.1 to 0.2", True, 8, 6, 4, 3, 20, 1, 2, 3, "yolo-n:12")
    assert table([row]).splitlines()[-1] == "| size 0.1 to 0.2 * | 8 | 75.0 | 75.0 | 1 | 2 | 3 |"
