"""`nsfrc infer`: a folder of images in, answers out."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsfrc.check.declare import MAX_STEPS
from nsfrc.cli.choices import perceptions, programs
from nsfrc.cli.infer_view import ALL, NAMED, JsonView, Progress, TableView, View, failures
from nsfrc.errors import NsfrcError

if TYPE_CHECKING:
    from nsfrc.inference.folders import Item, Listing
    from nsfrc.inference.report import Report
    from nsfrc.inference.results import Row, Writer
    from nsfrc.inference.session import Session
    from nsfrc.inference.stream import Asked

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
MAX_BATCH, MAX_THREADS = 100_000, 1024


def _number(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    if value is not None and math.isnan(value):  # which every range lets pass
        raise click.BadParameter("nan is no number from 0 to 1.")
    return value


@dataclass(frozen=True)
class Outputs:
    """Where results go; some of the images may have been done by an earlier run."""

    images: Listing
    out: Path | None
    resume: bool
    report: Path | None
    as_json: bool
    quiet: bool
    why: bool = False


@click.command(
    "infer",
    epilog="""\b
Examples:
  nsfrc infer --images figures/                     with the only program in the current folder
  nsfrc infer --images figures/ --program twopairs --out results.csv
                                                    one row an image; Ctrl-C and --resume are fine
  nsfrc infer --images figures/ --report report.html
                                                    each image with its objects, score and reason
  nsfrc infer --images figures/7.png --program twopairs
                                                    one image, with the reason; for more of them --why
  nsfrc infer --images photos/ --perception mine:Net --weights net.safetensors --plugin predicates.py
                                                    your own perception and neural predicates
