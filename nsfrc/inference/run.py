"""One pass over images for however many outputs: each image is decoded once, answered once and explained once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from types import FrameType

from nsfrc.inference.folders import Item, Listing
from nsfrc.inference.measures import Measured
from nsfrc.inference.notes import Notes
from nsfrc.inference.predictor import Predictor
from nsfrc.inference.report import refuse_place
from nsfrc.inference.row_file import RowFile, refuse_rows, row_file
from nsfrc.inference.session import Session
from nsfrc.inference.sinks import Closing, Opening, ReportFile, Sink, Tally
from nsfrc.inference.stream import Reading, stream

FIRST = 40  # files of which names are told before the first row


@dataclass(frozen=True)
class Outputs:
    """The files to write. out: rows, as CSV or JSON lines; resume: whether to go on with its part; report: a page."""

    out: Path | None = None
    resume: bool = False
    report: Path | None = None

    def refuse(self) -> None:
        """Raise where a file cannot go by its name alone, before anything is loaded."""
        if self.report is not None:
            refuse_place(self.report, self.out)
        if self.out is not None:
            refuse_rows(self.out)


def run(
    session: Session, listing: Listing, view: Sink, outputs: Outputs = Outputs(),  # noqa: B008 (both are frozen)
    reading: Reading = Reading(),  # noqa: B008
) -> Closing:
    """Answer for every image that is not in the file of rows already; `view` shows rows to whoever waits for them.

    Ctrl-C ends it early and in order: every batch is with all outputs or with none. For frames of a camera or an
    address, that is how it ends, and everything is written.
    """
    with ExitStack() as stack:
        rows = _rows(session, outputs)
        files: list[Sink] = [] if rows is None else [rows]
        files += [] if outputs.report is None else [ReportFile(outputs.report)]
        tally, notes = Tally(Measured(session.questions)), Notes(session)
        sinks: list[Sink] = [*files, tally, notes, view]
        for sink in sinks:
            stack.callback(sink.close)
        done = _earlier(rows, tally)
        left = Left(listing, done)
        notice = None if rows is None else rows.notice(outputs.resume)
        total, names = (None, (f"{listing.called}#00000",)) if listing.live else (len(left), left.names())
        opening = Opening(session, total, names, rows is not None, () if notice is None else (notice,))
        for sink in sinks:
            sink.start(opening)
        stopped = _pass(predictor(session, sinks), left, sinks, replace(reading, live=listing.live))
        closing = Closing(tally.measures, notes.remarks(), tuple(tally.failed), stopped)
        written = tuple(one for sink in files if (one := sink.end(closing)) is not None)
        closing = replace(closing, written=written)
        view.end(closing)
    return closing


def predictor(session: Session, sinks: Sequence[Sink]) -> Predictor:
    """One that makes the rows that these sinks need."""
    asked = session.asked(any(sink.reasons for sink in sinks), any(sink.pictures for sink in sinks))
    return Predictor(session.pipe, asked, session.known)


def _pass(predictor: Predictor, left: Left, sinks: Sequence[Sink], reading: Reading) -> bool:
    """All rows to all sinks; whether it was stopped."""
    try:
        for rows in stream(predictor, left, reading):
            with not_in_between():
                for sink in sinks:
                    sink.rows(rows)
    except KeyboardInterrupt:
        return not reading.live
    return False


def _rows(session: Session, outputs: Outputs) -> RowFile | None:
    if outputs.out is None:
        return None
    return row_file(outputs.out, session.questions, session.made_with, outputs.resume)


def _earlier(rows: RowFile | None, tally: Tally) -> set[str]:
    """The names of files that an earlier run has answered for, which are counted here too."""
    done = set()
    for row in () if rows is None else rows.earlier():
        tally.rows([row])
        done.add(row.file)
    return done


class Left:
    """The images that are left to be answered for; listed anew each time, since names are all that is kept."""

    def __init__(self, listing: Listing, done: set[str]) -> None:
        self.listing, self.done = listing, done

    def __iter__(self) -> Iterator[Item]:
        return (item for item in self.listing if item.name not in self.done)

    def __len__(self) -> int:
        return sum(1 for _ in self) if self.done else len(self.listing)

    def names(self) -> tuple[str, ...]:
        return tuple(item.name for item in islice(self, FIRST))


@contextmanager
def not_in_between() -> Iterator[None]:
    """Ctrl-C waits until the block has ended; a second one does not."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # somebody else decides what Ctrl-C means here
        return
    waiting: list[int] = []

    def later(number: int, frame: FrameType | None) -> None:
        if waiting:
            raise KeyboardInterrupt
        waiting.append(number)

    signal.signal(signal.SIGINT, later)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if waiting:
        raise KeyboardInterrupt
