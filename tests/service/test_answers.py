"""The rows of a service are those of `nsfrc infer` and `nsfrc reason`, to the letter."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from PIL import Image

pytest.importorskip("fastapi")

from nsfrc.benchmarks.service_chaos import bomb
from nsfrc.benchmarks.service_fuzz import OF_CLASSES as CLASSES
from tests.cli.support import Run
from tests.inference.support import NO, ONE, SEVERAL, YES, install, save
from tests.service.support import FACTS, asked, form, opened, told

FIGURES = Path(__file__).parents[2] / "examples" / "figures" / "twopairs"


def lines(text: str) -> list[str]:
    """Rows as `infer --json` writes them, without the summary."""
    return text.splitlines()[:-1]


def test_pictures_as_infer_has_them(run: Run) -> None:
    """The detector that ships; several requests of several pictures, so that batches are not those of `infer`."""
    run.folder.joinpath("d").mkdir()
    for path in sorted(FIGURES.rglob("*.png")):
        run.folder.joinpath("d", path.name).write_bytes(path.read_bytes())
    expected = lines(run.good("infer", "--images", "d", "--program", "twopairs", "--json"))
    pictures = [(path.name, path.read_bytes()) for path in sorted(run.folder.joinpath("d").iterdir())]
    found = asked(opened("twopairs"), *(form(*pictures[i : i + 5]) for i in (0, 5, 10)))
    assert [status for status, _ in found] == [200, 200, 200]
    assert [json.dumps(row) for _, answer in found for row in answer["rows"]] == expected
    assert len(expected) == 12 and {json.loads(line)["answer"] for line in expected} == {"true", "false"}


@pytest.mark.parametrize("text", [ONE, SEVERAL])
def test_own_perceptions_and_broken_pictures(run: Run, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    install(run.folder, monkeypatch)
    (run.folder / "rules.pl").write_text(text)
    for name, image in (("a.png", YES), ("c.png", NO)):
        save(run.folder / "d" / name, image)
    (run.folder / "d" / "b.png").write_bytes(b"\x89PNG\r\n\x1a\nnot at all")
    arguments = ("--program", "rules.pl", "--perception", "readable:Readable", "--trust", "--json")
    result = run("infer", "--images", "d", *arguments)
    service = opened("rules.pl", wanted={"perception": "readable:Readable", "trust": True})
    pictures = [(path.name, path.read_bytes()) for path in sorted((run.folder / "d").iterdir())]
    (status, answer), (alone, failed) = asked(service, form(*pictures), form(pictures[1]))
    assert [json.dumps(row) for row in answer["rows"]] == lines(result.out)
    assert (status, alone) == (200, 422)  # where nothing could be answered, the status says so
    assert failed["rows"][0]["error"] == answer["rows"][1]["error"] is not None


def test_without_reasons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    (tmp_path / "rules.pl").write_text(ONE)
    service = opened(tmp_path / "rules.pl", wanted={"perception": "readable:Readable", "trust": True}, reasons=False)
    data = save(tmp_path / "a.png", YES).read_bytes()
    (_, answer), (_, facts) = asked(service, form(("a.png", data)), told({"facts": {}}))
    assert [answer["rows"][0][key] for key in ("answer", "reason")] == ["true", None]
    assert facts["rows"][0]["reason"] is None


DETECTED = [
    {"file": "a.png", "detections": [{"class": "person", "confidence": 0.9, "box": [0.1, 0.1, 0.3, 0.5]},
                                     {"class": "car", "confidence": 0.8, "box": [0.5, 0.5, 0.9, 0.9]}]},
    {"file": "b.png", "detections": [{"class": "person", "confidence": 0.1, "box": [0, 0, 1, 1]}]},
    {"file": "c.png", "detections": []},
    {"file": "d.png", "class": "car", "confidence": 0.7, "x1": 0.1, "y1": 0.1, "x2": 0.2, "y2": 0.2},
]


def test_detections_as_infer_has_them(run: Run) -> None:
    (run.folder / "rules.pl").write_text(CLASSES)
    service = opened("rules.pl", takes=("detections", "facts"))
    # A class that the program does not speak of, boxes in pixels, and more objects than there are slots.
    other = [{"file": "e.png", "width": 640, "height": 480, "detections": [
        {"class": name, "confidence": 0.9, "box": [10, 20 * i, 100, 200 + 20 * i]}
        for i, name in enumerate(("person", "dog", "car", "car", "person"))]}]
    for records, (status, answer) in zip((DETECTED, other), asked(service, told({"detections": DETECTED}),
                                                                  told({"detections": other})), strict=True):
        (run.folder / "d.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
        expected = lines(run.good("infer", "--detections", "d.jsonl", "--program", "rules.pl", "--json"))
        assert status == 200 and [json.dumps(row) for row in answer["rows"]] == expected
    assert json.loads(expected[0])["left_out"] == 2


def test_pixels_and_fractions_in_one_request(tmp_path: Path) -> None:
    """Each file is answered as it is alone, also where it has a size and boxes in fractions."""
    (tmp_path / "rules.pl").write_text(CLASSES)
    service = opened(tmp_path / "rules.pl", takes=("detections",))
    size = {"width": 640, "height": 480}
    pixels = {"file": "e.png", **size, "detections": [{"class": "car", "box": [320, 48, 640, 240]},
                                                      {"class": "person", "box": [0, 0, 64, 48]}]}
    several = [*DETECTED, {**DETECTED[0], "file": "f.png", **size}, pixels]
    requests = (several, *([one] for one in several))
    (_, together), *alone = asked(service, *(told({"detections": records}) for records in requests))
    for row, (_, answer) in zip(together["rows"], alone, strict=True):
        assert {key: row[key] for key in ("file", "score", "answer")} == {
            key: answer["rows"][0][key] for key in ("file", "score", "answer")}
    assert [row["objects"][0][:4] for row in together["rows"][-2:]] == [[0.1, 0.1, 0.3, 0.5], [0.5, 0.1, 1.0, 0.5]]


def test_classes_as_the_program_writes_them(run: Run) -> None:
    """Detectors call them otherwise than constants are written; none of them goes missing."""
    programs = {CLASSES.replace("person", name): "fire hydrant" for name in ("'fire hydrant'", "'Fire Hydrant'",
                                                                             "fire_hydrant")}
    for text, name in {**programs, CLASSES.replace("[person", "['Person', person"): "person"}.items():
        (run.folder / "rules.pl").write_text(text)
        one, other = ({"class": found, "box": [0, 0, 1, 1]} for found in (name, "car"))
        records = [{"file": "a", "detections": [one, other]}, {"file": "b", "detections": [other]}]
        service = opened("rules.pl", takes=("detections",))
        found = asked(service, *(told({"detections": several}) for several in (records, records[1:])))
        assert [[row["answer"] for row in answer["rows"]] for _, answer in found] == [["true", "false"], ["false"]]
        (run.folder / "d.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
        expected = lines(run.good("infer", "--detections", "d.jsonl", "--program", "rules.pl", "--json"))
        assert [json.dumps(row) for row in found[0][1]["rows"]] == expected


def test_facts_as_reason_has_them(run: Run) -> None:
    worlds = [{"in(obj1,img)": 0.9, "class(obj1,person)": 0.8, "in(obj2,img)": 1, "class(obj2,car)": 0.5}, {}]
    (run.folder / "rules.pl").write_text(CLASSES)
    (run.folder / "facts.jsonl").write_text("".join(json.dumps(one) + "\n" for one in worlds))
    expected = run.good("reason", "rules.pl", "--facts", "facts.jsonl", "--json").splitlines()
    ((status, answer),) = asked(opened("rules.pl", takes=("facts",)), told({"facts": worlds}))
    assert status == 200
    assert [row["score"] for row in answer["rows"]] == [round(json.loads(line)["kp(img)"], 4) for line in expected]
    assert [row["file"] for row in answer["rows"]] == ["world 1", "world 2"]
    assert "kp(img) 0.36 from in(obj1,img) 0.90, class(obj1,person) 0.80" in answer["rows"][0]["reason"]


def test_programs_without_objects_take_facts(tmp_path: Path) -> None:
    (tmp_path / "rules.pl").write_text(FACTS)
    service = opened(tmp_path / "rules.pl")
    (status, answer), (refused, why) = asked(service, told({"facts": {"rain(monday)": 0.7}}), form(("a.png", b"x")))
    assert (status, answer["rows"][0]["score"], answer["rows"][0]["answer"]) == (200, 0.7, "true")
    assert (refused, why["error"]) == (422, "this service takes facts, not pictures")


@pytest.mark.parametrize(("body", "message"), [
    ({"facts": {"nosuch(x)": 1}}, "nosuch"), ({"facts": {"rain(monday)": 2}}, "from 0 to 1"),
    ({"facts": [{}, {"wet(monday)": 1}]}, "world 2"), ({"facts": [3]}, "dict"), ({"facts": []}, "nothing to answer"),
    ({"other": []}, "must be"), ([], "must be"), ({"facts": [], "detections": []}, "must be"),
])
def test_facts_that_are_refused(tmp_path: Path, body: object, message: str) -> None:
    (tmp_path / "rules.pl").write_text(FACTS)
    ((status, answer),) = asked(opened(tmp_path / "rules.pl"), told(body))
    assert status == 422 and message in answer["error"]


@pytest.mark.parametrize(("record", "message"), [
    ({"file": "a", "detections": [{"class": "car", "box": [10, 10, 50, 50]}]}, "boxes of a are in pixels: add"),
    ({"file": "a", "detections": [{"class": "car", "box": [1, 0, 0, 0]}]}, "x1 ≤ x2"),
    ({"file": "a", "detections": [{"class": "car", "box": [0, 0, 1, 1]}] * 301}, "at most"),
    ({"file": "a", "detections": [{"class": 3, "box": [0, 0, 1, 1]}]}, "classes are numbers"),
    ({"file": "a", "detections": 3}, "detections[0]: detections is not a list"),
    ({"detections": []}, "no file"), (3, "an object"),
])
def test_detections_that_are_refused(tmp_path: Path, record: object, message: str) -> None:
    (tmp_path / "rules.pl").write_text(CLASSES)
    ((status, answer),) = asked(opened(tmp_path / "rules.pl", takes=("detections",)), told({"detections": [record]}))
    assert status == 422 and message in answer["error"]


def test_pictures_with_too_many_pixels_are_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    (tmp_path / "rules.pl").write_text(ONE)
    service = opened(tmp_path / "rules.pl", wanted={"perception": "readable:Readable", "trust": True})
    large = io.BytesIO()
    Image.new("1", (8000, 8000)).save(large, "PNG")
    bombs = [("a.png", bomb()), ("b.png", large.getvalue()), ("c.ppm", b"P6 100000 100000 255\n" + bytes(100))]
    assert max(len(data) for _, data in bombs) < 100_000
    ((status, answer),) = asked(service, form(*bombs, ("good.png", save(tmp_path / "a.png", YES).read_bytes())))
    assert status == 200 and answer["rows"][3]["answer"] == "true"
    for row in answer["rows"][:3]:
        assert "megapixels" in row["error"]
