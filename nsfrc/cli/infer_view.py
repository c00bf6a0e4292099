"""What `nsfrc infer` shows while images go by: a table, JSON lines, or nothing, and a progress bar."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import islice
from textwrap import indent
from typing import Any

import click

from nsfrc.inference.folders import printable
from nsfrc.inference.measures import Measured, equals
from nsfrc.inference.rows import Row, as_json
from nsfrc.inference.session import Session
from nsfrc.inference.sinks import Closing, Opening, Sink
from nsfrc.questions import NONE, Question, short

ALL, FIRST = 40, 20  # a table of up to ALL images is shown whole, of a longer one the FIRST
INDENT = "    "  # before a reason below its row


def view_for(as_json: bool, quiet: bool, why: bool) -> View:
    """The view that options ask for."""
    if as_json:
        return JsonView(every=not quiet)
    return View() if quiet else TableView(why)


class View(Sink):
    """Shows nothing but warnings and the summary; the others show more."""

    bar = False  # whether a progress bar may be shown
    aside = False  # whether what is not for machines goes to standard error
    session: Session

    def start(self, opening: Opening) -> None:
        self.session, self.questions = opening.session, opening.session.questions
        self.total, self.to_file = opening.total, opening.to_file
        for remark in opening.session.remarks:
            click.echo(f"warning: {remark}", err=True)
        for notice in opening.notices:
            click.echo(notice, err=True)
        self.head(opening.names)
        self.progress = Progress(self.total, self.bar)

    def head(self, names: Sequence[str]) -> None:
        """What stands above the first row. names: those of the first files."""

    def rows(self, rows: Sequence[Row]) -> None:
        self.body(rows)
        self.progress.update(len(rows))

    def body(self, rows: Sequence[Row]) -> None:
        """The next rows."""

    def end(self, closing: Closing) -> None:
        self.progress.close()
        if closing.stopped:
            click.echo(f"\n{_stopped(closing)}", err=True)
            return
        self.summary(closing.measures, closing.remarks)
        for remark in closing.remarks:
            click.echo(f"warning: {remark}", err=True)
        for written in closing.written:
            click.echo(f"written to {printable(str(written.path))}", err=self.aside)

    def summary(self, measures: Measured, remarks: Sequence[str]) -> None:
        """All rows have come. remarks: warnings about the images, which standard error has too."""
        click.echo(measures.as_text())

    def close(self) -> None:
        if hasattr(self, "progress"):
            self.progress.close()


class JsonView(View):
    """One JSON object per image, unless rows are hidden, and the summary as the last."""

    aside = True

    def __init__(self, every: bool = True) -> None:
        self.every = self.reasons = every
        self.bar = every and not sys.stdout.isatty()  # JSON lines and a bar on one terminal would run into each other

    def body(self, rows: Sequence[Row]) -> None:
        for row in rows if self.every else ():
            click.echo(as_json(row, self.questions))

    def summary(self, measures: Measured, remarks: Sequence[str]) -> None:
        session = self.session
        empty = None if session.empty is None else dict(zip(session.targets, session.empty, strict=True))
        summary: dict[str, Any] = {
            **measures.as_data(), "settings": session.settings, "empty_scores": empty,
            "dimensions": list(session.pipe.perception.dimensions), "warnings": [*session.remarks, *remarks],
        }
        click.echo(json.dumps({"summary": summary}))


class TableView(View):
    """Settings, a table of file, scores, answer and label, and the summary. why: with the reason below each row."""

    bar = True

    def __init__(self, why: bool = False) -> None:
        self.why = self.reasons = why
        self.shown = 0

    def head(self, names: Sequence[str]) -> None:
        settings = self.session.settings
        self.more = self.total - FIRST if self.total is not None and self.total > ALL else 0
        self.limit = FIRST if self.more else None
        self.columns = _columns(self.questions)
        width = max(map(len, settings))
        for name, text in settings.items():
            click.echo(f"{name:<{width}}  {text}")
        self.file = max(4, *(len(name) for name in names[: self.limit])) if names else 4
        click.echo("\n" + self._cells("file", [head for head, _ in self.columns]).rstrip())

    def _cells(self, file: str, texts: Sequence[str]) -> str:
        """A line of the table; scores are at the right of their columns, answers at the left."""
        cells = (f"{text:>{width}}" if width > 0 else f"{text:<{-width}}"
                 for text, (_, width) in zip(texts, self.columns, strict=True))
        return "  ".join([f"{file:<{self.file}}", *cells])

    def body(self, rows: Sequence[Row]) -> None:
        for row in rows if self.limit is None else rows[: self.limit - self.shown]:
            click.echo(self._line(row))
            for said in row.answers.values() if self.why else ():
                if said.reason is not None:
                    click.echo(indent(said.reason, INDENT))
            self.shown += 1
            if self.shown == self.limit:
                hint = "" if self.to_file else ": --out results.csv writes all of them"
                click.echo(f"… and {self.more} more{hint}")

    def _line(self, row: Row) -> str:
        if row.error is not None:
            nothing = ["–" if width > 0 else "" for _, width in self.columns[:-1]]
            return self._cells(row.file, [*nothing, f"failed: {row.error}"]).rstrip()
        texts = []
        for one in self.questions:
            answer = row.answers[one.name].answer or ""
            texts += [*(f"{score:.4f}" for score in one.values(row.scores)), answer]
        return (self._cells(row.file, texts) + self._mark(row)).rstrip()

    def _mark(self, row: Row) -> str:
        """What stands behind the answers: whether they are right, and which classes are as high."""
        wrong = [(one.name, said.label) for one in self.questions if (said := row.answers[one.name]).right is False]
        if len(self.questions) == 1:
            mark = "".join(f"  WRONG, it is {label}" for _, label in wrong)
        else:
            mark = f"  WRONG: {', '.join(f'{name} is {label}' for name, label in wrong)}" if wrong else ""
        mark = mark or ("  right" if row.right else "")
        mark += f"  ({left_out(row.further)})" if row.further else ""
        for one in self.questions:
            if one.of_classes and (answer := row.answers[one.name].answer) != NONE:
                others = [one.atoms[i] for i in equals(one.values(row.scores)) if one.atoms[i] != answer]
                mark += f"  (as high: {', '.join(others)})" if others else ""
        return mark

    def summary(self, measures: Measured, remarks: Sequence[str]) -> None:
        click.echo("\n" + measures.as_text())


def left_out(count: int) -> str:
    """What to say of objects of an image that the program does not speak of."""
    return "1 object left out" if count == 1 else f"{count} objects left out"


def _columns(questions: Sequence[Question]) -> list[tuple[str, int]]:
    """The head and the width of every column, which is below 0 where cells are at the left: `kp1  answer`, or
    `score  answer`; with several questions `red  answer  blue  answer`.
    """
    atoms = [atom for one in questions for atom in one.atoms]
    names = iter(short(atoms) if len(atoms) > 1 else ("score",))
    columns = []
    for one in questions:
        columns += [(name, max(6, len(name))) for name in islice(names, len(one.atoms))]
        columns.append(("answer", -max(6, *map(len, one.answers))))
    return columns


class Progress:
    """A bar on standard error, where that is a terminal; it starts below the rows of the table."""

    def __init__(self, total: int | None, shown: bool) -> None:
        self.waiting, self.started = 0, False
        self.bar = None
        if shown and total is not None and total > ALL and sys.stderr.isatty():
            self.bar = click.progressbar(length=total, label="images", file=sys.stderr, show_pos=True)

    def update(self, count: int) -> None:
        if self.bar is None:
            return
        self.waiting += count
        if self.started or self.waiting >= FIRST:
            self.started = True
            self.bar.update(self.waiting)
            self.waiting = 0

    def close(self) -> None:
        if self.bar is not None and self.started:
            self.bar.render_finish()
        self.bar = None


def _stopped(closing: Closing) -> str:
    """What is left of a run that was stopped; the count is that of the rows that are kept, where some are."""
    rows = next((one for one in closing.written if one.rows is not None), None)
    page = next((one for one in closing.written if one.rows is None), None)
    kept = f"{'nothing is' if page is None else 'no rows are'} kept without --out"
    if rows is not None:
        without = "" if page is None else ", but without --report,"
        kept = f"{printable(str(rows.path))} keeps them, and the same command with --resume{without} continues"
    shown = "" if page is None else f"; the report {printable(str(page.path))} shows only these images"
    count = closing.measures.count if rows is None or rows.rows is None else rows.rows
    return f"stopped after {count} images; {kept}{shown}"
