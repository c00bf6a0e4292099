"""A .pt file of ultralytics, and what ultralytics does with boxes: real files, real predictor, untrained networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nsfrc
from nsfrc.benchmarks import agreement
from nsfrc.errors import NsfrcError
from nsfrc.inference.images import read, to_tensor
from nsfrc.perception.detector import open_detector
from nsfrc.perception.offline import load_ultralytics
from nsfrc.perception.vectors import Wishes

LEAST = 0.3
PROGRAM = """
:- type(image, [img]).
:- type(object, slots(4)).
:- type(class, [cup, key, lamp]).
:- neural(in(object, image)).
:- neural(class(object, class)).
:- perception('best.pt').
:- presence(crisp(0.3)).
:- target(some(img)).
some(X) :- in(A, X), class(A, _).
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """best.pt, a narrow YOLOv8 with random weights that finds something, and pictures of odd sizes."""
    folder = tmp_path_factory.mktemp("pickled")
    from examples import icons

    network = icons.network().eval()
    from ultralytics import YOLO

    with torch.no_grad():
        for name, buffer in network.named_buffers():
            if name.endswith("running_var"):
                buffer.fill_(0.1)  # an untrained network lets almost nothing through
        said = network(torch.rand(2, 3, 160, 160, generator=torch.Generator().manual_seed(0)))[1]["scores"]
        for branch in network.model[-1].cv3:
            branch[-1].weight.mul_(1.5 / said.std())
            branch[-1].bias.fill_(-0.7)
    network.args = vars(network.args)
    whole: Any = YOLO("yolov8n.yaml")
    whole.model, whole.ckpt = network, {"train_args": {"imgsz": 160}}
    whole.save(folder / "best.pt")
    icons.pictures(folder, 3, odd=True)
    (folder / "rules.pl").write_text(PROGRAM)
    return folder


def test_a_pickle_needs_trust(folder: Path) -> None:
    for ask in (lambda: open_detector(folder / "best.pt", 4, Wishes()),
                lambda: nsfrc.infer(folder / "pictures", folder / "rules.pl")):
        with pytest.raises(NsfrcError, match=r"is a pickle.*yolo export model=.*best\.pt format=onnx.*--trust"):
            ask()


def test_with_trust_it_sees_what_ultralytics_sees(folder: Path) -> None:
    load_ultralytics()
    from ultralytics import YOLO

    kept = agreement.register_nms()  # it lasts as long as this does
    ours = open_detector(folder / "best.pt", 300, Wishes(conf=LEAST), trust=True)
    assert ours.names.names == ("cup", "key", "lamp") and ours.size == (160, 160)
    theirs, count = YOLO(str(folder / "best.pt")), 0
    for file in (folder / "pictures" / "000.png", folder / "pictures" / "002.png"):
        picture = read(file, ours.size, ours.fit)
        found = ours.detections(to_tensor([picture.pixels])[0].numpy(), picture.frame)
        wanted = agreement._predicted(theirs, file, LEAST, (picture.width, picture.height), ours.size)
        alone, overlap, apart = agreement._matched(found, wanted)
        assert alone == 0 and overlap >= agreement.LEAST_OVERLAP and apart <= agreement.MOST_APART
        count += len(found)
    assert count > 0
    del kept


def test_a_program_may_name_it(folder: Path) -> None:
    results = nsfrc.infer(folder / "pictures", folder / "rules.pl", trust=True)
    assert [row.error for row in results] == [None] * 3 and "true" in {row.answer for row in results}
    assert results.settings["perception"].startswith("best.pt:")


def test_a_damaged_one_is_refused(folder: Path, tmp_path: Path) -> None:
    data = (folder / "best.pt").read_bytes()
    for name, content in (("cut.pt", data[: len(data) // 2]), ("other.pt", b"nothing of the kind")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(NsfrcError, match=rf"{name} cannot be loaded by ultralytics"):
            open_detector(tmp_path / name, 4, Wishes(), trust=True)


def test_ultralytics_scales_boxes_of_narrow_rectangles_by_a_pixel_too_much(tmp_path: Path) -> None:
    """Why one box of a model of open size overlaps theirs by 0.91: 232 × 346 becomes 64 × 96, and they divide by 95.

    They guess the size of the picture within the frame from the frame; here it is the one that it was brought to.
    """
    load_ultralytics()
    from PIL import Image
    from ultralytics.data.augment import LetterBox
    from ultralytics.utils.ops import scale_boxes

    Image.new("RGB", (232, 346)).save(tmp_path / "a.png")
    framed = LetterBox((96, 96), auto=True, stride=32)(image=np.zeros((346, 232, 3), np.uint8))
    assert framed.shape[:2] == (96, 64) and (framed != 114).all()  # no bars: all of it is the picture
    whole = np.array([[0.0, 48.0, 64.0, 96.0]])
    theirs = scale_boxes((96, 64), whole.copy(), (346, 232))[0] / [232, 346, 232, 346]
    assert theirs == pytest.approx([0, 48 / 95, 1, 1], abs=1e-6)  # the lower half, they say, begins below the middle
    frame = read(tmp_path / "a.png", (96, 96), "grey_bars").frame
    assert frame == (16 / 96, 0, 80 / 96, 1)
