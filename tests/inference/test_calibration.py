"""Thresholds: how they are chosen, and which one is taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.inference import calibration
from nsfrc.inference.calibration import choose_threshold, fingerprint, threshold_for
from tests.examples import write


def test_the_middle_of_the_widest_gap() -> None:
    assert choose_threshold([0.1, 0.2, 0.8, 0.9], [False, False, True, True]) == (0.5, 1.0)
    # Two cuts are right in three of four; the wider gap wins.
    assert choose_threshold([0.1, 0.2, 0.3, 0.9], [False, True, False, True]) == (pytest.approx(0.6), 0.75)


def test_all_of_a_kind() -> None:
    threshold, accuracy = choose_threshold([0.4, 0.6], [True, True])
    assert 0 <= threshold <= 0.4 and accuracy == 1
    threshold, accuracy = choose_threshold([0.4, 0.6], [False, False])
    assert threshold > 0.6 and accuracy == 1
    assert choose_threshold([1.0, 1.0], [False, False])[1] == 0  # no threshold up to 1 says false


def test_the_accuracy_is_that_of_the_threshold() -> None:
    generator = np.random.default_rng(3)
    for _ in range(200):
        scores = generator.integers(0, 6, 8) / 5
        labels = generator.random(8) < 0.5
        threshold, accuracy = choose_threshold(scores.tolist(), labels.tolist())
        assert accuracy == ((scores >= threshold) == labels).mean()
        assert accuracy == max(((scores >= t) == labels).mean() for t in np.linspace(0, 1, 101))


@pytest.mark.parametrize(("scores", "labels"), [([], []), ([0.5], []), ([float("nan")], [True])])
def test_nothing_to_choose_from(scores: list[float], labels: list[bool]) -> None:
    with pytest.raises(NsfrcError, match="choosing a threshold"):
        choose_threshold(scores, labels)


def test_fingerprints(tmp_path: Path) -> None:
    text = ":- target(kp(img)). likes(red, 1). kp(X) :- in(O, X), color(O, C), likes(C, N), size(O, N)."
    first = fingerprint(nsfrc.compile(write(tmp_path, text)))
    assert first == fingerprint(nsfrc.compile(write(tmp_path, text + "  % remark", "other.pl")))
    changes = [text.replace("red", "blue"), text + " :- steps(7).", text + " :- gamma(0.1)."]
    others = {fingerprint(nsfrc.compile(write(tmp_path, change))) for change in changes}
    assert first not in others and len(others) == 3
    path = tmp_path / "p.nsfrc"
    program = nsfrc.compile(write(tmp_path, text))
    program.save(path)
    assert fingerprint(nsfrc.load(path)) == first


def test_which_threshold_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ":- target(kp(img)). kp(X) :- in(O, X), color(O, red)."
    program = nsfrc.compile(write(tmp_path, text))
    entry = {"threshold": 0.7, "program": "rules", "figures": 300, "accuracy": 1.0}
    monkeypatch.setattr(calibration, "shipped", lambda: {"net:1": {fingerprint(program): entry}})
    chosen = threshold_for(program, "net:1")
    assert (chosen.value, chosen.source) == (0.7, "from the calibration chosen on 300 validation figures")
    assert threshold_for(program, "net:1", given=0.2).value == 0.2
    for other in (threshold_for(program, "net:2"), threshold_for(program, "net:1", steps=9),
                  threshold_for(program, "net:1", own_concepts=True)):
        assert (other.value, other.source) == (0.5, "by default")
    assert threshold_for(program, "net:1", steps=program.steps).value == 0.7
    own = nsfrc.compile(write(tmp_path, text + " :- threshold(0.3)."))
    assert threshold_for(own, "net:1").source == "from the program"


def test_the_shipped_calibration_is_well_formed() -> None:
    for programs in calibration.shipped().values():
        for entry in programs.values():
            assert 0 <= entry["threshold"] <= 1 and entry["figures"] > 0 and entry["program"]
