"""A whole text: sentences on lines of their own, comments where they were, groups with blank lines between them."""

from __future__ import annotations

from collections.abc import Iterator

from nsfrc.compiler.formatting.lines import laid_out
from nsfrc.compiler.formatting.roles import parts
from nsfrc.compiler.parse.split import COMMENTS, Token, tokens
from nsfrc.records import dataclass

MAX_BLANK = 2  # lines between two groups


@dataclass(frozen=True, slots=True)
class _Item:
    """A comment between sentences, or a sentence.

    newlines: line ends before it. leads: whether it is the first on its line. column: where it was.
    """

    text: str
    comment: bool
    newlines: int
    column: int


def laid_out_text(text: str) -> str:
    """The layout of a text without syntax errors, whose lines end with '\\n'."""
    lines: list[str] = []
    aligned: tuple[int, int] | None = None  # where the comment behind the last line was, and where it is
    leads = True  # whether the last sentence began its line
    for item in _items(text):
        behind = item.comment and not item.newlines and bool(lines)
        if behind:
            column = max(len(lines[-1].rpartition("\n")[2]) + 1, item.column if leads else 0)
            lines[-1] += " " * (column - len(lines[-1].rpartition("\n")[2])) + item.text
            aligned = (item.column, column)
            continue
        lines += [""] * min(MAX_BLANK, item.newlines - 1) if lines else []
        if item.comment and aligned is not None and item.newlines == 1 and item.column == aligned[0]:
            lines.append(" " * aligned[1] + item.text)
            continue
        lines.append(item.text)
        aligned, leads = None, item.newlines > 0 or len(lines) == 1
    return "\n".join(lines) + "\n" if lines else ""


def _items(text: str) -> Iterator[_Item]:
    end = 0
    sentence: list[Token] = []
    for token in tokens(text, 0, comments=True):
        if not sentence and token.kind in COMMENTS:
            comment = token.text.rstrip() if token.kind == "LINE_COMMENT" else token.text
            yield _Item(comment, True, *_place(text, end, token))
            end = token.end
            continue
        sentence.append(token)
        if token.kind == "END":
            first = sentence[0]
            yield _Item(laid_out(parts(text, sentence, first.start)), False, *_place(text, end, first))
            end, sentence = token.end, []


def _place(text: str, end: int, token: Token) -> tuple[int, int]:
    """Line ends between `end` and a token, and its column from 0."""
    return text.count("\n", end, token.start), token.start - text.rfind("\n", 0, token.start) - 1
