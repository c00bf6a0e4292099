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
from nsfrc.inference.results import Row
from nsfrc.inference.stream import Asked, answer, infer
from nsfrc.pipelines import Pipeline, pipeline
from tests.inference.support import NO, ONE, YES, install, labelled, pixels, save, thing

LABELS = {"true": "true", "false": "false"}


class Net(torch.nn.Module):
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
    return pipeline(tmp_path / "rules.pl", Net(2))  # type: ignore[arg-type]


def rows(pipe: Pipeline, items: list[Item], **asked: object) -> dict[str, Row]:
    found = [row for batch in infer(pipe, items, Asked(labels=LABELS, **asked)) for row in batch]  # type: ignore[arg-type]
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


def test_rows(pipe: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    readable = pipeline(tmp_path / "rules.pl", "readable:Readable")
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
    assert good.V_T is None and good.picture is None


def test_everything(pipe: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    readable = pipeline(tmp_path / "rules.pl", "readable:Readable")
    items = list(folder(labelled(tmp_path / "d", 2)))
    plain, full = rows(readable, items), rows(readable, items, everything=True)
    for name, row in full.items():
        assert row.scores == plain[name].scores and row.picture is not None and row.picture.pixels.shape == (16, 16, 3)
        assert row.V_T is not None and row.V_T.shape == (readable.program.plan.G,)
        assert row.V_T[readable.program.index("kp(img)")] == pytest.approx(row.scores[0], abs=1e-4)


def test_files_are_not_read_far_ahead(pipe: Pipeline, tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", YES)
    taken = 0

    def endless() -> Iterator[Item]:
        nonlocal taken
        while True:
            taken += 1
            yield Item(path, f"{taken}.png")

    batches = infer(pipe, endless(), Asked(batch_size=4))
    for done in range(1, 6):
        assert len(next(batches)) == 4
        assert taken <= 4 * done + 8
    batches.close()  # type: ignore[attr-defined]
    assert not [t for t in threading.enumerate() if t.name.startswith("nsfrc-read")]


def test_a_perception_that_fails(pipe: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    failing = pipeline(tmp_path / "rules.pl", "readable:Failing")
    save(tmp_path / "d" / "a.png", pixels(thing(), stop=True))
    with pytest.raises(NsfrcError, match=r"perception readable:Failing:[0-9a-f]+ failed: RuntimeError: no such luck"):
        rows(failing, list(folder(tmp_path / "d")))


def test_too_large_a_batch(pipe: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("no")

    monkeypatch.setattr(pipe, "predict", full)
    save(tmp_path / "d" / "a.png", NO)
    with pytest.raises(NsfrcError, match="smaller --batch-size"):
        rows(pipe, list(folder(tmp_path / "d")))


def test_answers() -> None:
    assert [answer((s,), ["kp(img)"], 0.6) for s in (0.59, 0.6, 1.0)] == ["false", "true", "true"]
    assert answer((0.1, 0.3, 0.3), ["a", "b", "c"], 0.9) == "b"


def test_public_name() -> None:
    assert nsfrc.pipeline is pipeline
