"""How images are brought to the size of a perception: with bars beside them, or stretched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from nsfrc import perception
from nsfrc.errors import NsfrcError
from nsfrc.inference import images
from nsfrc.inference.folders import folder
from nsfrc.inference.images import prepare, read
from nsfrc.inference.predictor import Predictor
from nsfrc.inference.report_thumbnail import thumbnail
from nsfrc.inference.stream import Reading, stream
from nsfrc.perception.base import Fit
from nsfrc.perception.slot_attention import SlotAttention
from nsfrc.perception.yolo_clevr import YoloClevr
from nsfrc.pipelines import pipeline
from tests.inference.support import DIMENSIONS, ONE

SIZE = (20, 40)
RED, BLUE = (255, 0, 0), (0, 0, 255)


def halves(width: int, height: int) -> Image.Image:
    """Red on the left, blue on the right."""
    image = Image.new("RGB", (width, height), BLUE)
    image.paste(RED, (0, 0, width // 2, height))
    return image


@pytest.mark.parametrize(("width", "height"), [(80, 40), (40, 80), (200, 4), (4, 200), (6, 6), (40, 20)])
def test_stretched_images_fill_the_frame(width: int, height: int, tmp_path: Path) -> None:
    halves(width, height).save(tmp_path / "a.png")
    picture = read(tmp_path / "a.png", SIZE, "stretch")
    assert picture.pixels.shape == (*SIZE, 3)
    assert (picture.width, picture.height, picture.inner) == (width, height, (0, 0, 1, 1))
    assert picture.box(0.1, 0.2, 0.3, 0.4) == (0.1, 0.2, 0.3, 0.4)
    assert (picture.pixels[:, 0] == RED).all() and (picture.pixels[:, -1] == BLUE).all()


def test_stretching_is_anti_aliased() -> None:
    lines = np.zeros((90, 90, 3), np.uint8)
    lines[:, ::2] = 255
    pixels = prepare(Image.fromarray(lines), (30, 30), "stretch")[:, 1:-1].astype(int)
    assert (np.abs(pixels - 128) <= 30).all()


def test_a_turned_photograph_is_stretched_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[images.ORIENTATION] = 6
    halves(40, 80).transpose(Image.Transpose.ROTATE_90).save(tmp_path / "a.jpg", exif=exif, quality=95)
    picture = read(tmp_path / "a.jpg", SIZE, "stretch")
    assert (picture.width, picture.height) == (40, 80)
    assert picture.pixels[10, 3].tolist() == pytest.approx([254, 0, 0], abs=6)
    assert picture.pixels[10, 36].tolist() == pytest.approx([0, 0, 254], abs=6)


def test_a_thumbnail_has_the_proportions_of_the_original(tmp_path: Path) -> None:
    """Also where no copy was asked for, and only what perception was given is left."""
    halves(90, 30).save(tmp_path / "a.png")
    for side in (0, 240):
        small = thumbnail(read(tmp_path / "a.png", SIZE, "stretch", side))
        assert (small.width, small.height) == (90, 30)


class Corner(perception.Perception):
    """Every entry of every object is how blue the upper left corner of the image is."""

    dimensions = DIMENSIONS
    size = SIZE
    objects = 2
    identity = "corner"

    def __init__(self, fit: Fit) -> None:
        super().__init__()
        self.fit = fit

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images[:, 2, :1, :1].expand(-1, self.objects, len(self.dimensions))


@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize(("fit", "seen"), [("stretch", BLUE), ("letterbox", RED)])
def test_a_folder_is_read_as_perception_wants_it(fit: Fit, seen: tuple[int, ...], threads: int, tmp_path: Path) -> None:
    (tmp_path / "one.pl").write_text(ONE)
    (tmp_path / "images").mkdir()
    image = Image.new("RGB", (20, 20), RED)
    image.putpixel((0, 0), BLUE)  # in the corner when stretched, else beside a bar that is red as its edge is
    image.save(tmp_path / "images/a.png")
    pipe = pipeline(tmp_path / "one.pl", Corner(fit))
    (rows,) = stream(Predictor(pipe), folder(tmp_path / "images"), Reading(decoders=threads))
    assert rows[0].objects is not None
    assert rows[0].objects[0, 0] == pytest.approx(seen[2] / 255)


@pytest.mark.parametrize(("width", "height", "other"), [
    (480, 320, False), (100, 67, False), (320, 240, True), (320, 480, True), (1920, 1080, True),
])
def test_images_of_other_proportions_are_marked(width: int, height: int, other: bool, tmp_path: Path) -> None:
    (tmp_path / "one.pl").write_text(ONE)
    Image.new("RGB", (width, height), BLUE).save(tmp_path / "a.png")
    assert Corner.proportions is None and SlotAttention.proportions == YoloClevr.proportions == 1.5
    for wanted, marked in ((1.5, other), (None, False)):
        model = Corner("stretch")
        model.proportions = wanted
        (rows,) = stream(Predictor(pipeline(tmp_path / "one.pl", model)), folder(tmp_path / "a.png"))
        assert rows[0].doubts == (("not 3:2",) if marked else ())


def test_the_fit_of_a_users_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ("import torch\nclass Net(torch.nn.Module):\n    dimensions, size, fit = ('red',), (8, 8), {fit!r}\n"
              "    def __init__(self, objects):\n        super().__init__()\n        self.objects = objects\n"
              "    def forward(self, images):\n        return torch.zeros(len(images), self.objects, 1)\n")
    (tmp_path / "fitting.py").write_text(module.format(fit="stretch"))
    (tmp_path / "unfit.py").write_text(module.format(fit="squeeze"))
    monkeypatch.syspath_prepend(tmp_path)
    assert perception.create("fitting:Net", 2, trust=True).fit == "stretch"
    with pytest.raises(NsfrcError, match="needs `fit`, one of letterbox, stretch, grey_bars, filled, not 'squeeze'"):
        perception.create("unfit:Net", 2, trust=True)
