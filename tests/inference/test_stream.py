"""Files through a pipeline: order, batches, failures, and what is held."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import Item, folder
from nsfrc.inference.images import to_tensor
from nsfrc.inference.labels import Labels
from nsfrc.inference.predictor import Asked, Predictor
from nsfrc.inference.rows import Row
from nsfrc.inference.stream import Reading, stream
from nsfrc.perception.base import Perception
from nsfrc.perception.yolo import Yolo
from nsfrc.pipelines import Pipeline, pipeline
from tests.inference.support import NO, ONE, YES, install, labelled, pixels, save, thing

LABELS = Labels("kp(img)", {"true": "true", "false": "false"})


class Net(Perception):
    """A small network with weights of its own, so that sums are long enough to differ in the last digits."""

    size = (16, 16)
    dimensions = ("red", "yellow", "blue", "square", "circle", "triangle", "objectness")

    def __init__(self, objects: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.objects, self.identity = objects, "net"
        self.weight = torch.nn.Parameter(torch.randn(objects * 7, 3 * 256, generator=generator) / 8)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(images.flatten(1) @ self.weight.T).reshape(len(images), self.objects, 7)


@pytest.fixture
def pipe(tmp_path: Path) -> Pipeline:
    (tmp_path / "rules.pl").write_text(ONE)
    return pipeline(tmp_path / "rules.pl", Net(2))


def rows(
    pipe: Pipeline, items: list[Item], batch_size: int = 16, decoders: int = 1, **asked: bool
) -> dict[str, Row]:
    predictor = Predictor(pipe, Asked(labels=LABELS, **asked))  # type: ignore[arg-type]
    found = [row for batch in stream(predictor, items, Reading(batch_size, decoders)) for row in batch]
    assert [row.file for row in found] == [item.name for item in items]
    return {row.file: row for row in found}


def test_batch_size_and_order_do_not_matter(pipe: Pipeline, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for i in range(20):
        save(tmp_path / "d" / f"{i}.png", generator.integers(0, 256, (16, 16, 3), dtype=np.uint8))
    (tmp_path / "d" / "5.png").write_bytes(b"nothing")
    items = list(folder(tmp_path / "d"))
    first = rows(pipe, items, batch_size=1, decoders=0)
    assert len({row.scores for row in first.values()}) > 10  # they do differ from image to image
    mixed = random.Random(0).sample(items, len(items))
    for batch_size, decoders, order in ((3, 1, items), (16, 2, items), (16, 1, mixed), (7, 0, mixed)):
        other = rows(pipe, order, batch_size=batch_size, decoders=decoders)
        for name, row in first.items():
            assert (row.answer, row.error) == (other[name].answer, other[name].error)
            assert row.scores == pytest.approx(other[name].scores, abs=1e-4)
            if row.objects is not None:
                assert row.objects == pytest.approx(other[name].objects, abs=1e-5)


class Counting(Net):
    """Every digit depends on how many images there are, and on nothing else about the others."""

    piece = 4

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        sums = (images.flatten(1)[:, None] * self.weight).sum(-1)
        return sums.clamp(0, 1).reshape(len(images), self.objects, 7) / len(images)


def test_pieces_make_rows_the_same_to_the_last_digit(pipe: Pipeline, tmp_path: Path) -> None:
    counting = pipeline(tmp_path / "rules.pl", Counting(2))
    generator = np.random.default_rng(0)
    for i in range(10):
        save(tmp_path / "d" / f"{i}.png", generator.integers(0, 256, (16, 16, 3), dtype=np.uint8))
    (tmp_path / "d" / "2.png").write_bytes(b"nothing")
    items = list(folder(tmp_path / "d"))
    first = rows(counting, items, batch_size=1)
    for batch_size, order in ((4, items), (7, items[::-1]), (100, items)):
        other = rows(counting, order, batch_size=batch_size)
        for name, row in first.items():
            assert (row.scores, row.error) == (other[name].scores, other[name].error)
            assert np.array_equal(row.objects, other[name].objects) if row.objects is not None else row.error


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_yolo_gives_the_same_digits_at_any_batch_size(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Yolo(2, floor=0.0)
    blocks = torch.randint(0, 256, (20, 5, 5, 3), dtype=torch.uint8).numpy().repeat(32, 1).repeat(32, 2)
    for layer in model.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.momentum = 1.0  # one look at images, without which an untrained network says the same of them all
    with torch.no_grad():
        model.train().network(to_tensor(blocks[:8]))
    (tmp_path / "rules.pl").write_text(ONE)
    yolo = pipeline(tmp_path / "rules.pl", model)
    for i, image in enumerate(blocks):
        save(tmp_path / "d" / f"{i}.png", image)
    items = list(folder(tmp_path / "d"))
    first = rows(yolo, items, batch_size=1)
    assert len({row.objects.tobytes() for row in first.values() if row.objects is not None}) == 20
    for batch_size, order in ((16, items[::-1]), (7, items[:11])):
        for name, row in rows(yolo, order, batch_size=batch_size).items():
            assert row.scores == first[name].scores and np.array_equal(row.objects, first[name].objects)


def test_no_number_is_a_failed_row(pipe: Pipeline, tmp_path: Path) -> None:
    class Spoilt(Net):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            dark = (images == 0).flatten(1).all(1)
            return torch.where(dark[:, None, None], float("nan"), super().forward(images))

    save(tmp_path / "d" / "a.png", YES)
    save(tmp_path / "d" / "b.png", YES * 0)
    spoilt = pipeline(tmp_path / "rules.pl", Spoilt(2))
    found = rows(spoilt, list(folder(tmp_path / "d")))
    assert found["a.png"].answer is not None and found["a.png"].error is None
    assert (found["b.png"].error, found["b.png"].scores, found["b.png"].answer) == (
        "perception gave no number (NaN or infinite)", (), None)


def test_a_score_that_is_no_number(pipe: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As on a GPU, where nobody looks at the values before.
    monkeypatch.setattr(pipe.reasoner, "forward", lambda V0: torch.full((len(V0), 1), float("nan")))
    save(tmp_path / "d" / "a.png", YES)
    (row,) = rows(pipe, list(folder(tmp_path / "d"))).values()
    assert (row.error, row.scores) == ("reasoning gave no number (NaN or infinite)", ())


def test_of_classes_all_digits_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ONE.replace(":- target(kp(img)).", ":- classes([kp(img), other(img)]). other(X) :- kp(X).")
    (tmp_path / "rules.pl").write_text(text.replace(":- semantics(paper).", ""))
    pipe = pipeline(tmp_path / "rules.pl", Net(2))
    monkeypatch.setattr(pipe.reasoner, "forward", lambda V0: torch.tensor([[0.99996, 0.99999]]).repeat(len(V0), 1))
    save(tmp_path / "d" / "a.png", YES)
    (row,) = rows(pipe, list(folder(tmp_path / "d"))).values()
    assert (row.answer, row.scores) == ("other(img)", (1.0, 1.0))


def test_rows(pipe: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    readable = pipeline(tmp_path / "rules.pl", "readable:Readable", trust=True)
    root = labelled(tmp_path / "d", 2)
    save(root / "false" / "2.png", YES)
    (root / "true" / "9.png").touch()
    found = rows(readable, list(folder(root)), batch_size=4)
    assert {name: (row.label, row.answer, row.right) for name, row in found.items()} == {
        "false/0.png": ("false", "false", True), "false/1.png": ("false", "false", True),
        "false/2.png": ("false", "true", False), "true/0.png": ("true", "true", True),
        "true/1.png": ("true", "true", True), "true/9.png": ("true", None, None),
    }
    failed = found["true/9.png"]
    assert "empty" in (failed.error or "") and failed.scores == () and failed.objects is None
    good = found["true/0.png"]
    assert good.error is None and good.scores[0] > 0.95 and good.scores[0] == round(good.scores[0], 4)
    assert good.objects is not None and good.objects.shape == (2, 11)
    assert good.V0 is None and good.thumbnail is None and good.reason is None


def test_everything(pipe: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    readable = pipeline(tmp_path / "rules.pl", "readable:Readable", trust=True)
    items = list(folder(labelled(tmp_path / "d", 2)))
    plain, full = rows(readable, items), rows(readable, items, pictures=True)
    for name, row in full.items():
        assert row.scores == plain[name].scores and row.thumbnail is not None
        assert (row.thumbnail.width, row.thumbnail.height) == (16, 16) and row.thumbnail.data
        assert row.V0 is not None and row.V0.shape == (readable.program.plan.G,)
        assert row.reasons[0].atom == "kp(img)" and row.reasons[0].value == pytest.approx(row.scores[0], abs=1e-4)
        assert row.reason is not None and row.reason.startswith("kp(img) ")


def test_files_are_not_read_far_ahead(pipe: Pipeline, tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", YES)
    taken = 0

    def endless() -> Iterator[Item]:
        nonlocal taken
        while True:
            taken += 1
            yield Item(path, f"{taken}.png")

    batches = stream(Predictor(pipe), endless(), Reading(4))
    for done in range(1, 6):
        assert len(next(batches)) == 4
        assert taken <= 4 * done + 8
    batches.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("nsfrc-read")]


def test_a_perception_that_fails(pipe: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    failing = pipeline(tmp_path / "rules.pl", "readable:Failing", trust=True)
    save(tmp_path / "d" / "a.png", pixels(thing(), stop=True))
    with pytest.raises(NsfrcError, match=r"perception readable:Failing:[0-9a-f]+ failed: RuntimeError: no such luck"):
        rows(failing, list(folder(tmp_path / "d")))


@pytest.mark.parametrize(("part", "message"), [
    ("facts", "the facts converter of rules failed: ValueError: no such luck"),
    ("reasoner", "the reasoner of rules failed: ValueError: no such luck"),
])
def test_the_part_that_fails_is_blamed(
    part: str, message: str, pipe: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: torch.Tensor) -> None:
        raise ValueError("no such\nluck")

    monkeypatch.setattr(getattr(pipe, part), "forward", failing)
    save(tmp_path / "d" / "a.png", NO)
    with pytest.raises(NsfrcError, match=f"^{message}$"):
        rows(pipe, list(folder(tmp_path / "d")))


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("no"), MemoryError(),
                                   RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to")])
@pytest.mark.parametrize("part", ["perception", "facts", "reasoner"])
def test_too_large_a_batch(
    part: str, error: Exception, pipe: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: torch.Tensor) -> None:
        raise error

    monkeypatch.setattr(getattr(pipe, part), "forward", full)
    save(tmp_path / "d" / "a.png", NO)
    with pytest.raises(NsfrcError, match="smaller --batch-size"):
        rows(pipe, list(folder(tmp_path / "d")))


def test_public_name() -> None:
    assert nsfrc.pipeline is pipeline
