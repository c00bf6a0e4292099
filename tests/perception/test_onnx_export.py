"""Detectors written as one ONNX file: nsfrc, ultralytics and any ONNX Runtime find in it what the detector finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import nsfrc
from nsfrc.inference.images import read, to_tensor
from nsfrc.perception.detector import open_detector
from nsfrc.perception.offline import load_ultralytics
from nsfrc.perception.onnx_export import MOST, onnx_model
from nsfrc.perception.vectors import Wishes
from nsfrc.perception.yolo import Yolo
from nsfrc.perception.yolo_clevr import YoloClevr
from tests.perception.support import random_yolo, stored

pytest.importorskip("onnxruntime")

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDERS = {Yolo: EXAMPLES / "figures", YoloClevr: EXAMPLES / "scenes"}
PROGRAM = """
:- type(image, [img]).
:- type(object, slots(4)).
:- attributes([color-[red, yellow, blue], shape-[square, circle, triangle]]).
:- neural(in(object, image)).
:- neural(color(object, color)).
:- neural(shape(object, shape)).
:- perception('figures.onnx').
:- target(pairs(img)).
pair(A, B) :- shape(A, S), shape(B, S), color(A, C), color(B, C).
pairs(X) :- in(A, X), in(B, X), in(C, X), in(D, X), pair(A, B), other(C, D).
other(C, D) :- shape(C, S), shape(D, S), color(C, K), color(D, L), K \\== L.
"""


def exported(model: Yolo, path: Path) -> Path:
    path.write_bytes(onnx_model(model))
    return path


def pictures(kind: type[Yolo], size: tuple[int, int]) -> torch.Tensor:
    """Examples, and what is lighter of two of them: a crowd of which much could be one thing or another."""
    files = sorted(FOLDERS[kind].rglob("*.png"))[::2]
    assert len(files) > 5
    images = to_tensor([read(file, size).pixels for file in files])
    return torch.cat([images, torch.maximum(images, images.roll(1, 0)), torch.maximum(images, images.roll(2, 0))])


@pytest.mark.parametrize("kind", [Yolo, YoloClevr])
def test_the_detectors_that_ship(kind: type[Yolo], tmp_path: Path) -> None:
    """Every object with its box, its class and how sure it is, in the same order; and the file is small."""
    model = kind.build(MOST)
    path = exported(model, tmp_path / "w.onnx")
    assert path.stat().st_size <= 8_000_000
    images = pictures(kind, model.size)
    same, other = model(images), open_detector(path, MOST, Wishes(conf=0.0))(images)
    there = same[..., -1] > 0
    assert there.sum() > 60 and torch.equal(other[..., -1] > 0, there)
    assert torch.allclose(other[..., :4], same[..., :4], atol=1e-5)
    assert torch.allclose(other[..., -1], same[..., -1], atol=1e-5)
    first = model.dimensions.index(model.attributes.values[0])
    values = same[there][:, first:-1]
    likely = values @ model.attributes.members().T  # the class whose values are likely
    sure = likely.max(1).values > 0.9 * len(model.attributes.groups)  # the likeliest class of all else may be another
    assert sure.sum() > 20 and torch.equal(likely.argmax(1)[sure], other[there][:, 4:-1].argmax(1)[sure])


def test_a_whole_network_with_three_scales(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    model = Yolo.build(MOST, stored(random_yolo(floor=0.5), tmp_path / "w.safetensors"))
    path = exported(model, tmp_path / "w.onnx")
    onnx.checker.check_model(str(path), full_check=True)
    images = torch.rand(3, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    same, other = model(images), open_detector(path, MOST, Wishes(conf=0.0))(images)
    assert (same[..., -1] > 0).sum() > 3
    assert torch.allclose(other[..., [0, 1, 2, 3, -1]], same[..., [0, 1, 2, 3, -1]], atol=1e-4)


def test_what_ultralytics_makes_of_it(tmp_path: Path) -> None:
    load_ultralytics()
    from ultralytics import YOLO

    model = Yolo.build(MOST)
    path = exported(model, tmp_path / "w.onnx")
    file = sorted(FOLDERS[Yolo].rglob("*.png"))[0]
    blank, image = np.full((64, 64, 3), 215, dtype=np.uint8), np.asarray(Image.open(file).convert("RGB"))[..., ::-1]
    none, found = YOLO(path, task="detect").predict([blank, image], verbose=False)  # it takes blue first
    assert not len(none.boxes)
    assert tuple(found.names.values()) == model.attributes.classes
    same = model(to_tensor([read(file, model.size).pixels]))[0]
    same = same[same[:, -1] > 0]
    order = found.boxes.xyxyn[:, 0].argsort(), same[:, 0].argsort()
    assert len(found.boxes) == len(same)
    # It makes pictures small in another way, without averaging over what falls together.
    assert torch.allclose(found.boxes.xyxyn[order[0]], same[order[1], :4], atol=0.01)
    colours = [model.attributes.values[i] for i in same[order[1], 4:7].argmax(1)]
    assert [found.names[int(one)].split()[0] for one in found.boxes.cls[order[0]]] == colours


def test_a_program_with_the_file_as_perception(tmp_path: Path) -> None:
    exported(Yolo.build(MOST), tmp_path / "figures.onnx")
    (tmp_path / "pairs.pl").write_text(PROGRAM)
    results = nsfrc.infer(FOLDERS[Yolo] / "twopairs", tmp_path / "pairs.pl", device="cpu")
    assert len(results) > 10
    assert all(Path(row.file).parts[-2] == row.answer for row in results)


def test_nothing_in_sight(tmp_path: Path) -> None:
    detector = open_detector(exported(Yolo.build(MOST), tmp_path / "w.onnx"), 3, Wishes())
    assert not detector(torch.full((1, 3, *detector.size), 0.6)).any()
    assert detector.detections(np.zeros((3, *detector.size), np.float32)).shape == (0, 6)
