"""The detectors that ship in ONNX Runtime: what torch says, in the cases where it is allowed, and never old weights."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from nsfrc.benchmarks.onnx_speed import both_ways, example_folders
from nsfrc.perception import onnx_network, yolo_network
from nsfrc.perception.yolo import Yolo
from nsfrc.perception.yolo_clevr import YoloClevr
from nsfrc.perception.yolo_light import CUT
from nsfrc.pipelines import pipeline
from tests.perception.support import random_yolo, said_by_ultralytics, stored

pytest.importorskip("onnxruntime")

SIDE = 64


def pictures(count: int, height: int = SIDE, width: int = SIDE) -> torch.Tensor:
    return torch.rand(count, 3, height, width, generator=torch.Generator().manual_seed(3))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(random_yolo(), tmp_path_factory.mktemp("weights") / "w.safetensors")


@pytest.fixture
def model(file: Path) -> Yolo:
    return Yolo.build(6, file)


def in_torch(model: Yolo, images: torch.Tensor) -> torch.Tensor:
    """What torch alone says."""
    model.onnx_allowed = False
    with torch.no_grad():
        found: torch.Tensor = model(images)
    model.onnx_allowed = True
    return found


@pytest.mark.parametrize(("program", "perception", "files"), example_folders(), ids=lambda one: one if isinstance(
    one, str) else "")
def test_answers_on_all_example_images_are_those_of_torch(program: str, perception: str, files: list[Path]) -> None:
    assert len(files) >= 10
    answers, equal, apart = both_ways(pipeline(program, perception), files)
    assert answers == equal == len(files)
    assert 0 < apart < 1e-4  # 0 would mean that torch was compared with itself


@pytest.mark.parametrize("cls", [Yolo, YoloClevr])
def test_the_graph_is_sound_and_takes_images_of_any_size(cls: type[Yolo]) -> None:
    onnx = pytest.importorskip("onnx")
    network = cls.build(4).network
    head = onnx_network._BoxHead(network.model[-1].one2many["box_head"][0])
    for module, channels in ((onnx_network._Body(network), 3), (head, "channels")):
        data = onnx_network.to_onnx(module, ("batch", channels, "height", "width"))
        onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    whole = onnx_network.OnnxNetwork(network)
    for height, width in ((64, 96), (160, 160)):
        images = pictures(2, height, width)
        with torch.no_grad():
            wanted, seen = said_by_ultralytics(network, images), yolo_network.maps(network, images)
        sides, classes = whole(images)
        for found, one in zip((sides, classes), wanted, strict=True):
            np.testing.assert_allclose(found, one.numpy(), atol=1e-3)
        finer = CUT if cls is Yolo else 1  # cells of a fine network for one of its maps, each way
        maps = [(finer * rows, finer * columns) for *_, rows, columns in (one.shape for one in seen)]
        assert yolo_network.map_sizes(network, images) == maps
        assert sides.shape[2] == sum(rows * columns for rows, columns in maps)


def test_images_of_any_size_and_number_come_out_as_in_torch(model: Yolo) -> None:
    for images in (pictures(1), pictures(3, 96, 64), pictures(9)):
        wanted = in_torch(model, images)
        with torch.no_grad():
            assert torch.allclose(model(images), wanted, atol=1e-4)
        assert model.uses_onnx and wanted[..., -1].max() > 0.5


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_seen_never_depends_on_the_rest_of_a_batch(model: Yolo, threads: int) -> None:
    images = pictures(11)
    images[5] = images[4]
    images[9:] = 0
    before = torch.get_num_threads()
    with torch.no_grad():
        alone = [onnx_network.OnnxNetwork(model.network)(one[None]) for one in images]
        torch.set_num_threads(threads)
        try:
            together = onnx_network.OnnxNetwork(model.network)(images)
        finally:
            torch.set_num_threads(before)
    for part, whole in enumerate(together):
        assert torch.equal(torch.cat([one[part] for one in alone]), whole)


def test_images_like_the_one_before_are_looked_at_once(model: Yolo, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    run = onnx_network.OnnxNetwork._some
    monkeypatch.setattr(onnx_network.OnnxNetwork, "_some",
                        lambda self, pixels, least: (seen.append(len(pixels)), run(self, pixels, least))[1])
    with torch.no_grad():
        model(torch.cat([pictures(2), torch.zeros(30, 3, SIDE, SIDE)]))
    assert sum(seen) == 3


def test_boxes_are_computed_where_a_class_is_likely_enough(model: Yolo) -> None:
    network, images = onnx_network.OnnxNetwork(model.network), pictures(5)
    sides, classes = network(images)
    cells = [rows * columns for rows, columns in yolo_network.map_sizes(model.network, images)]
    scales = [(torch.zeros_like(one), one, said.amax((1, 2))) for one, said in zip(
        sides.split(cells, 2), classes.split(cells, 2), strict=True)]
    tops = torch.cat([top for _, _, top in scales])
    for least in (float(tops.median()), float(tops.max()), float(tops.max()) + 1):
        parts = [torch.where((top >= least)[:, None, None], one, nothing) for nothing, one, top in scales]
        wanted = torch.cat(parts, 2)
        found = network(images, least)
        assert torch.equal(found[0], wanted) and torch.equal(found[1], classes)
        assert not torch.equal(wanted, sides)


@pytest.mark.parametrize("floor", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("cls", [Yolo, YoloClevr])
def test_objects_do_not_depend_on_boxes_that_are_left_out(
    cls: type[Yolo], floor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = cls.build(4)
    images = torch.nn.functional.interpolate(pictures(6, 8, 12), model.size)  # blocks of colours
    model.floor = floor
    with torch.no_grad():
        found, further = model(images), model.further
        monkeypatch.setattr(cls, "_least", -np.inf)
        assert torch.equal(model(images), found) and torch.equal(model.further, further)  # type: ignore[arg-type]
    assert model.uses_onnx and (floor > 0.5 or found[..., -1].max() > 0)


def test_gradients_come_from_torch(model: Yolo) -> None:
    images = pictures(2).requires_grad_()
    model(images).sum().backward()
    assert not model.uses_onnx and images.grad is not None and images.grad.abs().max() > 0


def test_weights_that_change_are_noticed(model: Yolo) -> None:
    images = pictures(2)
    with torch.no_grad():
        before = model(images)
        next(iter(model.network.parameters())).mul_(0.5)
        after = model(images)
    assert model.uses_onnx
    assert not torch.allclose(before, after, atol=1e-3) and torch.allclose(after, in_torch(model, images), atol=1e-4)


def test_what_is_being_trained_runs_in_torch(model: Yolo) -> None:
    model.network.requires_grad_(True)
    with torch.no_grad():
        model(pictures(1))
    assert not model.uses_onnx


def test_copies_and_pickles_see_the_same(model: Yolo) -> None:
    images = pictures(2)
    with torch.no_grad():
        wanted = model(images)
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert torch.equal(other(images), wanted) and other.uses_onnx


def test_an_operation_without_onnx_and_no_onnx_runtime_leave_it_to_torch(
    model: Yolo, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = pictures(1)
    wanted = in_torch(model, images)
    model.network.model[0].act = torch.nn.SELU()
    with torch.no_grad():
        assert model(images).shape == wanted.shape and not model.uses_onnx
        monkeypatch.setattr(onnx_network, "find_spec", lambda name: None)
        without = Yolo.build(6, file)
        assert torch.equal(without(images), wanted) and not without.uses_onnx
