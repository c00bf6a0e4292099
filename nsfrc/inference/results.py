"""Results: a row an image, written as CSV or JSON lines while the images go by.

Rows go to OUT.part, batch by batch, and the file becomes OUT when all are there. OUT.part.json says what they were
made with, so that only the same question is gone on with.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from nsfrc.artifact import write_whole
from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import FALSE, NONE, TRUE
from nsfrc.inference.images import Picture

DIGITS = 4
CSV, JSONL = ".csv", ".jsonl"


@dataclass(frozen=True, eq=False)
class Row:
    """What came of one image.

    file: its name below the folder; path: where it is. label: the right answer, where it is known. scores: a value a
    target, rounded to 4 digits, empty when the file failed. right: whether the answer is the label.
    objects [E, D]; V0 and V_T [G] and picture only where they were asked for.
    doubts: what is unlike the images that perception was made for, see `Perception.doubts`. further: how many more sure
    objects there were than the program speaks of. animated: whether it has frames after the one that was read.
    dimensions: the names of the D entries of an object. reason: why the highest target has its value, where it was
    asked for.
    """

    file: str
    path: Path
    label: str | None = None
    scores: tuple[float, ...] = ()
    answer: str | None = None
    right: bool | None = None
    error: str | None = None
    objects: np.ndarray | None = field(default=None, repr=False)
    V0: np.ndarray | None = field(default=None, repr=False)
    V_T: np.ndarray | None = field(default=None, repr=False)
    picture: Picture | None = field(default=None, repr=False)
    doubts: tuple[str, ...] = ()
    further: int = 0
    animated: bool = False
    dimensions: tuple[str, ...] = ()
    reason: str | None = None


def as_json(row: Row, targets: Sequence[str]) -> str:
    """A row as one line of JSON."""
    scores: dict[str, Any] = {"score": row.scores[0] if row.scores else None}
    if len(targets) > 1:
        scores = {"scores": dict(zip(targets, row.scores, strict=True)) if row.scores else None}
    objects = None if row.objects is None else np.round(row.objects.astype(np.float64), DIGITS).tolist()
    return json.dumps({"file": row.file, "label": row.label, **scores, "answer": row.answer, "error": row.error,
                       "reason": row.reason, "dimensions": None if objects is None else list(row.dimensions),
                       "objects": objects})


def from_json(line: str, targets: Sequence[str]) -> Row:
    """What `as_json` wrote, without the path; raises ValueError, KeyError or TypeError on anything else."""
    data = json.loads(line)
    scores = data["scores"] if len(targets) > 1 else {targets[0]: data["score"]}
    values = () if data["answer"] is None else tuple(float(scores[name]) for name in targets)
    return _finished(data["file"], data["label"], values, data["answer"], data["error"])


def as_csv(row: Row, targets: Sequence[str]) -> str:
    scores = [f"{score:.{DIGITS}f}" for score in row.scores] or [""] * len(targets)
    return _csv_line([row.file, row.label or "", *scores, row.answer or "", row.error or ""])


def from_csv(line: str, targets: Sequence[str]) -> Row:
    """What `as_csv` wrote, without the path; raises ValueError or csv.Error on anything else."""
    (fields,) = csv.reader([line], strict=True)
    if len(fields) != len(targets) + 4:
        raise ValueError(f"{len(fields)} fields")
    file, label, *scores, answer, error = fields
    return _finished(file, label or None, tuple(map(float, scores)) if answer else (), answer or None, error or None)


def csv_header(targets: Sequence[str]) -> str:
    return _csv_line(["file", "label", *(targets if len(targets) > 1 else ["score"]), "answer", "error"])


def _finished(file: str, label: str | None, scores: tuple[float, ...], answer: str | None, error: str | None) -> Row:
    if not all(map(math.isfinite, scores)):
        raise ValueError("a score is no number")
    right = None if label is None or answer is None else label == answer
    return Row(file, Path(file), label, scores, answer, right, error)


def _csv_line(fields: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(fields)
    return text.getvalue()


class Writer:
    """Writes rows to OUT.part; `finish` makes it OUT. Leaving the block early keeps OUT.part."""

    def __init__(self, out: Path, targets: Sequence[str], made_with: Mapping[str, str], resume: bool = False) -> None:
        """made_with: what the rows depend on, in words; `resume` goes on only if it is the same."""
        if out.suffix.lower() not in (CSV, JSONL):
            raise NsfrcError(f"--out {out}: the name must end in .csv or .jsonl")
        if out.is_dir():
            raise NsfrcError(f"--out {out} is a folder: name a file")
        self.out, self.targets, self.made_with = out, tuple(targets), dict(made_with)
        self.part = out.with_name(f"{out.name}.part")
        self.note = out.with_name(f"{out.name}.part.json")
        csv_rows = out.suffix.lower() == CSV
        self._header = csv_header(targets) if csv_rows else None
        self._line: Callable[[Row, Sequence[str]], str] = as_csv if csv_rows else as_json
        self._parse: Callable[[str, Sequence[str]], Row] = from_csv if csv_rows else from_json
        there = self.part.exists()
        self.resumed, self.replaced = resume and there, there and not resume
        try:
            self._file = self._go_on() if self.resumed else self._start()
        except OSError as error:
            raise NsfrcError(f"cannot write {self.part}: {error.strerror}") from None

    def _start(self) -> IO[bytes]:
        # A part without its note is refused, so a stop between these lines loses nothing but an empty part.
        self.note.unlink(missing_ok=True)
        write_whole(self.part, b"" if self._header is None else f"{self._header}\n".encode())
        write_whole(self.note, json.dumps(self.made_with, indent=1).encode())
        return open(self.part, "ab")

    def _go_on(self) -> IO[bytes]:
        self._check_note()
        file = open(self.part, "r+b")  # noqa: SIM115 (closed by __exit__)
        file.truncate(_whole_lines(file))
        file.seek(0)
        if self._header is not None and file.readline().decode("utf-8", "replace").rstrip("\n") != self._header:
            file.close()
            raise self._spoilt(1)
        file.seek(0, os.SEEK_END)
        return file

    def _check_note(self) -> None:
        try:
            note = json.loads(self.note.read_bytes())
        except (OSError, ValueError):
            note = None
        if not isinstance(note, dict):
            raise NsfrcError(f"{self.note} is missing or damaged, so nobody knows what {self.part} was made with: "
                             f"leave out --resume to start again")
        for name in {**note, **self.made_with}:
            was, now = note.get(name), self.made_with.get(name)
            if was != now:
                raise NsfrcError(f"{self.part} was made with {name} {was}, and now it is {now}: "
                                 f"leave out --resume to start again")

    def finished(self) -> Iterator[Row]:
        """The rows that are there already, one after the other."""
        if not self.resumed:
            return
        with open(self.part, "rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1 and self._header is not None:
                    continue
                try:
                    row = self._parse(line.decode().rstrip("\n"), self.targets)
                except (ValueError, KeyError, TypeError, csv.Error):
                    raise self._spoilt(number) from None
                answers = (TRUE, FALSE) if len(self.targets) == 1 else (*self.targets, NONE)
                if {row.answer, row.label} - {None, *answers}:
                    raise self._spoilt(number)
                yield row

    def _spoilt(self, number: int) -> NsfrcError:
        return NsfrcError(f"{self.part}:{number}: not a row of results: leave out --resume to start again")

    def write(self, rows: Sequence[Row]) -> None:
        """Append rows and hand them to the system, so that a later stop cannot lose them."""
        try:
            self._file.write("".join(f"{self._line(row, self.targets)}\n" for row in rows).encode())
            self._file.flush()
        except OSError as error:
            raise NsfrcError(f"cannot write {self.part}: {error.strerror}") from None

    def finish(self) -> None:
        self._file.close()
        try:
            os.replace(self.part, self.out)
            self.note.unlink(missing_ok=True)
        except OSError as error:
            raise NsfrcError(f"cannot write {self.out}: {error.strerror}; the rows are in {self.part}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _whole_lines(file: IO[bytes]) -> int:
    """The length of a file up to its last line end."""
    size = file.seek(0, os.SEEK_END)
    while size:
        start = max(0, size - 65536)
        file.seek(start)
        if (found := file.read(size - start).rfind(b"\n")) >= 0:
            return start + found + 1
        size = start
    return 0
