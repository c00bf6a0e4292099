"""A predictor works in another process, with the plug-ins that it needs."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
from pathlib import Path

import pytest
import torch

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.inference.labels import Labels
from nsfrc.inference.predictor import Asked, Predictor
from nsfrc.valuation import load_plugin
from tests.inference.support import NO, ONE, YES, install, save

PLUGIN = """
import nsfrc

@nsfrc.neural_predicate("seen_by_test_predictor")
def seen(thing):
    return thing["objectness"]
"""


@pytest.fixture
def predictor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Predictor:
    install(tmp_path, monkeypatch)
    (tmp_path / "own.py").write_text(PLUGIN)
    monkeypatch.setattr(sys, "path", list(sys.path))
    load_plugin(str(tmp_path / "own.py"))
    text = ":- neural(seen_by_test_predictor(object))."
    (tmp_path / "rules.pl").write_text(ONE.replace(":- target", f"{text} :- target").replace(
        "in(O, X),", "in(O, X), seen_by_test_predictor(O),"))
    pipe = nsfrc.pipeline(tmp_path / "rules.pl", "readable:Readable", trust=True)
    return Predictor(pipe, Asked(labels=Labels("kp(img)", {"true": "true"}), pictures=True))


def test_in_another_process(predictor: Predictor, tmp_path: Path) -> None:
    for i in range(3):
        save(tmp_path / "d" / "true" / f"{i}.png", YES)
    (tmp_path / "d" / "true" / "3.png").write_bytes(b"")
    decoded = predictor.read(tmp_path / "d", NO)
    here = predictor(decoded)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (there,) = pool.map(predictor, [decoded])
    assert [row.answer for row in here] == ["true"] * 3 + [None, "false"]
    for one, other in zip(here, there, strict=True):
        assert (one.file, one.scores, one.answer, one.label, one.error, one.reason) == (
            other.file, other.scores, other.answer, other.label, other.error, other.reason)


def test_after_use_and_back(predictor: Predictor) -> None:
    rows = predictor(predictor.read(YES))
    again = pickle.loads(pickle.dumps(predictor))
    assert again.asked == predictor.asked and again(again.read(YES))[0].scores == rows[0].scores
    assert predictor([]) == []


def test_what_cannot_be_handed_over(tmp_path: Path) -> None:
    class Local(torch.nn.Module):
        dimensions, size, objects = ("red", "yellow", "blue", "square", "circle", "triangle", "objectness"), (8, 8), 2

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return torch.zeros(len(images), 2, 7)

    (tmp_path / "rules.pl").write_text(ONE)
    with pytest.raises(NsfrcError, match="cannot be handed to another process"):
        pickle.dumps(Predictor(nsfrc.pipeline(tmp_path / "rules.pl", Local())))
