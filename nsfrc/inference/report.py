"""The report of `nsfrc infer`: one HTML file that opens offline, with a card for every image.

    with Report(path, program, perception.dimensions, {"kp(img)": 0.5}, {"perception": "yolo-n:1f2e3d4c"}) as report:
        for row in rows:
            report.add(row)
        report.close(measures)

Cards go to unnamed files beside `path` as they come, one for each state, so that memory does not grow with the number
of images and the page lists failures first without being sorted. The page is put in place whole.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from nsfrc.errors import NsfrcError
from nsfrc.inference.report_card import STATES, card, state
from nsfrc.inference.report_objects import Objects, Places
from nsfrc.inference.report_summary import Summary, ending, opening
from nsfrc.program import Program

if TYPE_CHECKING:
    from nsfrc.inference.measures import Measured
    from nsfrc.inference.rows import Row


PAGES = (".html", ".htm")


def refuse_place(path: Path, out: Path | None = None) -> None:
    """Raise where a page would take the place of something else. out: the file of rows of the same run."""
    if path.is_dir():
        raise NsfrcError(f"cannot write the report to {path}: it is a folder; name a file in it")
    if out is not None and _same(path, out):
        raise NsfrcError(f"--report {path} is the file of --out too: name another for the report, such as report.html")
    if path.suffix.lower() not in PAGES and not _is_device(path):  # such as an image, or the program
        raise NsfrcError(f"--report {path}: the name must end in .html or .htm, such as {path.stem or 'report'}.html")


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file()


class Report:
    """Collects cards and writes the page when it is closed.

    dimensions: names of the entries of an object vector. thresholds: those of targets, drawn into their diagrams.
    header: what to say about the run, as in {"threshold": "0.5 from the program"}. places: where objects without boxes
    are, see `Perception.places`.
    """

    def __init__(
        self, path: str | Path, program: Program, dimensions: Sequence[str], thresholds: Mapping[str, float],
        header: Mapping[str, str], places: Places | None = None,
    ) -> None:
        self.path = Path(path)
        refuse_place(self.path)
        self.program, self.thresholds, self.header = program, dict(thresholds), dict(header)
        self.objects = Objects(program, tuple(dimensions), places)
        self.counts = dict.fromkeys(STATES, 0)
        self.answers: dict[str, Counter[str]] = {one.name: Counter() for one in program.questions}
        self.wrong: Counter[str] = Counter()
        self.closed = False
        self._cards = {name: self._part() for name in STATES}

    def _part(self) -> IO[bytes]:
        """An unnamed file on the disk that the page will be on; it goes away by itself whatever happens."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return tempfile.TemporaryFile(dir=None if _is_device(self.path) else self.path.parent)
        except OSError as error:
            raise self._refused(error) from None

    def _refused(self, error: OSError) -> NsfrcError:
        return NsfrcError(f"cannot write the report {self.path}: {error.strerror or error}")

    def add(self, row: Row) -> None:
        """Add the card of an image."""
        if self.closed:
            raise NsfrcError(f"the report {self.path} is closed: no image can be added to it")
        text = card(row, self.objects, None if _is_device(self.path) else self.path.parent)
        try:
            # File names that are not Unicode come as lone surrogates, which UTF-8 cannot write.
            self._cards[state(row)].write(text.encode("utf-8", "replace"))
        except OSError as error:
            raise self._refused(error) from None
        self.counts[state(row)] += 1
        for name, said in row.answers.items():
            if said.answer is not None:
                self.answers[name][said.answer] += 1
            self.wrong[name] += said.right is False

    def close(self, measures: Measured | None = None, remarks: Sequence[str] = ()) -> Path:
        """Write the page, whole or not at all.

        measures: accuracy and so on, where labels are known. remarks: what to know before one trusts the answers.
        """
        return self._finish(measures, remarks, stopped=False)

    def abandon(self, measures: Measured | None = None, remarks: Sequence[str] = ()) -> Path | None:
        """Write a page of what is there, which says that it is not all; nothing when there is none."""
        if self.closed or not sum(self.counts.values()):
            self.drop()
            return None
        return self._finish(measures, remarks, stopped=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.closed:
            return
        if isinstance(error, OSError | NsfrcError):  # such as a full disk: writing more would hide it
            self.drop()
        else:
            self.abandon()

    def _finish(self, measures: Measured | None, remarks: Sequence[str], stopped: bool) -> Path:
        summary = Summary(
            self.program, self.header, self.counts, self.thresholds, measures, stopped, self.answers, self.wrong,
            tuple(remarks),
        )
        style, script = _asset("report.css"), _asset("report.js")
        top = opening(summary, style, _policy(style, script))
        try:
            if _is_device(self.path):
                with self.path.open("wb") as out:
                    self._write(out, top, ending(script))
            else:
                self._replace(top, ending(script))
        except OSError as error:
            raise self._refused(error) from None
        finally:
            self.drop()
        return self.path

    def _replace(self, top: str, end: str) -> None:
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        try:
            with temporary.open("xb") as out:
                self._write(out, top, end)
            os.replace(temporary, self.path)
        finally:
            temporary.unlink(missing_ok=True)

    def _write(self, out: IO[bytes], top: str, end: str) -> None:
        out.write(top.encode("utf-8", "replace"))
        for part in self._cards.values():
            part.seek(0)
            shutil.copyfileobj(part, out, 1 << 20)
        out.write(end.encode())

    def drop(self) -> None:
        """Let go of the cards; a page that is written stays."""
        self.closed = True
        for part in self._cards.values():
            with contextlib.suppress(OSError):  # a disk that was full still is
                part.close()


def _asset(name: str) -> str:
    return files("nsfrc.inference").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing is loaded, and no style or script but ours counts, even if one got into the page."""
    return (
        f"default-src 'none'; img-src data:; style-src {_hashed(style)}; script-src {_hashed(script)}; "
        f"base-uri 'none'; form-action 'none'"
    )


def _hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
