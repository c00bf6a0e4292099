"""Rows in a file, CSV or JSON lines, written while the images go by.

Rows go to OUT.part, batch by batch, and the file becomes OUT when all are there. OUT.part.json says what they were
made with, so that only the same question is gone on with. A lock keeps other runs away from the three of them.
"""

from __future__ import annotations

import csv
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Self

from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole
from nsfrc.inference.lock import Lock
from nsfrc.inference.rows import Row, as_csv, as_json, csv_header, from_csv, from_json
from nsfrc.inference.sinks import Closing, Sink, Written
from nsfrc.questions import Question


class RowFile(Sink, ABC):
    """Takes rows into OUT.part; `end` makes it OUT, unless the run was stopped. Closing it early keeps OUT.part.

    count: rows that are in it, those of an earlier run included.
    """

    header: str | None = None

    def __init__(
        self, out: Path, questions: Sequence[Question], made_with: Mapping[str, str], resume: bool = False
    ) -> None:
        """made_with: what the rows depend on, in words; `resume` goes on only if it is the same."""
        self.out, self.questions, self.made_with = out, tuple(questions), dict(made_with)
        self.part = out.with_name(f"{out.name}.part")
        self.note = out.with_name(f"{out.name}.part.json")
        self.count = 0
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            self._lock = Lock(out)
        except OSError as error:
            raise NsfrcError(f"cannot write {self.part}: {error.strerror}") from None
        there = self.part.exists()
        self.resumed, self.replaced = resume and there, there and not resume
        try:
            self._file = self._go_on() if self.resumed else self._start()
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError):
                raise NsfrcError(f"cannot write {self.part}: {error.strerror}") from None
            raise

    @abstractmethod
    def line(self, row: Row) -> str:
        """A row as a line of the file."""

    @abstractmethod
    def parse(self, line: str) -> Row:
        """What `line` wrote; raises ValueError, KeyError, TypeError or csv.Error on anything else."""

    def notice(self, resume: bool) -> str | None:
        """What to say of the part before the first row."""
        if resume and not self.resumed:
            return f"there is no {self.part} to continue: starting at the first image"
        if self.replaced:
            return f"{self.part}, the rows of an interrupted run, is replaced: --resume would have continued it"
        return None

    def _start(self) -> IO[bytes]:
        # A part without its note is refused, so a stop between these lines loses nothing but an empty part.
        self.note.unlink(missing_ok=True)
        write_whole(self.part, b"" if self.header is None else f"{self.header}\n".encode())
        write_whole(self.note, json.dumps(self.made_with, indent=1).encode())
        return open(self.part, "ab")

    def _go_on(self) -> IO[bytes]:
        self._check_note()
        file = open(self.part, "r+b")  # noqa: SIM115 (closed by `close`)
        file.truncate(_whole_lines(file))
        file.seek(0)
        if self.header is not None and file.readline().decode("utf-8", "replace").rstrip("\n") != self.header:
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
            raise NsfrcError(f"{self.note} is missing or damaged, so it is not known what {self.part} was made with: "
                             f"leave out --resume to start again")
        for name in {**note, **self.made_with}:
            was, now = note.get(name), self.made_with.get(name)
            if was != now:
                raise NsfrcError(f"{self.part} was made with {name} {was}, and now it is {now}: "
                                 f"leave out --resume to start again")

    def earlier(self) -> Iterator[Row]:
        """The rows that are there already, one after the other."""
        if not self.resumed:
            return
        with open(self.part, "rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1 and self.header is not None:
                    continue
                try:
                    row = self.parse(line.decode().rstrip("\n"))
                except (ValueError, KeyError, TypeError, csv.Error):
                    raise self._spoilt(number) from None
                self.count += 1
                yield row

    def _spoilt(self, number: int) -> NsfrcError:
        return NsfrcError(f"{self.part}:{number}: not a row of results: leave out --resume to start again")

    def rows(self, rows: Sequence[Row]) -> None:
        """Append rows and hand them to the system, so that a later stop cannot lose them."""
        try:
            self._file.write("".join(f"{self.line(row)}\n" for row in rows).encode())
            self._file.flush()
        except OSError as error:
            raise NsfrcError(f"cannot write {self.part}: {error.strerror}") from None
        self.count += len(rows)

    def end(self, closing: Closing) -> Written:
        if closing.stopped:
            self._file.close()
            return Written(self.part, rows=self.count)
        self.finish()
        return Written(self.out, rows=self.count)

    def finish(self) -> None:
        """Make the part the whole file, if it is still the one that was written."""
        try:
            self._refuse_another()
            self._file.close()
            os.replace(self.part, self.out)
            self.note.unlink(missing_ok=True)
        except OSError as error:
            raise NsfrcError(f"cannot write {self.out}: {error.strerror}; the rows are in {self.part}") from None

    def _refuse_another(self) -> None:
        """Raise where the part is another file by now, as it may be where file systems have no locks."""
        try:
            if os.path.samestat(os.fstat(self._file.fileno()), self.part.stat()):
                return
        except FileNotFoundError:
            pass
        raise NsfrcError(f"{self.part} was removed or replaced while it was written, perhaps by another run: "
                         f"{self.out} is not complete; run the command again")

    def close(self) -> None:
        self._file.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class CsvFile(RowFile):
    """A line of CSV a row, below a header."""

    def __init__(
        self, out: Path, questions: Sequence[Question], made_with: Mapping[str, str], resume: bool = False
    ) -> None:
        self.header = csv_header(questions)
        super().__init__(out, questions, made_with, resume)

    def line(self, row: Row) -> str:
        return as_csv(row, self.questions)

    def parse(self, line: str) -> Row:
        return from_csv(line, self.questions)


class JsonLinesFile(RowFile):
    """A JSON object a row, with its objects and the reason."""

    reasons = True

    def line(self, row: Row) -> str:
        return as_json(row, self.questions)

    def parse(self, line: str) -> Row:
        return from_json(line, self.questions)


KINDS: dict[str, type[RowFile]] = {".csv": CsvFile, ".jsonl": JsonLinesFile}


def refuse_rows(out: Path) -> None:
    """Raise where rows cannot go by the name alone."""
    if out.suffix.lower() not in KINDS:
        raise NsfrcError(f"--out {out}: the name must end in {' or '.join(KINDS)}")
    if out.is_dir():
        raise NsfrcError(f"--out {out} is a folder: name a file")


def row_file(out: Path, questions: Sequence[Question], made_with: Mapping[str, str], resume: bool = False) -> RowFile:
    """The file for rows that the ending of its name asks for."""
    refuse_rows(out)
    return KINDS[out.suffix.lower()](out, questions, made_with, resume)


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
