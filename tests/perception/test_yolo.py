"""The detector as perception: from what the network says to object vectors."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from nsfrc.errors import NsfrcError
from nsfrc.perception import yolo_network
from nsfrc.perception.attributes import KANDINSKY
from nsfrc.perception.yolo import Yolo
from nsfrc.perception.yolo_network import BINS, Cells
from tests.perception.support import random_yolo, stored

SIDE = 64


def pictures(count: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(count, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(seed))


def planned(objects: list[tuple[int, tuple[float, ...], str, float]]) -> Cells:
    """One image of 4 × 4 cells of 16 pixels: (cell, pixels to left top right bottom, class, its logit) are there."""
    sides, classes = torch.full((1, 4 * BINS, 16), -30.0), torch.full((1, 9, 16), -8.0)
    sides[0, ::BINS] = 30.0
    for cell, away, name, logit in objects:
        classes[0, KANDINSKY.classes.index(name), cell] = logit
        for side, pixels in enumerate(away):
            sides[0, side * BINS : (side + 1) * BINS, cell] = -30.0
            sides[0, side * BINS + int(pixels / 16), cell] = 30.0
    y, x = torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")
    centres = torch.stack([x.flatten(), y.flatten()], -1) * 16.0 + 8
    return Cells(sides, classes, centres, torch.full((16,), 16.0))


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Yolo:
    """Three detections: a blue circle, the same again but less sure, and a yellow square."""
    found = planned([
        (5, (16, 16, 16, 16), "blue circle", 3.0),
        (6, (32, 16, 0, 16), "blue circle", 2.0),
        (15, (0, 0, 0, 0), "red triangle", -3.0),
        (8, (0, 16, 16, 16), "yellow square", 2.5),
    ])
    monkeypatch.setattr(yolo_network, "cells", lambda network, images: found)
    return Yolo(3, size=(SIDE, SIDE), calibration=(2.0, -1.0))


def test_further_objects_are_counted(model: Yolo) -> None:
    """Only those that are sure, and no second look at one that has a row."""
    whole = model(torch.zeros(1, 3, SIDE, SIDE))
    assert model.further is not None and model.further.tolist() == [0]
    for objects, further in ((2, 0), (1, 1)):
        model.objects = objects
        assert torch.equal(model(torch.zeros(1, 3, SIDE, SIDE)), whole[:, :objects])
        assert model.further.tolist() == [further]
    model.calibration = (2.0, -9.0)  # nothing is sure
    model(torch.zeros(1, 3, SIDE, SIDE))
    assert model.further.tolist() == [0]


def test_detections_become_vectors(model: Yolo) -> None:
    vectors = model(torch.zeros(1, 3, SIDE, SIDE))[0]
    rest = torch.sigmoid(torch.tensor(-8.0))
    for row, box, logit, color, shape in (
        (vectors[0], (8, 8, 40, 40), 3.0, "blue", "circle"),
        (vectors[1], (8, 24, 24, 56), 2.5, "yellow", "square"),
    ):
        score = torch.sigmoid(torch.tensor(logit))
        assert row[:4].tolist() == pytest.approx([value / SIDE for value in box], abs=1e-5)
        assert row[model.column(color)].item() == pytest.approx(((score + 2 * rest) / (score + 8 * rest)).item())
        assert row[model.column(shape)].item() == pytest.approx(((score + 2 * rest) / (score + 8 * rest)).item())
        assert row[4:7].sum().item() == pytest.approx(1, abs=1e-5)
        assert row[7:10].sum().item() == pytest.approx(1, abs=1e-5)
        assert row[10].item() == pytest.approx(torch.sigmoid(torch.tensor(2 * logit - 1)).item(), abs=1e-6)
    assert vectors[2].tolist() == [0.0] * 11, "the second look at the circle, and what is below the floor"


@pytest.mark.parametrize(("away", "rows"), [((16, 16, 16, 16), 1), ((0, 16, 16, 16), 2)])
def test_one_object_seen_as_two_kinds(away: tuple[float, ...], rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes that share a third of what they cover are one object; those that only touch are two."""
    found = planned([(5, (16, 16, 16, 16), "blue circle", 3.0), (6, away, "red square", 2.0)])
    monkeypatch.setattr(yolo_network, "cells", lambda network, images: found)
    vectors = Yolo(3, size=(SIDE, SIDE))(torch.zeros(1, 3, SIDE, SIDE))[0]
    assert int((vectors[:, -1] > 0).sum()) == rows


