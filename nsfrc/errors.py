"""Source positions, diagnostics and the one exception that carries them.

A stage collects every `Diagnostic` it can find in a `Diagnostics` bag and stops at its end, so
that a user sees all errors of a file at once:

    twopairs.pl:3:14: error: unknown predicate colour/2
      kp(X) :- colour(X, red).
               ^^^^^^
      hint: did you mean color/2?
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import field

from nsfrc.records import dataclass

ERROR, WARNING = "error", "warning"
WIDTH = 110
MAX_SHOWN = 100  # errors of a program that are listed, and as many warnings
MAX_COMPARISONS = 20_000  # names that the hints of one program look through
MAX_COMPARED = 100  # characters of a name that hints look at
_CHUNK = 65536


@dataclass(frozen=True, slots=True)
class Source:
    """A named text that spans point into; `included`: where another file asks for it, if one does."""

    name: str
    text: str = field(repr=False)
    included: Span | None = field(default=None, repr=False, compare=False)

    def line(self, number: int) -> str:
        """A line by its number, without its end; long texts are not taken apart for it."""
        missing, start = number - 1, 0
        while missing > 0:
            lines = self.text.count("\n", start, start + _CHUNK)
            if lines >= missing:
                break
            missing, start = missing - lines, start + _CHUNK
            if start >= len(self.text):
                return ""
        for _ in range(missing):
            start = self.text.index("\n", start) + 1
        end = self.text.find("\n", start)
        return self.text[start : len(self.text) if end < 0 else end].rstrip("\r") if number > 0 else ""


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
    """One finding: where, what, and what to do about it.

    code: a word that stays the same when the message changes; docs/language.md lists all of them.
    """

    span: Span | None
    message: str
    hint: str | None = None
    severity: str = ERROR
    code: str = "refused"

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
        first = span.column - 1
        last = span.end_column - 1 if span.end_line == span.line else len(text)
        cut = 0
        if len(text) > WIDTH:
            cut = max(0, min(first - WIDTH // 2, len(text) - WIDTH))
            goes_on = cut + WIDTH < len(text)
            text, last = text[cut : cut + WIDTH], min(last, cut + WIDTH - goes_on)
            # The dots take the place of a character, so that the caret stays where it is.
            text = ("…" if cut else text[0]) + text[1:-1] + ("…" if goes_on else text[-1])
        text = "".join(c if c.isprintable() else " " for c in text)
        return [f"  {text}", f"  {' ' * (first - cut)}{'^' * max(1, last - first)}"]

    def as_json(self) -> dict[str, object]:
        span = self.span
        where = None if span is None else {
            "file": span.source.name, "line": span.line, "column": span.column,
            "end_line": span.end_line, "end_column": span.end_column,
        }
        return {
            "code": self.code, "severity": self.severity, "message": self.message, "hint": self.hint, "span": where,
        }


class NsfrcError(Exception):
    """Anything wrong with what the user gave us; the command line prints it and exits with 1."""


class TooFewSteps(UserWarning):
    """Someone asks for fewer steps than it takes to derive the targets of a program."""


class CompileError(NsfrcError):
    """A program was refused; `diagnostics` holds what was found, warnings included.

    Of more than MAX_SHOWN errors the last diagnostic says how many are not listed.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic]):
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(str(d) for d in self.diagnostics))


class Diagnostics:
    """Collects findings; `stop()` raises them together when one of them is an error.

    The first MAX_SHOWN errors and as many warnings are kept in `found`, the others only counted.
    """

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self._seen: set[int] = set()
        self._counts = {ERROR: 0, WARNING: 0}
        self._comparisons = MAX_COMPARISONS

    def copy(self) -> Diagnostics:
        """The same findings, to which others add more."""
        made = Diagnostics()
        made.found, made._seen, made._counts = [*self.found], {*self._seen}, {**self._counts}
        made._comparisons = self._comparisons
        return made

    def error(self, code: str, span: Span | None, message: str, hint: str | None = None) -> None:
        self._add(Diagnostic(span, message, hint, ERROR, code))

    def warn(self, code: str, span: Span | None, message: str, hint: str | None = None) -> None:
        self._add(Diagnostic(span, message, hint, WARNING, code))

    def _add(self, diagnostic: Diagnostic) -> None:
        key = hash((diagnostic.span.source.name if diagnostic.span else "", diagnostic))
        if key not in self._seen:
            self._seen.add(key)
            self._counts[diagnostic.severity] += 1
            if self._counts[diagnostic.severity] <= MAX_SHOWN:
                self.found.append(diagnostic)

    @property
    def errors(self) -> int:
        """How many errors there are, those included that are not kept."""
        return self._counts[ERROR]

    @property
    def warned(self) -> int:
        """How many warnings there are, those included that are not kept."""
        return self._counts[WARNING]

    @property
    def failed(self) -> bool:
        return self.errors > 0

    def warnings(self) -> tuple[Diagnostic, ...]:
        """The warnings, with a last one that counts those that are not kept."""
        return (*(d for d in self.found if d.severity == WARNING), *self._not_listed(WARNING))

    def stop(self) -> None:
        """Raise what was found if any of it is an error, in the order of the text."""
        if self.failed:
            listed = sorted(self.found, key=_position)
            raise CompileError((*listed, *self._not_listed(WARNING), *self._not_listed(ERROR)))

    def _not_listed(self, severity: str) -> tuple[Diagnostic, ...]:
        more = self._counts[severity] - MAX_SHOWN
        if more <= 0:
            return ()
        what = f"{more:,} more {severity}{'s' if more > 1 else ''} {'are' if more > 1 else 'is'} not listed"
        return (Diagnostic(None, what, None, severity, "not-listed"),)

    def did_you_mean(self, word: str, known: Collection[str], besides: str | None = None) -> str | None:
        """As the function, of all but one name; many errors look through no more than MAX_COMPARISONS names."""
        if len(known) > self._comparisons:
            return None
        self._comparisons -= len(known)
        return did_you_mean(word, (name for name in known if name != besides))


def _position(diagnostic: Diagnostic) -> tuple[str, int, int]:
    span = diagnostic.span
    return (span.source.name, span.line, span.column) if span else ("", 0, 0)


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint naming the closest known word, or None when nothing is close."""
    if len(word) > MAX_COMPARED:
        return None
    import difflib  # not before there is something to say

    close = difflib.get_close_matches(word, [other for other in known if len(other) <= MAX_COMPARED], n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else None


def count(number: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
