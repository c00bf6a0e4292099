"""Learning concepts from examples, their files, and `nsfrc train concept`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from nsfrc import vocabulary
from nsfrc.cli.train_concept import command
from nsfrc.errors import NsfrcError
from nsfrc.training.concepts import CONCEPTS, labelled, learn
from nsfrc.training.concepts_kandinsky import NOISE
from nsfrc.valuation import FactsConverter, concepts
from tests.valuation.support import DIMENSIONS, compiled, random_objects


@pytest.mark.parametrize("name", CONCEPTS)
def test_the_shipped_parameters_are_made_by_the_command_they_name(name: str, tmp_path: Path) -> None:
    shipped = concepts.read(concepts.SHIPPED)[name]
    words = shipped["made_by"]["command"].split()
    assert words[:3] == ["nsfrc", "train", "concept"]
    command.main([*words[3:], "--out", str(tmp_path / "again.json")], standalone_mode=False)
    again = concepts.read(tmp_path / "again.json")[name]
    assert again["w"] == pytest.approx(shipped["w"], rel=1e-5) and again["b"] == pytest.approx(shipped["b"], rel=1e-5)
    assert again["made_by"] == shipped["made_by"]
    assert again["made_by"]["validation_accuracy"] >= (0.999 if name in ("closeby", "online") else 0.99)


def test_what_is_shipped_has_a_predicate_and_a_command() -> None:
    assert set(concepts.read(concepts.SHIPPED)) == set(CONCEPTS)


def test_the_command_offers_all_concepts() -> None:
    assert list(CONCEPTS) == [known.name for known in vocabulary.CONCEPTS]


def test_examples_of_closeby() -> None:
    points, labels = labelled("closeby", 2000, 3)
    apart = np.linalg.norm(points[:, 0] - points[:, 1], axis=1)
    assert labels.sum() == 1000
    assert apart[labels].min() > 0.06 - 6 * NOISE and apart[labels].max() < 0.12 + 6 * NOISE
    assert apart[~labels].min() > 0.22 - 6 * NOISE and apart[~labels].max() > 0.8
    assert points.min() > 0 and points.max() < 1


def test_examples_of_online() -> None:
    points, labels = labelled("online", 1001, 3)
    away = points - points.mean(axis=1, keepdims=True)
    residual = np.linalg.svd(away, compute_uv=False)[:, -1] / np.sqrt(5)
    assert points.shape == (1001, 5, 2) and labels.sum() == 500
    assert residual[labels].max() < 0.008 + 4 * NOISE and residual[~labels].min() > 0.03 - 4 * NOISE
    directions = np.linalg.svd(away[labels])[2][:, 0]
    angle = np.arctan2(directions[:, 1], directions[:, 0]) % np.pi
    assert np.histogram(angle, 6, (0, np.pi))[0].min() > 20  # in every direction


def test_learning_is_the_same_for_a_seed_and_differs_between_seeds() -> None:
    assert learn("closeby", 400, 7) == learn("closeby", 400, 7)
    assert learn("closeby", 400, 7).w != learn("closeby", 400, 8).w
    assert learn("online", 400, 7).validation_accuracy == 1


def test_what_cannot_be_learnt() -> None:
    with pytest.raises(NsfrcError, match=r"no concept 'beside'.*closeby, online"):
        learn("beside")
    with pytest.raises(NsfrcError, match="3 examples are too few"):
        learn("closeby", 3)


def test_the_command_reports_and_keeps_other_concepts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.json"
    command.main(["closeby", "--examples", "300", "--seed", "4", "--out", str(out)], standalone_mode=False)
    text = capsys.readouterr().out
    assert "closeby: 0.5 at a distance of 0.1" in text and "held out" in text and str(out) in text
    command.main(["online", "--examples", "300", "--out", str(out), "--json"], standalone_mode=False)
    report = json.loads(capsys.readouterr().out)
    assert report["concept"] == "online" and report["boundary"] == pytest.approx(-report["b"] / report["w"])
    entries = concepts.read(out)
    assert set(entries) == {"closeby", "online"}
    assert entries["closeby"]["made_by"]["command"] == "nsfrc train concept closeby --examples 300 --seed 4"


def test_the_command_writes_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command.main(["closeby", "--examples", "20"], standalone_mode=False)
    assert [path.name for path in tmp_path.iterdir()] == ["concepts.json"]


def test_a_file_of_ones_own_goes_before_the_shipped_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    others = '"online": {"w": 1, "b": 2}, "unknown": {"q": [1, 2]}'
    path.write_text('{"closeby": {"w": -2.5, "b": 0.25, "made_by": {}}, ' + others + "}")
    facts = FactsConverter(compiled("closeby"), DIMENSIONS, parameters=path)
    assert [p.item() for p in facts.parameters()] == [-2.5, 0.25]
    objects = random_objects(1, 4)
    centre = (objects[0, :, 0:2] + objects[0, :, 2:4]) / 2
    wanted = torch.sigmoid(0.25 - 2.5 * (centre[0] - centre[2]).norm())
    torch.testing.assert_close(facts(objects)[0, compiled("closeby").index("closeby(obj3,obj1)")], wanted)
    online = FactsConverter(compiled("online_pair"), DIMENSIONS, parameters=path)
    assert [p.item() for p in online.parameters()] == [1.0, 2.0]


@pytest.mark.parametrize(("text", "message"), [
    ("[1]", "is not a concepts file; one looks like"),
    ('{"closeby": 3}', "is not a concepts file; one looks like"),
    ("{", "it is not JSON"),
    ("\xff\xfe", "it is not JSON"),
    ('{"closeby": {"w": "a"}}', "w of closeby must be a finite number"),
    ('{"closeby": {"w": NaN}}', "w of closeby must be a finite number"),
    ('{"closeby": {"w": true}}', "w of closeby must be a finite number"),
    ('{"closeby": {"w": [1, 2]}}', r"closeby: w has shape \[2\]; it must have \[\]"),
    ('{"closeby": {"w": [[1, 2], [3]]}}', "closeby: w is a list of lists of unequal length"),
    ('{"closeby": {"v": 1}}', "closeby has no parameter v; it has w, b"),
    ('{"closeby": {"w": 1}}', "closeby is missing b: an entry has all of w, b"),
    ('{"closeby": {"made_by": {}}}', "closeby is missing w, b"),
    ('{"in": {"v": 1}}', "in has no parameter v; it has none"),
    ('{"closebuy": {"w": 1}}', r"there is no neural predicate closebuy: did you mean closeby\?"),
    ('{"online": {"w": 1}}', "has parameters of online; the neural predicates here are closeby, "),
    ("{}", "has parameters of nothing"),
    ('{"closeby": {"w": 1e39}}', "w of closeby must be a finite number"),
    ('{"closeby": {"w": ' + "9" * 400 + "}}", "w of closeby must be a finite number"),
    ('{"closeby": {"w": ' + "9" * 5000 + "}}", "it is not JSON"),
])
def test_bad_files(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(NsfrcError, match=message) as refused:
        FactsConverter(compiled("closeby"), DIMENSIONS, parameters=path)
    assert "bad.json" in str(refused.value)


def test_files_that_are_not_there_or_not_ours(tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match=r"there is no file .*nsfrc train concept"):
        FactsConverter(compiled("closeby"), DIMENSIONS, parameters=tmp_path / "none.json")
    with pytest.raises(NsfrcError, match="cannot read"):
        FactsConverter(compiled("closeby"), DIMENSIONS, parameters=tmp_path)
    (tmp_path / "notes.txt").write_text("dear diary")
    with pytest.raises(NsfrcError, match=r"notes.txt is not a concepts file"):
        command.main(["closeby", "--examples", "20", "--out", str(tmp_path / "notes.txt")], standalone_mode=False)
    assert (tmp_path / "notes.txt").read_text() == "dear diary"
