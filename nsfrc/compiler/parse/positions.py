"""Offsets in a text to spans."""

from __future__ import annotations

from nsfrc.errors import Source, Span


class Positions:
    """Turns offsets of one source into lines and columns.

    Lines are counted from the offset that was asked for last, which is near: nothing is kept of a text's lines.
    """

    def __init__(self, source: Source):
        self.source = source
        self._offset, self._line, self._line_start = 0, 1, 0

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        text = self.source.text
        if offset >= self._offset:
            if lines := text.count("\n", self._offset, offset):
                self._line, self._line_start = self._line + lines, text.rindex("\n", self._offset, offset) + 1
        elif offset < self._line_start:
            self._line -= text.count("\n", offset, self._offset)
            self._line_start = text.rfind("\n", 0, offset) + 1
        self._offset = offset
        return self._line, offset - self._line_start + 1

    def span(self, start: int, end: int) -> Span:
        line, column = self.place(start)
        if "\n" in self.source.text[start:end]:
            return Span(self.source, line, column, *self.place(end))
        return Span(self.source, line, column, line, column + end - start)
