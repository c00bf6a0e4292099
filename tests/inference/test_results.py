"""Rows on disk: whole, in order, and gone on with."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from nsfrc.errors import NsfrcError
from nsfrc.inference.results import Row, Writer

ONE, TWO = ["kp(img)"], ["a(img)", "b(img,'x, y')"]
MADE = {"program": "rules 1", "threshold": "0.5"}


def row(file: str, *scores: float, label: str | None = "true", answer: str | None = "true") -> Row:
    if len(scores) > 1:
        label, answer = TWO[0], TWO[1]
    return Row(file, Path(file), label, scores, answer, None if label is None else answer == label,
               objects=np.array([[0.123456, 1]], dtype=np.float32), dimensions=("red", "objectness"))


FAILED = Row('say "no", twice.png', Path("x"), None, error="damaged, or cut off")


@pytest.mark.parametrize("targets", [ONE, TWO])
def test_csv(targets: list[str], tmp_path: Path) -> None:
    scores = (0.25,) if targets is ONE else (0.25, 0.5)
    with Writer(tmp_path / "r.csv", targets, MADE) as writer:
        writer.write([row("a.png", *scores), FAILED])
        assert not (tmp_path / "r.csv").exists()
        writer.finish()
    with open(tmp_path / "r.csv", newline="", encoding="utf-8") as file:
        header, first, second = csv.reader(file)
    assert header == ["file", "label", *(["score"] if targets is ONE else TWO), "answer", "error"]
    label, answer = ("true", "true") if targets is ONE else TWO
    assert first == ["a.png", label, *[f"{s:.4f}" for s in scores], answer, ""]
    assert second == [FAILED.file, "", *[""] * len(targets), "", FAILED.error]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.csv"]


def test_json_lines(tmp_path: Path) -> None:
    for name, targets, scores in (("one", ONE, (0.25,)), ("two", TWO, (0.25, 0.5))):
        with Writer(tmp_path / f"{name}.jsonl", targets, MADE) as writer:
            writer.write([row("a.png", *scores), FAILED])
            writer.finish()
    one, failed = map(json.loads, (tmp_path / "one.jsonl").read_text().splitlines())
    assert one == {"file": "a.png", "label": "true", "score": 0.25, "answer": "true", "error": None,
                   "reason": None, "dimensions": ["red", "objectness"], "objects": [[0.1235, 1.0]]}
    assert failed == {"file": FAILED.file, "label": None, "score": None, "answer": None, "error": FAILED.error,
                      "reason": None, "dimensions": None, "objects": None}
    two = json.loads((tmp_path / "two.jsonl").read_text().splitlines()[0])
    assert two["scores"] == dict(zip(TWO, (0.25, 0.5), strict=True))


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("targets", [ONE, TWO])
def test_resume(targets: list[str], suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"r.{suffix}"
    rows = [row(f"{i}.png", *[0.25] * len(targets)) for i in range(4)] + [FAILED]
    with Writer(out, targets, MADE) as writer:
        writer.write(rows)
        writer.finish()
    whole = out.read_bytes()
    out.unlink()
    with Writer(out, targets, MADE) as writer:
        writer.write([rows[0], FAILED])
    part = tmp_path / f"r.{suffix}.part"
    part.write_bytes(part.read_bytes() + b'2.png,tr')  # half a line, as a crash leaves it
    with Writer(out, targets, MADE, resume=True) as writer:
        assert writer.resumed
        first, second = writer.finished()
        assert (first.file, first.label, first.scores, first.answer, first.right, first.error) == (
            "0.png", rows[0].label, rows[0].scores, rows[0].answer, targets is ONE, None)
        assert (second.file, second.scores, second.answer, second.error) == (FAILED.file, (), None, FAILED.error)
        writer.write(rows[1:4])
        writer.finish()
    assert sorted(out.read_bytes().splitlines()) == sorted(whole.splitlines())
    assert [p.name for p in tmp_path.iterdir()] == [out.name]


def test_a_new_start_forgets_the_part(tmp_path: Path) -> None:
    for _ in range(2):
        with Writer(tmp_path / "r.csv", ONE, MADE) as writer:
            writer.write([row("a.png", 0.5)])
    with Writer(tmp_path / "r.csv", ONE, MADE, resume=True) as writer:
        assert len(list(writer.finished())) == 1
    with Writer(tmp_path / "other.csv", ONE, MADE, resume=True) as writer:
        assert not writer.resumed and not list(writer.finished())


def test_another_question_is_refused(tmp_path: Path) -> None:
    with Writer(tmp_path / "r.csv", ONE, MADE) as writer:
        writer.write([row("a.png", 0.5)])
    before = (tmp_path / "r.csv.part").read_bytes()
    with pytest.raises(NsfrcError, match=r"made with threshold 0.5, and now it is 0.7: leave out --resume"):
        Writer(tmp_path / "r.csv", ONE, {**MADE, "threshold": "0.7"}, resume=True)
    with pytest.raises(NsfrcError, match=r"r\.csv\.part:1: not a row"):
        Writer(tmp_path / "r.csv", TWO, MADE, resume=True)
    assert (tmp_path / "r.csv.part").read_bytes() == before


@pytest.mark.parametrize("note", [None, "{", "[]"])
def test_a_part_of_unknown_origin_is_refused(note: str | None, tmp_path: Path) -> None:
    with Writer(tmp_path / "r.csv", ONE, MADE) as writer:
        writer.write([row("a.png", 0.5)])
    if note is None:
        (tmp_path / "r.csv.part.json").unlink()
    else:
        (tmp_path / "r.csv.part.json").write_text(note)
    with pytest.raises(NsfrcError, match="nobody knows what"):
        Writer(tmp_path / "r.csv", ONE, MADE, resume=True)


@pytest.mark.parametrize(("suffix", "line"), [
    ("csv", b"a.png,true"), ("csv", b"a.png,true,much,true,"), ("csv", b"\xff\xfe"), ("csv", b'"a'),
    ("csv", b"a.png,,0.5,maybe,"), ("csv", b"a.png,true,nan,true,"), ("csv", b"a.png,true,inf,true,"),
    ("jsonl", b"[]"), ("jsonl", b"{}"), ("jsonl", b"{"), ("jsonl", b'{"file": 1, "score": null, "answer": "x"}'),
])
def test_spoilt_rows_are_refused(suffix: str, line: bytes, tmp_path: Path) -> None:
    with Writer(tmp_path / f"r.{suffix}", ONE, MADE) as writer:
        writer.write([row("a.png", 0.5)])
    part = tmp_path / f"r.{suffix}.part"
    part.write_bytes(part.read_bytes() + line + b"\n")
    number = 3 if suffix == "csv" else 2
    with Writer(tmp_path / f"r.{suffix}", ONE, MADE, resume=True) as writer, pytest.raises(
        NsfrcError, match=f"r.{suffix}.part:{number}: not a row of results"
    ):
        list(writer.finished())


def test_where_rows_cannot_go(tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match=r"must end in \.csv or \.jsonl"):
        Writer(tmp_path / "r.xlsx", ONE, MADE)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(NsfrcError, match="is a folder"):
        Writer(tmp_path / "folder.csv", ONE, MADE)
    (tmp_path / "file").touch()
    with pytest.raises(NsfrcError, match="cannot write"):
        Writer(tmp_path / "file" / "r.csv", ONE, MADE)
