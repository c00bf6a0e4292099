"""The pipeline as a torch module."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

import nsfrc
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
    return nsfrc.pipeline(text, "readable:Readable", **options)


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
    assert type(nsfrc.pipeline("rules.pl").perception).__name__ == "Readable"


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
    with pytest.raises(NsfrcError, match="speaks of 3 objects, and this perception finds 2"):
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
    with pytest.raises(NsfrcError, match="use --device cpu"):
        build(device="abacus")
