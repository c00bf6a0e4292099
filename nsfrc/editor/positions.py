"""Lines and columns as editors count them: from 0, columns in code units. Ours are code points, from 1."""

from __future__ import annotations

import re
from bisect import bisect_right

from nsfrc.errors import Span

_UNITS = {"utf-8": 1, "utf-16": 2, "utf-32": 4}  # bytes in a unit
_ENDS = re.compile(r"\r\n|\n|\r")


class Lines:
    """Where the lines of a text begin, for an editor whose columns are units of `encoding`."""

    def __init__(self, text: str, encoding: str = "utf-16"):
        self.text = text
        self._bytes = _UNITS[encoding]
        self._codec = encoding if encoding == "utf-8" else f"{encoding}-le"
        self._starts = [0, *(end.end() for end in _ENDS.finditer(text))]
        self._ours = [0, *(end.end() for end in re.finditer("\n", text))]

    def offset(self, line: int, column: int) -> int:
        """The offset of an editor's position, which may be behind the end of its line or inside a character."""
        if line >= len(self._starts):
            return len(self.text)
        start = self._starts[line]
        end = self._starts[line + 1] if line + 1 < len(self._starts) else len(self.text)
        units = 0
        for offset in range(start, end):
            width = self._width(self.text[offset])
            if units + width > column or self.text[offset] in "\r\n":
                return offset
            units += width
        return end

    def position(self, offset: int) -> tuple[int, int]:
        """The editor's line and column of an offset."""
        line = bisect_right(self._starts, offset) - 1
        return line, self._width(self.text[self._starts[line] : offset])

    def offsets(self, span: Span) -> tuple[int, int]:
        """Where a span of this text begins and ends."""
        return self._offset(span.line, span.column), self._offset(span.end_line, span.end_column)

    def _offset(self, line: int, column: int) -> int:
        start = self._ours[min(line, len(self._ours)) - 1]
        return min(start + column - 1, len(self.text))

    def _width(self, text: str) -> int:
        return len(text) if text.isascii() else len(text.encode(self._codec, "surrogatepass")) // self._bytes
