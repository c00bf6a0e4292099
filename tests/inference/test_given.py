"""Images of every kind that a pipeline takes, and what a prediction says and shows of itself."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.inference.images import to_tensor
from nsfrc.pipelines import Pipeline
from tests.inference.support import NO, ONE, SEVERAL, YES, install, pixels, save, thing


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    install(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.pl").write_text(ONE)
    save(tmp_path / "yes.png", YES)
    return nsfrc.pipeline("rules.pl", "readable:Readable", trust=True)


def test_every_kind_of_image(pipe: Pipeline) -> None:
    data = Path("yes.png").read_bytes()
    kinds = ["yes.png", Path("yes.png"), data, bytearray(data), memoryview(data), Image.open("yes.png"), YES,
             YES.astype(np.float32) / 255, np.dstack([YES, np.full(YES.shape[:2], 255, np.uint8)])]
    wanted = to_tensor([YES])
    with torch.no_grad():
        scores = pipe(wanted)
        assert scores[0, 0] > 0.9
        for kind in [*kinds, wanted]:
            assert torch.equal(pipe(kind), scores) and torch.equal(pipe.predict(kind).scores, scores)
        together = pipe([*kinds, wanted[0], wanted, NO])
    assert torch.equal(together[:-1], scores.expand(len(kinds) + 2, 1)) and together[-1, 0] < 0.1
    assert pipe(np.stack([YES, NO, YES])).shape == (3, 1)
    assert pipe(YES[:, :, 0]).shape == pipe(YES[:, :, :1]).shape == (1, 1)  # grey


def test_gradients_go_through_tensors_in_a_list(pipe: Pipeline) -> None:
    image = to_tensor([YES * 0 + 128])[0].requires_grad_()
    pipe([image, YES])[0].sum().backward()
    assert image.grad is not None and image.grad.abs().max() > 0


def test_an_image_of_another_size_is_brought_to_that_of_the_perception(pipe: Pipeline) -> None:
    big = Image.fromarray(YES).resize((160, 160), Image.Resampling.NEAREST)
    with torch.no_grad():
        assert torch.equal(pipe(big), pipe(YES))
    assert big.size == (160, 160)


def test_a_picture_that_was_opened_stays_as_it_is(pipe: Pipeline) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (2000, 1000), (200, 10, 10)).save(buffer, "JPEG")
    opened = Image.open(io.BytesIO(buffer.getvalue()))
    pipe(opened)
    assert opened.size == (2000, 1000)  # which Pillow would change to decode less


@pytest.mark.parametrize(("given", "message"), [
    ("gone.png", r"gone\.png: cannot be read: No such file"),
    (b"", "image 1: there are no bytes"),
    (b"nothing", "image 1: not an image"),
    ([YES, b"nothing"], "image 2: not an image"),
    (np.zeros((3, 8, 8), np.uint8), r"shape \[3, 8, 8\] is not an image.*array\.transpose\(1, 2, 0\)"),
    (np.zeros((0, 8, 3), np.uint8), r"shape \[0, 8, 3\] is not an image"),
    (np.zeros((8, 8, 3), np.int64), "an array of int64 is not an image; it must be uint8"),
    (np.full((8, 8, 3), 255.0), "values up to 255; floating point must be 0 … 1"),
    (np.full((8, 8, 3), np.nan), "entries that are not numbers"),
    ({"a": 1}, "a dict is not an image"),
    ([torch.zeros(3, 8, 8), YES], r"different sizes, \(8, 8\) and \(16, 16\)"),
    ([torch.zeros(8, 8)], r"images have shape \[8, 8\]"),
])
def test_what_is_no_image(given: object, message: str, pipe: Pipeline) -> None:
    with pytest.raises(NsfrcError, match=message):
        pipe(given)


def test_why(pipe: Pipeline) -> None:
    found = pipe.predict(["yes.png", NO])
    assert len(found) == 2 and found[1].scores.tolist() == found.scores[1:].tolist()
    assert found[0].why().startswith("kp(img) ") and "because in(obj1,img) 1.00" in found[0].why()
    assert found.why() == f"image 1\n{found[0].why()}\n\nimage 2\n{found[1].why()}"
    assert found[-1].why("in(obj1, img)") == "in(obj1,img) 1.00"
    assert [len(one) for one in found] == [1, 1]
    everything = pipe.predict(["yes.png", NO], everything=True)
    assert everything.why() == found.why()
    with pytest.raises(NsfrcError, match="no ground atom nothing"):
        found.why("nothing")


def test_a_picture_of_itself(pipe: Pipeline, tmp_path: Path) -> None:
    for given in ("yes.png", to_tensor([YES])):
        found = pipe.predict(given)
        image = found.image()
        assert max(image.size) >= 240
        drawn = np.asarray(image).reshape(-1, 3).tolist()
        assert [214, 39, 40] in drawn  # the box of the object that the reason names
        assert Image.open(io.BytesIO(found._repr_png_() or b"")).size == image.size
        page = found._repr_html_() or ""
        assert "data:image/png;base64," in page and "kp(img) 1.00 because" in page
    (tmp_path / "several.pl").write_text(SEVERAL)
    several = nsfrc.pipeline("several.pl", "readable:Readable", trust=True).predict([YES] * 14)
    assert several.image().size[0] > 900 and "and 2 more" in (several._repr_html_() or "")
    nothing = pipe.predict(torch.zeros(0, 3, 16, 16))
    assert nothing._repr_html_() is None and nothing._repr_png_() is None
    with pytest.raises(NsfrcError, match="prediction has no images"):
        nothing.image()


def test_show(pipe: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Image.Image] = []
    monkeypatch.setattr(Image.Image, "show", lambda image: shown.append(image))
    pipe.predict("yes.png").show()
    assert len(shown) == 1


def test_names_stay_text(pipe: Pipeline, tmp_path: Path) -> None:
    (tmp_path / "evil.pl").write_text(ONE.replace("kp(", "'<script>'("))
    page = nsfrc.pipeline("evil.pl", "readable:Readable", trust=True).predict("yes.png")._repr_html_() or ""
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_an_image_without_numbers_leaves_the_others_alone(pipe: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    forward = pipe.perception.forward

    def spoilt(images: torch.Tensor) -> torch.Tensor:
        objects = forward(images).clone()
        objects[0] = float("nan")
        return objects

    monkeypatch.setattr(pipe.perception, "forward", spoilt)
    found = pipe.predict([NO, YES])
    assert found.scores[0].isnan().all() and found.scores[1, 0] > 0.9
    assert "nan" in (found._repr_html_() or "")
    with pytest.raises(NsfrcError, match="image 1 has no reason"):
        found.why()


def test_padding_is_never_seen(pipe: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    forward = pipe.perception.forward
    monkeypatch.setattr(pipe.perception, "forward", lambda images: counts.append(len(images)) or forward(images))
    found = pipe.predict([YES, pixels(thing(red=1))], everything=True, padded=8)
    assert counts == [8] and len(found) == len(found.objects) == len(found.V0) == 2
    assert found.V_T is not None and len(found.V_T) == 2
    assert len(pipe.predict([YES] * 3, padded=2)) == 3
