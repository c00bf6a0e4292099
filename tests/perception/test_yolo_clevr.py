"""yolo_clevr: classes made of shared values, and objects with a place on the floor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from nsfrc.data.clevr import making
from nsfrc.data.clevr.outlines import boxes
from nsfrc.data.clevr.scenes import DIMENSIONS, truth
from nsfrc.errors import NsfrcError
from nsfrc.perception import create, weights, yolo_network
from nsfrc.perception.attributes import CLEVR
from nsfrc.perception.camera import Camera
from nsfrc.perception.yolo import Yolo
from nsfrc.perception.yolo_clevr import YoloClevr, places


@pytest.fixture(scope="module")
def model() -> YoloClevr:
    torch.manual_seed(0)
    return YoloClevr(5, size=(64, 96), floor=0.0).eval()


def test_the_values_are_those_of_the_scenes() -> None:
    assert set(CLEVR.values) == set(DIMENSIONS) - {"objectness", "x", "y", "z"}
    assert len(CLEVR.classes) == 96


def test_a_class_is_the_sum_of_its_values(model: YoloClevr) -> None:
    learnt, combined = model.network.model[-1].cv3[0][-1]
    features = torch.randn(2, learnt.in_channels, 3, 4)
    values, classes = learnt(features), combined(learnt(features))
    for look in (("sphere", "large", "metal", "cyan"), ("cylinder", "small", "rubber", "brown")):
        wanted = sum(values[:, CLEVR.values.index(value)] for value in look)
        assert torch.allclose(classes[:, CLEVR.index(*look)], wanted, atol=1e-6)


def test_vectors_have_a_place_and_distributions(model: YoloClevr) -> None:
    vectors = model(torch.rand(3, 3, 64, 96))
    assert vectors.shape == (3, 5, len(model.dimensions)) and torch.isfinite(vectors).all()
    groups = [len(group) for group in CLEVR.groups]
    for part in vectors[..., 7:-1].split(groups, -1):
        assert torch.allclose(part.sum(-1), (vectors[..., -1] > 0).float(), atol=1e-5)


def test_two_possible_classes_do_not_make_an_object_doubtful(model: YoloClevr) -> None:
    logits = torch.full((96,), -12.0)
    logits[CLEVR.index("cube", "small", "metal", "red")] = logits[CLEVR.index("cube", "small", "rubber", "red")] = -0.1
    assert model.strength(logits).sigmoid() > 0.9 > 0.6 > logits.amax().sigmoid()
    assert torch.isfinite(model.strength(torch.full((96,), 40.0)))


def test_what_surely_is_there_comes_before_what_surely_is_a_cube(model: YoloClevr) -> None:
    """Of two things apart one is surely a red cube if anything, the other surely there and one of two things."""
    image = torch.zeros(1, 3, 64, 96)
    logits = torch.full((1, 96, 96), -12.0)  # one scale: 8 × 12 cells of 8 pixels
    logits[0, CLEVR.index("cube", "small", "metal", "red"), 13] = 0.4
    for shape in ("cube", "cylinder"):
        logits[0, CLEVR.index(shape, "small", "metal", "blue"), 80] = -0.02
    sides = torch.full((1, 4, yolo_network.BINS, 96), -20.0)
    sides[:, :, 1] = 20.0  # every side one cell away
    found = yolo_network.placed(sides.flatten(1, 2), logits, [(8, 12)], image)
    vectors, which, keep = model.choose(found, (64, 96))
    assert which[0, :2].tolist() == [80, 13] and keep[0, :2].all()
    assert vectors[0, 0, -1] > 0.9 > 0.6 > vectors[0, 1, -1] > 0.5
    single = YoloClevr(1, size=(64, 96)).eval()
    assert single.choose(found, (64, 96))[1].tolist() == [[80]] and single.further is not None
    assert single.further.tolist() == [1]


def test_places_are_where_things_stand() -> None:
    """Exact for the usual camera, but for what a box hides of perspective; a little off for one that stands elsewhere.
    """
    usual, any_camera = [], []
    for i in range(40):
        scene = making.free(11, i)
        height = torch.tensor([t.radius for t in scene.things])
        true = truth(scene, len(scene.things))[:, 1:4]
        any_camera.append(places(torch.from_numpy(boxes(scene.things, scene.camera)), height).numpy() - true)
        seen = torch.from_numpy(boxes(scene.things, Camera()))
        points = np.array([t.coords for t in scene.things])
        usual.append(places(seen, height).numpy() - Camera().entries(points))
    assert np.abs(np.concatenate(usual)).max() < 0.02
    assert np.concatenate(any_camera).std(0).max() < 0.02


def test_lines_of_sight_above_the_horizon_stay_finite() -> None:
    sky = torch.tensor([[0.4, 0.0, 0.6, 0.01]], requires_grad=True)
    found = places(sky, torch.tensor([0.7]))
    found.sum().backward()
    assert torch.isfinite(found).all() and torch.isfinite(sky.grad).all()  # type: ignore[arg-type]


def test_places_have_a_gradient() -> None:
    seen = torch.rand(4, 4, dtype=torch.float64) * 0.3 + 0.4
    height = torch.full((4,), 0.5, dtype=torch.float64)
    assert torch.autograd.gradcheck(places, (seen.requires_grad_(), height.requires_grad_()))


def test_a_file_of_weights_goes_round(model: YoloClevr, tmp_path: Path) -> None:
    file = weights.save(tmp_path / "c.safetensors", model.state_dict(), model.header())
    again = create("yolo_clevr", 5, file)
    assert again.size == (64, 96) and again.dimensions == model.dimensions
    images = torch.rand(2, 3, 64, 96)
    again.floor = 0.0
    with torch.no_grad():
        assert torch.allclose(again(images), model(images), atol=1e-4)


def test_weights_of_another_model_are_refused(model: YoloClevr, tmp_path: Path) -> None:
    file = weights.save(tmp_path / "c.safetensors", model.state_dict(), model.header())
    with pytest.raises(NsfrcError, match=r"does not hold a yolo perception.*yolo_clevr"):
        Yolo.build(3, file)
    with pytest.raises(NsfrcError, match=r"does not hold a yolo_clevr perception.*yolo"):
        YoloClevr.build(3, Yolo.shipped)


def test_messages_speak_of_the_model_that_is_meant(model: YoloClevr, monkeypatch: pytest.MonkeyPatch) -> None:
    again = "train one with nsfrc train perception --model yolo_clevr --data DIR --out yolo_clevr.safetensors"
    with pytest.raises(NsfrcError, match=again):
        YoloClevr.build(3, Yolo.shipped)
    monkeypatch.setattr(YoloClevr, "shipped", Path("nowhere.safetensors"))
    with pytest.raises(NsfrcError, match=again):
        YoloClevr.build(3)
    for images in (torch.zeros(1, 3, 64, 90), torch.zeros(1, 3, 64, 96, dtype=torch.uint8)):
        with pytest.raises(NsfrcError, match="yolo_clevr needs"):
            model(images)


def test_sharing_keeps_the_first_scores_low() -> None:
    torch.manual_seed(0)
    plain = yolo_network.build("n", len(CLEVR.classes))
    before = plain.model[-1].cv3[0][-1].bias[0].item()
    yolo_network.share_values(plain, CLEVR)
    learnt, combined = plain.model[-1].cv3[0][-1]
    after = combined(learnt.bias.reshape(1, -1, 1, 1).detach())
    assert torch.allclose(after, torch.full_like(after, before), atol=1e-5)
