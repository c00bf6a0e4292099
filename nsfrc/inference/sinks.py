"""Where rows go: a sink is told what is to come, is given rows batch by batch, and is told that it is over.

A file of rows, a report, what is shown in a terminal and what is counted on the way are all sinks. What a row must
have for them (the reason, a picture) they say themselves, so that it is made once however many ask for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nsfrc.inference.measures import Measured

if TYPE_CHECKING:
    from nsfrc.inference.report import Report
    from nsfrc.inference.rows import Row
    from nsfrc.inference.session import Session

NAMED = 3  # failed files that are kept by name


@dataclass(frozen=True, eq=False)
class Opening:
    """What is to come. total: how many rows, None where nobody knows; names: those of the first files; to_file: whether
    rows go to a file too.

    notices: what to say before the first row, besides the remarks of the session.
    """

    session: Session
    total: int | None
    names: tuple[str, ...] = ()
    to_file: bool = False
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Written:
    """A file that a sink has written. rows: how many, in a file of rows; None for a report."""

    path: Path
    rows: int | None = None


@dataclass(frozen=True, eq=False)
class Closing:
    """How it ended. remarks: what to know before one trusts the answers. failed: files without an answer, the first of
    them by name. stopped: whether images are missing at the end. written: the files that there are now.
    """

    measures: Measured
    remarks: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    stopped: bool = False
    written: tuple[Written, ...] = ()

    def failures(self) -> str | None:
        """What to say of files that gave no answer."""
        if not (count := self.measures.failed):
            return None
        more = f" and {count - len(self.failed)} more" if count > len(self.failed) else ""
        named = f": {'; '.join(self.failed)}{more}" if self.failed else ""
        return f"{count} of {self.measures.count} files gave no answer{named}"


class Sink:
    """Takes rows. reasons, pictures: whether its rows must have the reason, and what a report shows."""

    reasons = False
    pictures = False

    def start(self, opening: Opening) -> None:
        """Before the first row."""

    def rows(self, rows: Sequence[Row]) -> None:
        """The next rows."""

    def end(self, closing: Closing) -> Written | None:
        """After the last row, or where the run was stopped; what was written, if anything."""
        return None

    def close(self) -> None:
        """Let go of everything; called once at the very end, after errors too."""


@dataclass
class Tally(Sink):
    """Counts answers, and keeps the names of the first files that failed."""

    measures: Measured
    failed: list[str] = field(default_factory=list)

    def rows(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.measures.add(row)
            if row.error is not None and len(self.failed) < NAMED:
                self.failed.append(f"{row.file} ({row.error})")


class ReportFile(Sink):
    """The report, an HTML page; what a stopped run has seen makes a page that says so."""

    reasons = True
    pictures = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.report: Report | None = None

    def start(self, opening: Opening) -> None:
        from nsfrc.inference.report import Report

        pipe = opening.session.pipe
        self.report = Report(self.path, pipe.program, pipe.perception.dimensions, opening.session.thresholds,
                             opening.session.settings, pipe.perception.places)

    def rows(self, rows: Sequence[Row]) -> None:
        assert self.report is not None, "start comes first"
        for row in rows:
            self.report.add(row)

    def end(self, closing: Closing) -> Written | None:
        assert self.report is not None, "start comes first"
        finish = self.report.abandon if closing.stopped else self.report.close
        page = finish(closing.measures, closing.remarks)
        return None if page is None else Written(page)

    def close(self) -> None:
        if self.report is not None:
            self.report.drop()
