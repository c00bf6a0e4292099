"""Source positions, diagnostics and the one exception that carries them.

A stage collects every `Diagnostic` it can find in a `Diagnostics` bag and stops at its end, so
that a user sees all errors of a file at once:

    twopairs.pl:3:14: error: unknown predicate colour/2
      kp(X) :- colour(X, red).
               ^^^^^^
      hint: did you mean color/2?
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

ERROR, WARNING = "error", "warning"
WIDTH = 110


@dataclass(frozen=True, slots=True)
class Source:
    """A named text that spans point into; `included`: where another file asks for it, if one does."""

    name: str
    text: str = field(repr=False)
    included: Span | None = field(default=None, repr=False, compare=False)

    def line(self, number: int) -> str:
        lines = _lines(self.text)
        return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


@lru_cache(maxsize=8)
def _lines(text: str) -> list[str]:
    return text.split("\n")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a source; lines and columns count from 1, the end column is exclusive."""

    source: Source = field(repr=False, compare=False)
    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, other: Span) -> Span:
        """The stretch from the start of this span to the end of another."""
        return Span(self.source, self.line, self.column, other.end_line, other.end_column)

    def in_own_file(self) -> Span:
        """This stretch, or the `include` of the user's own file that leads to it."""
        span = self
        while span.source.included is not None:
            span = span.source.included
        return span

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: where, what, and what to do about it."""

    span: Span | None
    message: str
    hint: str | None = None
    severity: str = ERROR

    def __str__(self) -> str:
        where = f"{self.span}: " if self.span else ""
        lines = [f"{where}{self.severity}: {self.message}"]
        if self.span and (text := self.span.source.line(self.span.line)).strip():
            lines += self._excerpt(text)
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def _excerpt(self, text: str) -> list[str]:
        """The line and the caret below it; of a long line only what is around the caret."""
        span = self.span
        assert span is not None
        text = "".join(c if c.isprintable() else " " for c in text)
        first = span.column - 1
        last = span.end_column - 1 if span.end_line == span.line else len(text)
        cut = 0
        if len(text) > WIDTH:
            cut = max(0, min(first - WIDTH // 2, len(text) - WIDTH))
            goes_on = cut + WIDTH < len(text)
            text, last = text[cut : cut + WIDTH], min(last, cut + WIDTH - goes_on)
            # The dots take the place of a character, so that the caret stays where it is.
            text = ("…" if cut else text[0]) + text[1:-1] + ("…" if goes_on else text[-1])
        return [f"  {text}", f"  {' ' * (first - cut)}{'^' * max(1, last - first)}"]

    def as_json(self) -> dict[str, object]:
        span = self.span
        where = None if span is None else {
            "file": span.source.name, "line": span.line, "column": span.column,
            "end_line": span.end_line, "end_column": span.end_column,
        }
        return {"severity": self.severity, "message": self.message, "hint": self.hint, "span": where}


class NsfrcError(Exception):
    """Anything wrong with what the user gave us; the command line prints it and exits with 1."""


class CompileError(NsfrcError):
    """A program was refused; `diagnostics` holds every finding, warnings included."""

    def __init__(self, diagnostics: Iterable[Diagnostic]):
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(str(d) for d in self.diagnostics))


class Diagnostics:
    """Collects findings; `stop()` raises them together when one of them is an error."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self._seen: set[tuple[str, Diagnostic]] = set()

    def error(self, span: Span | None, message: str, hint: str | None = None) -> None:
        self._add(Diagnostic(span, message, hint, ERROR))

    def warn(self, span: Span | None, message: str, hint: str | None = None) -> None:
        self._add(Diagnostic(span, message, hint, WARNING))

    def _add(self, diagnostic: Diagnostic) -> None:
        key = diagnostic.span.source.name if diagnostic.span else "", diagnostic
        if key not in self._seen:
            self._seen.add(key)
            self.found.append(diagnostic)

    @property
    def failed(self) -> bool:
        return any(d.severity == ERROR for d in self.found)

    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.found if d.severity == WARNING)

    def stop(self) -> None:
        """Raise what was found if any of it is an error, in the order of the text."""
        if self.failed:
            raise CompileError(sorted(self.found, key=_position))


def _position(diagnostic: Diagnostic) -> tuple[str, int, int]:
    span = diagnostic.span
    return (span.source.name, span.line, span.column) if span else ("", 0, 0)


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint naming the closest known word, or None when nothing is close."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else None
