"""The pipeline as a torch module."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from PIL import Image

import nsfrc
from nsfrc import perception
from nsfrc.errors import NsfrcError
from nsfrc.inference.images import to_tensor
from nsfrc.pipelines import Pipeline, object_count
from tests.inference.support import DIMENSIONS, NO, ONE, SEVERAL, YES, install


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.pl").write_text(ONE)
    return tmp_path


def build(text: str = "rules.pl", **options: object) -> Pipeline:
    return nsfrc.pipeline(text, "readable:Readable", trust=True, **options)


def test_scores_and_what_is_in_between(folder: Path) -> None:
    pipe = build()
    images = to_tensor([YES, NO, YES])
    found = pipe.predict(images)
    assert found.objects.shape == (3, 2, len(DIMENSIONS)) and found.V_T is None
    assert found.V0.shape == (3, pipe.program.plan.G)
    assert found.V0[0, pipe.program.index("color(obj1,red)")] == 1
    assert found.scores.shape == (3, 1)
    assert found.scores[0] > 0.9 > 0.1 > found.scores[1] and found.scores[0] == found.scores[2]
    everything = pipe.predict(images, everything=True)
    assert torch.equal(everything.scores, found.scores)
    assert everything.V_T is not None
    assert everything.V_T[:, pipe.program.target_indices] == pytest.approx(found.scores.numpy(), abs=1e-6)
    with torch.no_grad():
        assert torch.equal(pipe(images), found.scores)


def test_files_are_read_as_perception_takes_them(folder: Path) -> None:
    pipe = build()
    for name, pixels in (("yes.png", YES), ("no.png", NO)):
        Image.fromarray(pixels).save(folder / name)
    assert torch.equal(pipe.read("yes.png", folder / "no.png"), to_tensor([YES, NO]))
    with pytest.raises(NsfrcError, match=r"none\.png"):
        pipe.read("yes.png", "none.png")
    with pytest.raises(NsfrcError, match="at least one"):
        pipe.read()
    with pytest.raises(NsfrcError, match=r"read takes paths, as read\(\*paths\), not a list"):
        pipe.read(["yes.png"])
    with pytest.raises(NsfrcError, match=r"values up to 255; they must be 0 … 1: images / 255"):
        pipe(255 * torch.ones(1, 3, 16, 16))


def test_gradients_reach_images_and_perception(folder: Path) -> None:
    pipe = build()
    images = to_tensor([YES * 0 + 128]).requires_grad_()
    pipe(images).sum().backward()
    assert images.grad is not None
    reached = images.grad[0, 0, :2]
    assert (reached[:, DIMENSIONS.index("red")] > 0).all()
    assert (reached[:, DIMENSIONS.index("objectness")] > 0).all()
    assert reached[:, DIMENSIONS.index("blue")].abs().max() == 0
    assert pipe.perception.weight.grad.abs() > 0  # type: ignore[union-attr, operator]
    assert not pipe.predict(images).scores.requires_grad


def test_a_program_in_any_form_gives_the_same(folder: Path) -> None:
    program = nsfrc.compile("rules.pl")
    program.save("rules.nsfrc")
    images = to_tensor([YES, NO])
    wanted = build().predict(images).scores
    for given in (program, Path("rules.nsfrc"), "rules.nsfrc"):
        assert torch.equal(build(given).predict(images).scores, wanted)  # type: ignore[arg-type]


def test_perception_from_the_program(folder: Path) -> None:
    (folder / "rules.pl").write_text(ONE + ":- perception('readable:Readable').")
    assert type(nsfrc.pipeline("rules.pl", trust=True).perception).__name__ == "Readable"


def test_several_targets_and_settings(folder: Path) -> None:
    (folder / "several.pl").write_text(SEVERAL)
    pipe = build("several.pl", steps=2, gamma=0.05)
    assert (pipe.reasoner.run.steps, pipe.reasoner.run.gamma) == (2, 0.05)
    scores = pipe.predict(to_tensor([YES]), everything=True).scores
    assert scores.shape == (1, 3) and (scores > 0.8).all()


def test_concepts(folder: Path) -> None:
    text = ":- neural(closeby(object, object)). kp(X) :- closeby(O, P), in(O, X), in(P, X)."
    (folder / "near.pl").write_text(ONE + text)
    (folder / "far.json").write_text('{"closeby": {"w": 0.0, "b": -9.0}}')
    image = to_tensor([NO])  # no red triangle, but two objects in one place
    assert build("near.pl").predict(image).scores[0] > 0.9
    assert build("near.pl", concepts="far.json").predict(image).scores[0] < 0.5


def test_what_cannot_be_built(folder: Path) -> None:
    (folder / "none.pl").write_text(ONE.replace(":- target(kp(img)).", ""))
    with pytest.raises(NsfrcError, match="none has no target"):
        build("none.pl")
    bare = ":- type(image, [img]). :- neural(dark(image)). :- target(kp(img)). kp(X) :- dark(X)."
    (folder / "bare.pl").write_text(bare)
    with pytest.raises(NsfrcError, match="bare has no objects"):
        build("bare.pl")
    with pytest.raises(NsfrcError, match="no perception called 'yol'"):
        nsfrc.pipeline("rules.pl", "yol")
    model = build().perception
    (folder / "three.pl").write_text(ONE.replace("slots(2)", "slots(3)"))
    assert object_count(nsfrc.compile("three.pl")) == 3
    with pytest.raises(NsfrcError, match="has 3 objects, but perception 'Readable' finds 2"):
        nsfrc.pipeline("three.pl", model)
    with pytest.raises(NsfrcError, match="built already"):
        nsfrc.pipeline("rules.pl", model, weights="w.safetensors")
    (folder / "two.pl").write_text(
        ":- type(image, [img]). :- type(person, slots(3)). :- type(car, slots(2)). :- target(kp(img)). "
        ":- neural(inside(person, image)). :- neural(beside(person, car)). kp(X) :- inside(P, X), beside(P, C)."
    )
    with pytest.raises(NsfrcError, match="two has 2 object types, person and car; perception gives one list"):
        build("two.pl")
    (folder / "spare.pl").write_text(ONE + ":- type(car, slots(9)).")
    assert object_count(nsfrc.compile("spare.pl")) == 2
    with pytest.raises(NsfrcError, match=r"there is no such kind.*device=\"cpu\""):
        build(device="abacus")
    with pytest.raises(NsfrcError, match=r"'gpu' .*did you mean cuda\?"):
        build(device="gpu")


class Plain(torch.nn.Module):
    """No `Perception`, with a batch norm and random numbers, which trying it out must leave alone."""

    dimensions, size = DIMENSIONS, (16, 16)

    def __init__(self, objects: int = 2) -> None:
        super().__init__()
        self.norm, self.objects = torch.nn.BatchNorm2d(3), objects

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.norm(images)[:, 0, : self.objects, : len(DIMENSIONS)].clamp(0, 1) + 0 * torch.rand(1)


class Wide(Plain):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return super().forward(images)[..., :5]


class Pair(Plain):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return super().forward(images), None  # type: ignore[return-value]


class Failing(Plain):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no luck")


class Repeated(Plain):
    dimensions = ("red", *DIMENSIONS[1:])


@pytest.mark.parametrize(("model", "message"), [
    (Wide(), r"'Wide' gives \[2, 2, 5\] for two images; it must give \[2, 2, 11\]"),
    (Pair(), "'Pair' gives tuple for two images"),
    (Failing(), r"'Failing' fails on two images of size \(16, 16\): RuntimeError: no luck"),
    (Repeated(), "'Repeated' has a name twice in its `dimensions`"),
    (lambda images: images, r"or a torch.nn.Module, not a function"),
])
def test_a_module_that_is_built_already_is_tried_out(folder: Path, model: torch.nn.Module, message: str) -> None:
    with pytest.raises(NsfrcError, match=message):
        nsfrc.pipeline("rules.pl", model)


def test_trying_out_leaves_no_trace(folder: Path) -> None:
    model, state = Plain(), torch.random.get_rng_state()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    model.norm.eval()
    perception.adopt(model, 2)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert model.training and not model.norm.training
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    pipe = nsfrc.pipeline("rules.pl", model)
    assert not any(part.training for part in pipe.modules())


def test_a_class_is_built_and_has_the_same_tensors_as_an_instance(folder: Path) -> None:
    given, built = nsfrc.pipeline("rules.pl", Plain()), nsfrc.pipeline("rules.pl", Plain)
    assert built.perception.objects == 2 and built.state_dict().keys() == given.state_dict().keys()
    assert given.perception.norm is given.perception.module.norm
    assert copy.deepcopy(given)(to_tensor([YES])).shape == (1, 1)
    Image.fromarray(YES).save(folder / "yes.png")
    assert given.read("yes.png").shape == (1, 3, 16, 16)


@pytest.mark.parametrize(("images", "message"), [
    (torch.zeros(3, 16, 16), r"shape \[3, 16, 16\]; .*images\[None\]"),
    (torch.zeros(2, 16, 16, 3), r"permute\(0, 3, 1, 2\)"),
    (torch.zeros(2, 1, 16, 16), r"shape \[2, 1, 16, 16\]; a pipeline takes \[B, 3, H, W\]$"),
    (torch.zeros(2, 3, 16, 16, dtype=torch.uint8), r"torch.uint8; .*images / 255 .*pipe.read"),
    (None, "image 1: a NoneType is not an image: it must be the path of a file, the bytes of one, a PIL image"),
    ([], "there are no images: the list is empty"),
])
def test_images_that_are_none(folder: Path, images: torch.Tensor, message: str) -> None:
    pipe = build()
    for ask in (pipe, pipe.predict):
        with pytest.raises(NsfrcError, match=message):
            ask(images)
