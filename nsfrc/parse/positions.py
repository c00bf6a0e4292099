"""Offsets in a text to spans."""

from __future__ import annotations

from bisect import bisect_right

from nsfrc.errors import Source, Span


class Positions:
    """Turns offsets of one source into lines and columns."""

    def __init__(self, source: Source):
        self.source = source
        self._starts = [0, *(i + 1 for i, c in enumerate(source.text) if c == "\n")]

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def span(self, start: int, end: int) -> Span:
        return Span(self.source, *self.place(start), *self.place(end))
