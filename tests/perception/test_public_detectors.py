"""Detectors that others have put on PyPI, where they are installed: nudenet (YOLOv8) and rapid-layout (PicoDet)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

import nsfrc
from nsfrc.inference.images import read, to_tensor
from nsfrc.perception.detector import open_detector
from nsfrc.perception.vectors import Wishes

PROGRAM = """
:- type(image, [img]).
:- type(object, slots(auto)).
:- type(class, from_perception).
:- neural(in(object, image)).
:- neural(class(object, class)).
:- target(found(img)).
found(X) :- in(O, X), class(O, {name}).
"""


def _model(package: str, below: str) -> Path:
    found = find_spec(package) if find_spec("onnxruntime") else None
    if found is None or found.origin is None or not (path := Path(found.origin).parent / below).is_file():
        pytest.skip(f"{package} is not installed")
    return path


def test_faces_in_photographs(tmp_path: Path) -> None:
    model = _model("nudenet", "320n.onnx")
    assets = Path(find_spec("ultralytics").origin).parent / "assets"  # type: ignore[union-attr,arg-type]
    (tmp_path / "face.pl").write_text(PROGRAM.format(name="'FACE_FEMALE'"))
    results = nsfrc.infer(assets, tmp_path / "face.pl", perception=str(model), conf=0.2, device="cpu")
    assert {row.file: row.answer for row in results} == {"bus.jpg": "true", "zidane.jpg": "false"}
    assert results.settings["objects"].startswith("3, as many")


def test_the_layout_of_a_page_as_its_own_package_sees_it(tmp_path: Path) -> None:
    model = _model("rapid_layout", "models/layout_cdla.onnx")
    page = Image.new("RGB", (620, 800), "white")
    pen = ImageDraw.Draw(page)
    for row in range(28):
        pen.text((60, 80 + 22 * row), "Some words of a paragraph that fills the line from left to right ", fill="black")
    page.save(tmp_path / "page.png")
    ours = open_detector(model, 50, Wishes(conf=0.5))
    assert ours.head.name == "picodet"
    seen = read(tmp_path / "page.png", ours.size, ours.fit)
    found = ours.detections(to_tensor([seen.pixels])[0].numpy(), seen.frame)
    from rapid_layout import RapidLayout

    theirs = RapidLayout(conf_thresh=0.5)(np.asarray(page)[:, :, ::-1])
    boxes = np.array(theirs.boxes) / [620, 800, 620, 800]
    assert len(found) == len(boxes) > 0
    assert np.abs(found[0, :4] - boxes[int(np.argmax(theirs.scores))]).max() < 0.02
    assert ours.names.names[int(found[0, 5])] == theirs.class_names[int(np.argmax(theirs.scores))]