@pytest.mark.parametrize("objects", [1, 2, 5, 40])
def test_as_many_rows_as_asked_for(model: Yolo, objects: int) -> None:
    all_three = model(torch.zeros(1, 3, SIDE, SIDE))
    model.objects = objects
    vectors = model(torch.zeros(1, 3, SIDE, SIDE))
    assert vectors.shape == (1, objects, 11)
    assert torch.equal(vectors[:, :2], all_three[:, : min(2, objects)])
    assert not vectors[:, 2:].any()


def test_of_a_crowd_every_object_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 objects, each seen by 16 cells of 48 × 48, and by one of them best; some are less sure than others."""
    side, cells, wide = 192, 48, 6
    y, x = (one.flatten() for one in torch.meshgrid(torch.arange(cells), torch.arange(cells), indexing="ij"))
    inside = (x % wide < 4) & (y % wide < 4)
    owner = y // wide * (cells // wide) + x // wide
    classes = torch.full((1, 9, cells**2), -8.0)
    best = (x % wide == 1) & (y % wide == 1)
    classes[0, 4, inside] = 1.0 + owner[inside] / 16 + best[inside]
    sides = torch.full((1, 4 * BINS, cells**2), -30.0)
    for place, away in enumerate((x % wide, y % wide, 4 - x % wide, 4 - y % wide)):
        sides[0, place * BINS + away.clamp(0, BINS - 1), torch.arange(cells**2)] = 30.0
    found = Cells(sides, classes, torch.stack([x, y], -1) * 4.0, torch.full((cells**2,), 4.0))
    monkeypatch.setattr(yolo_network, "cells", lambda network, images: found)
    vectors = Yolo(64, size=(side, side))(torch.zeros(1, 3, side, side))[0]
    corners = {(round(x1 * side), round(y1 * side)) for x1, y1, *_, sure in vectors.tolist() if sure > 0.5}
    assert corners == {(24 * i, 24 * j) for i in range(8) for j in range(8)}


def test_cells_are_decoded_as_ultralytics_does() -> None:
    model, images = random_yolo(), pictures(2)
    with torch.no_grad():
        found = yolo_network.cells(model.network, images)
        every = torch.arange(len(found.strides)).expand(2, -1)
        corners = yolo_network.boxes(found, every)
        expected = model.network(images)[0].transpose(1, 2)
    centre, size = expected[..., :2], expected[..., 2:4]
    assert torch.allclose(corners, torch.cat([centre - size / 2, centre + size / 2], -1), atol=1e-3)
    assert torch.allclose(found.classes.sigmoid().transpose(1, 2), expected[..., 4:], atol=1e-6)


def test_surest_first_and_within_bounds() -> None:
    with torch.no_grad():
        vectors = random_yolo(objects=12)(pictures(4))
    objectness = vectors[..., -1]
    assert (objectness[:, :3] > 0).all(), "random weights ought to find something"
    assert (objectness[:, :-1] >= objectness[:, 1:]).all()
    assert vectors.min() >= 0 and vectors.max() <= 1


def test_a_row_does_not_depend_on_the_others() -> None:
    model, images = random_yolo(), pictures(5)
    with torch.no_grad():
        together, alone = model(images), torch.cat([model(image.unsqueeze(0)) for image in images])
        others = model(torch.cat([pictures(2, seed=9), images[2:]]))
    assert torch.allclose(together, alone, atol=1e-4)
    assert torch.equal(together[2:], others[2:])


def test_no_images() -> None:
    assert random_yolo()(torch.zeros(0, 3, SIDE, SIDE)).shape == (0, 6, 11)


def test_gradients_reach_the_images() -> None:
    images = pictures(2).requires_grad_()
    vectors = random_yolo()(images)
    for part in (vectors[..., :4], vectors[..., 4:7], vectors[..., -1]):
        gradient, = torch.autograd.grad((part * torch.rand_like(part)).sum(), images, retain_graph=True)
        assert torch.isfinite(gradient).all() and (gradient[0] != 0).any() and (gradient[1] != 0).any()


@pytest.mark.parametrize("images", [torch.zeros(3, 64, 64), torch.zeros(1, 1, 64, 64), torch.zeros(1, 3, 64, 60),
                                    torch.zeros(1, 3, 0, 64), torch.zeros(1, 3, 64, 64, dtype=torch.uint8),
                                    torch.zeros(1, 3, 64, 64, dtype=torch.float64)])
def test_other_images_are_refused(images: torch.Tensor) -> None:
    with pytest.raises(NsfrcError, match="images are"):
        random_yolo()(images)


def test_a_stored_model_sees_the_same(tmp_path: Path) -> None:
    model = random_yolo()
    model.calibration = (1.5, -0.25)
    loaded = Yolo.build(4, stored(model, tmp_path / "w.safetensors"))
    assert loaded.network.is_fused() and not any(p.requires_grad for p in loaded.parameters())
    assert (loaded.size, loaded.objects, loaded.calibration) == ((64, 64), 4, (1.5, -0.25))
    with torch.no_grad():
        assert torch.allclose(loaded(pictures(3)), model(pictures(3))[:, :4], atol=1e-3)


def test_identity_follows_the_weights(tmp_path: Path) -> None:
    model = random_yolo()
    first = Yolo.build(4, stored(model, tmp_path / "a"))
    same = Yolo.build(5, stored(model, tmp_path / "b", note="other header"))
    with torch.no_grad():
        next(model.parameters()).add_(1)
    other = Yolo.build(4, stored(model, tmp_path / "c"))
    assert first.identity.startswith("yolo-n:") and first.identity == same.identity != other.identity


@pytest.mark.parametrize(("changes", "message"), [
    ({"model": "slots"}, "does not hold a yolo"),
    ({"variant": "x"}, "is not valid"),
    ({"size": 50}, "is not valid"),
    ({"calibration": [0, 1]}, "is not valid"),
    ({"calibration": 3}, "is not valid"),
    ({"calibration": "12"}, "is not valid"),
    ({"calibration": [1, 10**400]}, "is not valid"),
    ({"calibration": [1e300, 0]}, "is not valid"),
    ({"size": 32 * 10**7}, "is not valid"),
    ({"attributes": [["red", "red"]], "classes": ["red", "red"]}, "is not valid"),
    ({"model": "yolo_clevr"}, "it is for the perception yolo_clevr: name that one, or train one"),
    ({"classes": ["red square"]}, "is not valid"),
    ({"variant": "s"}, "does not fit"),
])
def test_a_wrong_header_is_refused(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match=message):
        Yolo.build(4, stored(random_yolo(), tmp_path / "w.safetensors", **changes))


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    model = random_yolo()
    with torch.no_grad():
        model.network.model[0].conv.weight[0] = math.nan
    with pytest.raises(NsfrcError, match=r"what is not a number, in network\.model\.0\.conv\.weight: get or train"):
        Yolo.build(4, stored(model, tmp_path / "w.safetensors"))


def test_without_shipped_weights_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Yolo, "shipped", tmp_path / "none.safetensors")
    with pytest.raises(NsfrcError, match="nsfrc train perception --model yolo --out"):
        Yolo.build(4)


def test_ultralytics_leaves_no_trace(tmp_path: Path) -> None:
    script = (
        "import os, sys, torch, numpy as np\n"
        "from PIL import Image\n"
        "save, image_open, options = torch.save, Image.open, np.get_printoptions()\n"
        "from nsfrc.perception.yolo import Yolo\n"
        "model = Yolo(4, size=(64, 64)).eval()\n"
        "model.network.fuse(verbose=False)\n"
        "model(torch.zeros(1, 3, 64, 64))\n"
        "assert 'torchvision' not in sys.modules\n"
        "assert 'OMP_NUM_THREADS' not in os.environ\n"
        "assert torch.save is save and Image.open is image_open and np.get_printoptions() == options\n"
    )
    kept = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS" and not k.startswith(("YOLO", "XDG"))}
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script], env={**kept, "HOME": str(home), "TMPDIR": str(temporary)}, cwd=home,
        capture_output=True, text=True, check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(home.iterdir()) == [] and list(temporary.iterdir()) == []