\b
Where DIR has folders true/ and false/ (or one for each of several targets), they are taken as
labels, and accuracy, confusion matrix and calibration are shown; images beside them have no label.
So are the classes of CLEVR-Hans: from its scenes files, or else from the names of its images.
""",
)
@click.option("--images", type=click.Path(exists=True, path_type=Path), required=True, metavar="DIR",
              help="A folder of images (.png, .jpg, .tif and so on), with all folders in it, or one image.")
@click.option("--program", shell_complete=programs,
              help="A .nsfrc or .pl file or a shipped name. [the only one here, or else in DIR]")
@click.option("--perception", metavar="NAME", shell_complete=perceptions,
              help="A registered name or module:Class. [from the program, or yolo]")
@click.option("--weights", type=FILE,
              help="Weights of the perception, a safetensors file. [those that ship or were imported]")
@click.option("--concepts", type=FILE, help="Parameters from `nsfrc train concept`. [those that ship]")
@click.option("--plugin", "plugins", multiple=True, metavar="FILE.py",
              help="Python file or module with neural predicates or a perception; repeatable.")
@click.option("--threshold", type=click.FloatRange(0, 1), callback=_number,
              help="Score from which on the answer is true; with several targets, below which it is none of them. "
                   "[from the program, the calibration, or 0.5; for several the highest is the answer]")
@click.option("--steps", type=click.IntRange(0, MAX_STEPS), help="Steps of reasoning. [from the program]")
@click.option("--batch-size", type=click.IntRange(1, MAX_BATCH), default=16, show_default=True,
              help="Images at once. On a CPU yolo always takes 32 and slot_attention 16, so that no digit of a result "
                   "depends on it.")
@click.option("--device", default="cpu", show_default=True, help="cpu or cuda.")
@click.option("--threads", type=click.IntRange(1, MAX_THREADS),
              help="CPU threads, about half of them to read images ahead. [2, or 1 on one core]")
@click.option("--out", type=click.Path(path_type=Path), help="Write all rows here, as .csv or .jsonl.")
@click.option("--resume", is_flag=True, help="Go on with what an interrupted run has written beside --out.")
@click.option("--report", type=click.Path(path_type=Path),
              help="Write an HTML page (.html) with every image, its objects and the reason.")
@click.option("--why", is_flag=True, help="Show the reason below each row of the table. [for one image alone]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object an image, and a summary as the last.")
@click.option("--quiet", is_flag=True, help="Show the summary only.")
def command(
    images: Path, program: str | None, perception: str | None, weights: Path | None, concepts: Path | None,
    plugins: tuple[str, ...], threshold: float | None, steps: int | None, batch_size: int, device: str,
    threads: int | None, out: Path | None, resume: bool, report: Path | None, why: bool, as_json: bool, quiet: bool,
) -> None:
    """Answer a program's question for every image in a folder.

    An image that cannot be read is a row with an error; the others go on, and the exit code is 1 at the end. Files
    that are no images by their names are left out.
    """
    from nsfrc.engines.cpu.threads import torch_threads
    from nsfrc.inference.folders import folder
    from nsfrc.inference.images import quietly
    from nsfrc.inference.report import refuse_place

    if resume and out is None:
        raise NsfrcError("--resume goes on with the file of --out: name that too")
    if resume and report is not None:
        raise NsfrcError("--report needs every image again: leave out --resume, or --report")
    if why and quiet:
        raise NsfrcError("--why is for the rows that --quiet leaves out: leave out one of the two")
    if report is not None:
        refuse_place(report, out)
    listing = folder(images)
    if not len(listing):
        others = "".join(f"; {text}" for text in listing.left_out())
        raise NsfrcError(f"there are no images in {images} (.png, .jpg, .gif, .bmp, .tif, .webp and others){others}")
    why = (why or len(listing) == 1) and not as_json and not quiet
    threads = threads or min(2, os.cpu_count() or 1)
    computing = _computing(threads)
    with torch_threads(computing), quietly():
        from nsfrc.inference.session import Wanted, open_session
        from nsfrc.inference.stream import Asked

        session = open_session(
            Wanted(images, program, perception, weights, concepts, plugins, threshold, steps, device), listing
        )
        with_reasons = why or (as_json and not quiet) or (out is not None and out.suffix.lower() == ".jsonl")
        asked = Asked(session.threshold, session.labels, batch_size, threads - computing, report is not None,
                      with_reasons, session.least)
        _run(session, asked, Outputs(listing, out, resume, report, as_json, quiet, why))


def _computing(threads: int) -> int:
    """How many of so many threads compute, while the others read: a power of two, and two thirds at most.

    Among three, torch would share out images in parts that end amid a vector, and their last digits would depend on it.
    """
    return 1 << (max(1, threads * 2 // 3).bit_length() - 1)


def _run(session: Session, asked: Asked, outputs: Outputs) -> None:
    """Every image once; afterwards the summary, and an error if any failed."""
    from nsfrc.inference.stream import infer

    for remark in session.remarks:
        click.echo(f"warning: {remark}", err=True)
    with contextlib.ExitStack() as stack:
        writer = _writer(stack, session, outputs)
        report = _report(stack, session, outputs)
        tally = _Tally(session, writer, report)
        left = sum(1 for _ in _remaining(outputs, tally.done))
        tally.view = _view(session, outputs, left)
        tally.view.start(session.settings, [item.name for item in islice(_remaining(outputs, tally.done), ALL)])
        # JSON lines and a bar on one terminal would run into each other.
        clash = outputs.as_json and sys.stdout.isatty()
        progress = Progress(left, not outputs.quiet and not clash)
        try:
            with contextlib.closing(progress):
                for rows in infer(session.pipe, _remaining(outputs, tally.done), asked):
                    tally.add(rows)
                    progress.update(len(rows))
        except KeyboardInterrupt:
            tally.stopped()
        tally.finish()
    tally.summarise()


class _Tally:
    """Takes rows, writes and shows them, and counts."""

    def __init__(self, session: Session, writer: Writer | None, report: Report | None) -> None:
        from nsfrc.inference.measures import Measures
        from nsfrc.inference.notes import Notes

        self.session, self.writer, self.report = session, writer, report
        self.measures = Measures(session.targets, session.least > 0)
        self.failed: list[str] = []
        self.notes = Notes(session)
        self.done: set[str] = set()
        self.view: View = View(session.targets, 0, False)
        for row in writer.finished() if writer is not None else ():
            self._count(row)
            self.done.add(row.file)

    def _count(self, row: Row) -> None:
        self.measures.add(row.label, row.scores, row.answer)
        if row.error is not None and len(self.failed) < NAMED:
            self.failed.append(f"{row.file} ({row.error})")

    def add(self, rows: Sequence[Row]) -> None:
        if self.writer is not None:
            self.writer.write(rows)  # first: what has been shown is never lost
        for row in rows:
            self._count(row)
            self.notes.add(row)
            if self.report is not None:
                self.report.add(row)
        self.view.rows(rows)

    def stopped(self) -> None:
        """Say what is left of an interrupted run, and end it."""
        page = None if self.report is None else self.report.abandon(self.measures, self.notes.remarks())
        kept = f"{'nothing is' if page is None else 'no rows are'} kept without --out"
        if self.writer is not None:
            without = "" if self.report is None else ", but without --report,"
            kept = f"{self.writer.part} keeps them, and the same command with --resume{without} goes on"
        shown = "" if page is None else f"; the report {page} shows these images alone"
        click.echo(f"\nstopped after {self.measures.count} images; {kept}{shown}", err=True)
        raise SystemExit(130)

    def finish(self) -> None:
        if self.writer is not None:
            self.writer.finish()
        if self.report is not None:
            self.report.close(self.measures, self.notes.remarks())

    def summarise(self) -> None:
        from nsfrc.inference.folders import printable

        remarks = self.notes.remarks()
        self.view.end(self.measures, self.session, remarks)
        for remark in remarks:
            click.echo(f"warning: {remark}", err=True)
        written = [self.writer.out] if self.writer is not None else []
        written += [self.report.path] if self.report is not None else []
        for path in written:
            click.echo(f"written to {printable(str(path))}", err=isinstance(self.view, JsonView))
        if self.measures.failed:
            raise NsfrcError(failures(self.failed, self.measures.failed, self.measures.count))


def _writer(stack: contextlib.ExitStack, session: Session, outputs: Outputs) -> Writer | None:
    from nsfrc.inference.results import Writer

    if outputs.out is None:
        return None
    writer = stack.enter_context(Writer(outputs.out, session.targets, session.made_with, outputs.resume))
    if outputs.resume and not writer.resumed:
        click.echo(f"there is no {writer.part} to go on with: starting at the first image", err=True)
    if writer.replaced:
        click.echo(f"{writer.part}, the rows of an interrupted run, is replaced: --resume would have gone on with it",
                   err=True)
    return writer


def _report(stack: contextlib.ExitStack, session: Session, outputs: Outputs) -> Report | None:
    if outputs.report is None:
        return None
    from nsfrc.inference.report import Report

    pipe = session.pipe
    return stack.enter_context(
        Report(outputs.report, pipe.program, pipe.perception.dimensions, session.threshold, session.settings,
               pipe.reasoner.run.steps, pipe.perception.places)
    )


def _view(session: Session, outputs: Outputs, left: int) -> View:
    if outputs.as_json:
        return JsonView(session.targets, left, outputs.out is not None, not outputs.quiet)
    if outputs.quiet:
        return View(session.targets, left, outputs.out is not None)
    return TableView(session.targets, left, outputs.out is not None, outputs.why)


def _remaining(outputs: Outputs, done: set[str]) -> Iterator[Item]:
    return (item for item in outputs.images if item.name not in done)
