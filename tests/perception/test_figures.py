"""Signs of images that are not Kandinsky figures; figures never show them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nsfrc.data import kandinsky
from nsfrc.data.render import render
from nsfrc.inference.images import prepare, read
from nsfrc.perception.figures import doubts
from nsfrc.perception.yolo import Yolo
from nsfrc.perception.yolo_clevr import YoloClevr

EXAMPLES = Path(__file__).parents[2] / "examples"
FIGURES = sorted((EXAMPLES / "figures").rglob("*.png"))


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_figures_raise_no_doubts(path: Path) -> None:
    assert doubts(read(path, (160, 160)).pixels, False) == ()


@pytest.mark.parametrize("pattern", kandinsky.NAMES)
def test_made_figures_raise_no_doubts(pattern: str) -> None:
    for index in range(30):
        made = kandinsky.figure(pattern, seed=7, index=index).figure
        assert doubts(prepare(Image.fromarray(render(made)), (160, 160)), False) == ()


def test_grey_figures() -> None:
    assert FIGURES
    for path in FIGURES[:5]:
        grey = np.asarray(Image.open(path).convert("L").convert("RGB").resize((160, 160)))
        assert doubts(grey, False) == doubts(grey, True) == ("without colour",)


@pytest.mark.parametrize("shade", [0, 90, 140, 160, 255])
def test_grounds(shade: int) -> None:
    picture = np.full((160, 160, 3), shade, dtype=np.uint8)
    picture[0:60, 40:80] = 255, 0, 0  # what touches the border does not count
    assert doubts(picture, any_ground=False) == (("on a dark background",) if shade < 150 else ())
    assert doubts(picture, any_ground=True) == ()
    assert "without colour" not in doubts(np.full_like(picture, shade), False)  # an empty figure is one


def test_scenes_have_a_dark_ground_by_right() -> None:
    picture = np.full((128, 192, 3), 90, dtype=np.uint8)
    assert YoloClevr(4).doubts(picture, (300, 200)) == () and YoloClevr(4).doubts(picture, (300, 300)) == ("not 3:2",)
    assert Yolo(4).doubts(picture, (300, 200)) == ("on a dark background",)
    assert Yolo(4, looks="varied").doubts(picture, (300, 200)) == ()
