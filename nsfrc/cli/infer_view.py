"""What `nsfrc infer` shows while images go by: a table, JSON lines, or nothing, and a progress bar."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from nsfrc.inference.measures import Measures
    from nsfrc.inference.results import Row
    from nsfrc.inference.session import Session

ALL, FIRST = 40, 20  # a table of up to ALL images is shown whole, of a longer one the FIRST
INDENT = "    "  # before a reason below its row
NAMED = 3  # failed files that the last line names


class View:
    """Shows nothing but the summary; the others show more."""

    def __init__(self, targets: Sequence[str], total: int, written: bool) -> None:
        """total: how many rows will come; written: whether they all go to a file too."""
        self.targets, self.total, self.written = tuple(targets), total, written

    def start(self, settings: dict[str, str], names: Sequence[str]) -> None:
        """settings: what is used and where it came from; names: those of the first files."""

    def rows(self, rows: Sequence[Row]) -> None:
        """The next rows."""

    def end(self, measures: Measures, session: Session, remarks: Sequence[str]) -> None:
        """All rows have come. remarks: warnings about the images, which standard error has too."""
        click.echo(measures.as_text())


class JsonView(View):
    """One JSON object an image, unless there is to be none, and the summary as the last."""

    def __init__(self, targets: Sequence[str], total: int, written: bool, every: bool = True) -> None:
        super().__init__(targets, total, written)
        self.every = every

    def rows(self, rows: Sequence[Row]) -> None:
        from nsfrc.inference.results import as_json

        for row in rows if self.every else ():
            click.echo(as_json(row, self.targets))

    def end(self, measures: Measures, session: Session, remarks: Sequence[str]) -> None:
        empty = None if session.empty is None else dict(zip(session.targets, session.empty, strict=True))
        summary: dict[str, Any] = {
            **measures.as_data(), "settings": session.settings, "empty_scores": empty,
            "dimensions": list(session.pipe.perception.dimensions), "warnings": [*session.remarks, *remarks],
        }
        click.echo(json.dumps({"summary": summary}))


class TableView(View):
    """Settings, a table of file, scores, answer and label, and the summary. why: with the reason below each row."""

    def __init__(self, targets: Sequence[str], total: int, written: bool, why: bool = False) -> None:
        from nsfrc.inference.measures import short

        super().__init__(targets, total, written)
        self.why = why
        self.shown, self.limit = 0, total if total <= ALL else FIRST
        self.heads = short(self.targets) if len(self.targets) > 1 else ("score",)
        self.answer = max(6, *(len(name) for name in self.targets)) if len(self.targets) > 1 else 6
        self.file = 4

    def start(self, settings: dict[str, str], names: Sequence[str]) -> None:
        width = max(map(len, settings))
        for name, text in settings.items():
            click.echo(f"{name:<{width}}  {text}")
        self.file = max(4, *(len(name) for name in names[: self.limit])) if names else 4
        click.echo("\n" + f"{'file':<{self.file}}  {self._scores(self.heads)}  answer")

    def _scores(self, texts: Sequence[str]) -> str:
        return "  ".join(f"{text:>{max(6, len(head))}}" for text, head in zip(texts, self.heads, strict=True))

    def rows(self, rows: Sequence[Row]) -> None:
        for row in rows[: self.limit - self.shown]:
            click.echo(self._line(row))
            if self.why and row.reason is not None:
                click.echo(indent(row.reason, INDENT))
            self.shown += 1
            if self.shown == self.limit < self.total:
                hint = "" if self.written else ": --out results.csv writes all of them"
                click.echo(f"… and {self.total - self.limit} more{hint}")

    def _line(self, row: Row) -> str:
        from nsfrc.inference.measures import equals

        lead = f"{row.file:<{self.file}}  "
        if row.error is not None:
            return f"{lead}{self._scores(['–'] * len(self.heads))}  failed: {row.error}"
        mark = "" if row.right is None else "  right" if row.right else f"  WRONG, it is {row.label}"
        if others := [self.targets[i] for i in equals(row.scores) if self.targets[i] != row.answer]:
            mark += f"  (as high: {', '.join(others)})"
        scores = self._scores([f"{score:.4f}" for score in row.scores])
        return f"{lead}{scores}  {row.answer or '':<{self.answer}}{mark}".rstrip()

    def end(self, measures: Measures, session: Session, remarks: Sequence[str]) -> None:
        click.echo("\n" + measures.as_text())


class Progress:
    """A bar on standard error, where that is a terminal; it starts below the rows of the table."""

    def __init__(self, total: int, shown: bool) -> None:
        self.waiting, self.started = 0, False
        self.bar = None
        if shown and total > ALL and sys.stderr.isatty():
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


def failures(failed: Sequence[str], count: int, total: int) -> str:
    """The last line when files failed; `failed` names the first of them."""
    more = f" and {count - len(failed)} more" if count > len(failed) else ""
    return f"{count} of {total} files gave no answer: {'; '.join(failed)}{more}"
