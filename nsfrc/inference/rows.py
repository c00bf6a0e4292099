"""What came of an image, as a row: in Python, as a line of CSV, as a line of JSON.

A row of a program with one question has `label`, `answer` and, in JSON, `reason`; with several questions each has its
own, called by the target or "classes": columns `label kp(img)` and `answer kp(img)` in a CSV, objects in JSON. No atom
is written with a blank outside quotes, so that no column of scores, which is called by its atom, is taken for these.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nsfrc.errors import NsfrcError
from nsfrc.explain import Reason, as_text
from nsfrc.questions import DIGITS, Question

if TYPE_CHECKING:
    from nsfrc.inference.report_thumbnail import Thumbnail

# Spreadsheets take a cell that begins so for a formula, and a file may have any name. An apostrophe before it makes it
# text; one more where there are some already, so that they can be taken away again.
FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")


@dataclass(frozen=True, eq=False)
class Answered:
    """What came of one question.

    label: the right answer, where it is known. answer: None when the file failed. reasons: why the target, or the class
    with the highest value, has its value, then, for reports, why that of the label has, if it is another.
    """

    label: str | None = None
    answer: str | None = None
    reasons: tuple[Reason, ...] = field(default=(), repr=False)

    @property
    def right(self) -> bool | None:
        """Whether the answer is the label; None where one of them is missing."""
        return None if self.label is None or self.answer is None else self.label == self.answer

    @cached_property
    def reason(self) -> str | None:
        """Why the target, or the highest class, has its value, in lines; None where nobody asked for it."""
        return as_text(self.reasons[0]) if self.reasons else None


@dataclass(frozen=True, eq=False)
class Row:
    """What came of one image.

    file: its name below the folder; path: where it is. answers: what came of each question, by its name, which is the
    target or "classes". scores: a value for each target and class, rounded to 4 digits, empty when the file failed.
    objects: [E, D]; dimensions: the names of the D entries of an object.
    V0: [G], and thumbnail: only where a report asks for them.
    doubts: what is unlike the images that perception was made for, see `Perception.doubts`. further: how many more sure
    objects there were than the program speaks of. animated: whether it has frames after the one that was read.
    label, answer, reason, reasons: those of the only question.
    """

    file: str
    path: Path
    answers: Mapping[str, Answered] = field(default_factory=dict)
    scores: tuple[float, ...] = ()
    error: str | None = None
    objects: np.ndarray | None = field(default=None, repr=False)
    dimensions: tuple[str, ...] = field(default=(), repr=False)
    V0: np.ndarray | None = field(default=None, repr=False)
    thumbnail: Thumbnail | None = field(default=None, repr=False)
    doubts: tuple[str, ...] = ()
    further: int = 0
    animated: bool = False

    def _only(self, what: str) -> Answered:
        if len(self.answers) > 1:
            names = ", ".join(map(repr, self.answers))
            raise NsfrcError(f"a row of several questions has no {what} of its own: row.answers[NAME].{what} is that "
                             f"of one of {names}")
        return next(iter(self.answers.values()), Answered())

    @property
    def label(self) -> str | None:
        return self._only("label").label

    @property
    def answer(self) -> str | None:
        return self._only("answer").answer

    @property
    def reason(self) -> str | None:
        return self._only("reason").reason

    @property
    def reasons(self) -> tuple[Reason, ...]:
        return self._only("reasons").reasons

    @property
    def right(self) -> bool | None:
        """Whether all answers of which the label is known are right; None where no label is known, or no answer."""
        known = [one.right for one in self.answers.values() if one.right is not None]
        return all(known) if known else None


def heads(what: str, questions: Sequence[Question]) -> list[str]:
    """Columns for something that each question has: `answer`, or `answer kp(img)` where there are several."""
    return [what] if len(questions) == 1 else [f"{what} {one.name}" for one in questions]


def score_heads(questions: Sequence[Question]) -> list[str]:
    """Columns of scores: `score` of a single target, else the atoms."""
    atoms = [atom for one in questions for atom in one.atoms]
    return ["score"] if len(atoms) == 1 else atoms


def as_json(row: Row, questions: Sequence[Question]) -> str:
    """A row as one line of JSON."""
    objects = None if row.objects is None else np.round(row.objects.astype(np.float64), DIGITS).tolist()
    names = score_heads(questions)
    scores: dict[str, Any] = {"score": row.scores[0] if row.scores else None}
    if len(names) > 1:
        scores = {"scores": dict(zip(names, row.scores, strict=True)) if row.scores else None}
    return json.dumps({
        "file": row.file, **_said(row, "label", questions), **scores, **_said(row, "answer", questions),
        "error": row.error, **_said(row, "reason", questions),
        "dimensions": None if objects is None else list(row.dimensions), "objects": objects,
        **({"left_out": row.further} if row.further else {}),
    })


def _said(row: Row, what: str, questions: Sequence[Question]) -> dict[str, Any]:
    """{"answer": "true"} of the only question, {"answers": {"kp(img)": "true", ...}} of several; None without any."""
    found = {one.name: getattr(row.answers[one.name], what) for one in questions}
    if len(questions) == 1:
        return {what: found[questions[0].name]}
    return {f"{what}s": found if any(value is not None for value in found.values()) else None}


def from_json(line: str, questions: Sequence[Question]) -> Row:
    """What `as_json` wrote, without the path; raises ValueError, KeyError or TypeError on anything else."""
    data, names = json.loads(line), score_heads(questions)
    if len(questions) == 1:
        labels, answers = [data["label"]], [data["answer"]]
    else:
        labels, answers = ([None if data[what] is None else data[what][one.name] for one in questions]
                           for what in ("labels", "answers"))
    scores = {"score": data["score"]} if len(names) == 1 else data["scores"]
    values = () if answers[0] is None else tuple(float(scores[name]) for name in names)
    return _finished(data["file"], questions, labels, values, answers, data["error"], int(data.get("left_out", 0)))


def as_csv(row: Row, questions: Sequence[Question]) -> str:
    """A row as one line of CSV; text that a spreadsheet would take for a formula begins with an apostrophe."""
    scores = [f"{score:.{DIGITS}f}" for score in row.scores] or [""] * len(score_heads(questions))
    labels = [row.answers[one.name].label for one in questions]
    answers = [row.answers[one.name].answer for one in questions]
    file, error, *others = (_inert(text or "") for text in (row.file, row.error, *labels, *answers))
    return _csv_line([file, *others[: len(labels)], *scores, *others[len(labels) :], error, str(row.further or "")])


def from_csv(line: str, questions: Sequence[Question]) -> Row:
    """What `as_csv` wrote, without the path; raises ValueError or csv.Error on anything else."""
    (fields,) = csv.reader([line], strict=True)
    count, values = len(questions), len(score_heads(questions))
    if len(fields) != 3 + 2 * count + values:
        raise ValueError(f"{len(fields)} fields")
    *fields, left_out = fields
    file, *labels = (original(cell) or None for cell in fields[: 1 + count])
    *answers, error = (original(cell) or None for cell in fields[1 + count + values :])
    scores = fields[1 + count : 1 + count + values]
    given = tuple(map(float, scores)) if any(answers) else ()
    return _finished(file or "", questions, labels, given, answers, error, int(left_out or 0))


def csv_header(questions: Sequence[Question]) -> str:
    scores = [_inert(name) for name in score_heads(questions)]
    return _csv_line(["file", *heads("label", questions), *scores, *heads("answer", questions), "error",
                      "left_out"])


def _inert(text: str) -> str:
    return f"'{text}" if FORMULA.match(text) else text


def original(cell: str) -> str:
    """What a cell was before it was made to be no formula."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def _finished(
    file: str, questions: Sequence[Question], labels: Sequence[str | None], scores: tuple[float, ...],
    answers: Sequence[str | None], error: str | None, further: int = 0,
) -> Row:
    if not all(map(math.isfinite, scores)):
        raise ValueError("a score is not a number")
    found = {}
    for one, label, answer in zip(questions, labels, answers, strict=True):
        if {label, answer} - {None, *one.answers} or (answer is None) != (not scores):
            raise ValueError(f"{answer} is no answer")
        found[one.name] = Answered(label, answer)
    return Row(file, Path(file), found, scores, error, further=further)


def _csv_line(fields: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(fields)
    return text.getvalue()
