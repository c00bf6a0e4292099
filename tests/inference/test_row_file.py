"""Rows on disk: whole, in order, and gone on with."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from nsfrc.errors import NsfrcError
from nsfrc.inference.row_file import row_file
from nsfrc.inference.rows import Answered, Row
from nsfrc.questions import Question, questions

ATOMS = ["a(img)", "b(img,'x, y')"]
ONE, TWO = questions(["kp(img)"]), questions(ATOMS, ATOMS)  # a target, and two classes
MADE = {"program": "rules 1", "threshold": "0.5"}


def row(file: str, *scores: float, label: str | None = "true", answer: str | None = "true") -> Row:
    name = "kp(img)"
    if len(scores) > 1:
        name, label, answer = "classes", *ATOMS
    return Row(file, Path(file), {name: Answered(label, answer)}, scores,
               objects=np.array([[0.123456, 1]], dtype=np.float32), dimensions=("red", "objectness"))


FAILED = Row('say "no", twice.png', Path("x"), dict.fromkeys(("kp(img)", "classes"), Answered()),
             error="damaged, or cut off")


@pytest.mark.parametrize("asked", [ONE, TWO])
def test_csv(asked: tuple[Question, ...], tmp_path: Path) -> None:
    scores = (0.25,) if asked is ONE else (0.25, 0.5)
    with row_file(tmp_path / "r.csv", asked, MADE) as writer:
        writer.rows([row("a.png", *scores), FAILED])
        assert not (tmp_path / "r.csv").exists()
        writer.finish()
    with open(tmp_path / "r.csv", newline="", encoding="utf-8") as file:
        header, first, second = csv.reader(file)
    assert header == ["file", "label", *(["score"] if asked is ONE else ATOMS), "answer", "error", "left_out"]
    label, answer = ("true", "true") if asked is ONE else ATOMS
    assert first == ["a.png", label, *[f"{s:.4f}" for s in scores], answer, "", ""]
    assert second == [FAILED.file, "", *[""] * len(asked[0].atoms), "", FAILED.error, ""]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.csv"]


def test_json_lines(tmp_path: Path) -> None:
    for name, asked, scores in (("one", ONE, (0.25,)), ("two", TWO, (0.25, 0.5))):
        with row_file(tmp_path / f"{name}.jsonl", asked, MADE) as writer:
            writer.rows([row("a.png", *scores), FAILED])
            writer.finish()
    one, failed = map(json.loads, (tmp_path / "one.jsonl").read_text().splitlines())
    assert one == {"file": "a.png", "label": "true", "score": 0.25, "answer": "true", "error": None,
                   "reason": None, "dimensions": ["red", "objectness"], "objects": [[0.1235, 1.0]]}
    assert failed == {"file": FAILED.file, "label": None, "score": None, "answer": None, "error": FAILED.error,
                      "reason": None, "dimensions": None, "objects": None}
    two = json.loads((tmp_path / "two.jsonl").read_text().splitlines()[0])
    assert two["scores"] == dict(zip(ATOMS, (0.25, 0.5), strict=True))


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("asked", [ONE, TWO])
def test_resume(asked: tuple[Question, ...], suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"r.{suffix}"
    rows = [row(f"{i}.png", *[0.25] * len(asked[0].atoms)) for i in range(4)] + [FAILED]
    with row_file(out, asked, MADE) as writer:
        writer.rows(rows)
        writer.finish()
    whole = out.read_bytes()
    out.unlink()
    with row_file(out, asked, MADE) as writer:
        writer.rows([rows[0], FAILED])
    part = tmp_path / f"r.{suffix}.part"
    part.write_bytes(part.read_bytes() + b'2.png,tr')  # half a line, as a crash leaves it
    with row_file(out, asked, MADE, resume=True) as writer:
        assert writer.resumed
        first, second = writer.earlier()
        assert (first.file, first.label, first.scores, first.answer, first.right, first.error) == (
            "0.png", rows[0].label, rows[0].scores, rows[0].answer, asked is ONE, None)
        assert (second.file, second.scores, second.answer, second.error) == (FAILED.file, (), None, FAILED.error)
        writer.rows(rows[1:4])
        writer.finish()
    assert sorted(out.read_bytes().splitlines()) == sorted(whole.splitlines())
    assert [p.name for p in tmp_path.iterdir()] == [out.name]


STRANGE = ["=1+1.png", "+1.png", "-1.png", "@sum.png", "'=1.png", "''quoted.png", "＝1.png", "plain-=.png"]


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    """A spreadsheet would run what begins with = + - @; names come back as they were."""
    targets = ["=a(img)", "-b(img)"]
    asked = questions(targets, targets)
    rows = [Row(name, Path("x"), {"classes": Answered("=a(img)", "-b(img)")}, (0.25, 0.5)) for name in STRANGE]
    rows.append(Row("@bad.png", Path("x"), {"classes": Answered()}, error="=damaged"))
    with row_file(tmp_path / "r.csv", asked, MADE) as writer:
        writer.rows(rows)
    with open(tmp_path / "r.csv.part", newline="", encoding="utf-8") as file:
        cells = [cell for line in csv.reader(file) for cell in line]
    assert not [cell for cell in cells if cell.startswith(tuple("=+-@＝"))]
    assert "'=1+1.png" in cells and "plain-=.png" in cells and "''quoted.png" in cells and "0.2500" in cells
    with row_file(tmp_path / "r.csv", asked, MADE, resume=True) as writer:
        assert [(r.file, r.label, r.answer, r.error) for r in writer.earlier()] == [
            (r.file, r.label, r.answer, r.error) for r in rows]


def test_a_new_start_forgets_the_part(tmp_path: Path) -> None:
    for _ in range(2):
        with row_file(tmp_path / "r.csv", ONE, MADE) as writer:
            writer.rows([row("a.png", 0.5)])
    with row_file(tmp_path / "r.csv", ONE, MADE, resume=True) as writer:
        assert len(list(writer.earlier())) == 1
    with row_file(tmp_path / "other.csv", ONE, MADE, resume=True) as writer:
        assert not writer.resumed and not list(writer.earlier())


def test_another_question_is_refused(tmp_path: Path) -> None:
    with row_file(tmp_path / "r.csv", ONE, MADE) as writer:
        writer.rows([row("a.png", 0.5)])
    before = (tmp_path / "r.csv.part").read_bytes()
    with pytest.raises(NsfrcError, match=r"made with threshold 0.5, and now it is 0.7: leave out --resume"):
        row_file(tmp_path / "r.csv", ONE, {**MADE, "threshold": "0.7"}, resume=True)
    with pytest.raises(NsfrcError, match=r"r\.csv\.part:1: not a row"):
        row_file(tmp_path / "r.csv", TWO, MADE, resume=True)
    assert (tmp_path / "r.csv.part").read_bytes() == before


@pytest.mark.parametrize("note", [None, "{", "[]"])
def test_a_part_of_unknown_origin_is_refused(note: str | None, tmp_path: Path) -> None:
    with row_file(tmp_path / "r.csv", ONE, MADE) as writer:
        writer.rows([row("a.png", 0.5)])
    if note is None:
        (tmp_path / "r.csv.part.json").unlink()
    else:
        (tmp_path / "r.csv.part.json").write_text(note)
    with pytest.raises(NsfrcError, match="it is not known what"):
        row_file(tmp_path / "r.csv", ONE, MADE, resume=True)


@pytest.mark.parametrize(("suffix", "line"), [
    ("csv", b"a.png,true"), ("csv", b"a.png,true,much,true,"), ("csv", b"\xff\xfe"), ("csv", b'"a'),
    ("csv", b"a.png,,0.5,maybe,,"), ("csv", b"a.png,true,nan,true,,"), ("csv", b"a.png,true,inf,true,,"),
    ("jsonl", b"[]"), ("jsonl", b"{}"), ("jsonl", b"{"), ("jsonl", b'{"file": 1, "score": null, "answer": "x"}'),
])
def test_spoilt_rows_are_refused(suffix: str, line: bytes, tmp_path: Path) -> None:
    with row_file(tmp_path / f"r.{suffix}", ONE, MADE) as writer:
        writer.rows([row("a.png", 0.5)])
    part = tmp_path / f"r.{suffix}.part"
    part.write_bytes(part.read_bytes() + line + b"\n")
    number = 3 if suffix == "csv" else 2
    with row_file(tmp_path / f"r.{suffix}", ONE, MADE, resume=True) as writer, pytest.raises(
        NsfrcError, match=f"r.{suffix}.part:{number}: not a row of results"
    ):
        list(writer.earlier())


def test_where_rows_cannot_go(tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match=r"must end in \.csv or \.jsonl"):
        row_file(tmp_path / "r.xlsx", ONE, MADE)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(NsfrcError, match="is a folder"):
        row_file(tmp_path / "folder.csv", ONE, MADE)
    (tmp_path / "file").touch()
    with pytest.raises(NsfrcError, match="cannot write"):
        row_file(tmp_path / "file" / "r.csv", ONE, MADE)
