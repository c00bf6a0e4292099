"""Where sentences begin and end, and what is wrong with their brackets and quotes.

A text is cut at each '.' that white space, a comment or the end of the text follows. Cutting before
parsing is what lets one bad sentence leave the next ones alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from nsfrc.compiler.parse.build import Fault
from nsfrc.compiler.parse.grammar import token_pattern
from nsfrc.compiler.parse.plain import MAX_NAME
from nsfrc.records import dataclass

COMMENTS = {"LINE_COMMENT", "BLOCK_COMMENT"}
_BLANK = {"SPACE", *COMMENTS}
_CLOSES = {")": "(", "]": "[", "}": "{"}
_LONG = {"NAME": "name", "QUOTED": "name", "SYMBOL": "name", "VARIABLE": "variable", "STRING": "string",
         "CODES": "string"}
_UNCLOSED = {"'": "quoted atom", '"': "string", "`": "quoted text", "/*": "comment"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token by its kind in the grammar, its text and its offset."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Piece:
    """The text of one sentence from its first token to behind its '.', or what is wrong with it."""

    start: int
    end: int
    fault: Fault | None = None


def tokens(text: str, start: int, end: int | None = None, comments: bool = False) -> Iterator[Token]:
    """The tokens of `text[start:end]`, without white space and, unless they are asked for, comments."""
    match_at, end = token_pattern().match, len(text) if end is None else end
    skipped = {"SPACE"} if comments else _BLANK
    while match := match_at(text, start, end):
        start = match.end()
        if match.lastgroup not in skipped:
            yield Token(match.lastgroup or "", match[0], match.start())


def next_piece(text: str, position: int) -> Piece | None:
    """The sentence that begins at or behind `position`; None when only blanks are left."""
    first: Token | None = None
    last: Token | None = None
    open_brackets: list[Token] = []
    fault: Fault | None = None
    for token in tokens(text, position):
        first = first or token
        if token.kind == "UNCLOSED":
            return _unclosed(text, first, token, fault)
        if token.kind == "END":
            if open_brackets:
                fault = fault or _unclosed_bracket(open_brackets[-1])
            return Piece(first.start, token.end, fault)
        fault = fault or _bracket_fault(token, open_brackets) or _long_fault(token)
        last = token
    if first is None or last is None:
        return None
    if open_brackets and fault is None:
        fault = _unclosed_bracket(open_brackets[-1])
    return Piece(first.start, len(text), fault or _missing_end(first, last))


def _bracket_fault(token: Token, open_brackets: list[Token]) -> Fault | None:
    """Keep the stack of open brackets; a fault when `token` closes none of them."""
    if token.kind in ("LPAR", "LSQB", "LBRACE"):
        open_brackets.append(token)
    elif token.text in _CLOSES and token.kind in ("RPAR", "RSQB", "RBRACE"):
        if not open_brackets:
            return Fault("unbalanced-bracket", token.start, token.end, f"unmatched '{token.text}'")
        if open_brackets[-1].text != _CLOSES[token.text]:
            opening = open_brackets[-1]
            message = f"'{token.text}' does not close '{opening.text}'"
            return Fault("unbalanced-bracket", token.start, token.end, message)
        open_brackets.pop()
    return None


def _long_fault(token: Token) -> Fault | None:
    """Names that no message could show; nor does the grammar have to take them in."""
    if len(token.text) <= MAX_NAME or token.kind not in _LONG:
        return None
    message = f"this {_LONG[token.kind]} is longer than {MAX_NAME:,} characters"
    return Fault("long-name", token.start, token.end, message)


def _unclosed_bracket(opening: Token) -> Fault:
    return Fault("unbalanced-bracket", opening.start, opening.end, f"unclosed '{opening.text}'")


def _missing_end(first: Token, last: Token) -> Fault:
    if last.text.endswith(".") and last.kind == "SYMBOL" and len(last.text) > 1:
        hint = f"'{last.text}' is read as one symbol; put a space before the '.'"
        return Fault("missing-end", last.start, last.end, "missing '.' at the end of the clause", hint)
    return Fault("missing-end", first.start, first.end, "missing '.' at the end of the clause that starts here")


def _unclosed(text: str, first: Token, token: Token, fault: Fault | None) -> Piece:
    """A quote ends with its line, and so does the sentence when the line ends with '.'."""
    if token.text == "/*":
        end = len(text)
    else:
        line_end = text.find("\n", token.start)
        line_end = len(text) if line_end < 0 else line_end
        if text[token.start:line_end].rstrip().endswith("."):
            end = line_end
        else:
            end = next((t.end for t in tokens(text, line_end) if t.kind in ("END", "UNCLOSED")), len(text))
    message = f"unterminated {_UNCLOSED[token.text]}"
    return Piece(first.start, end, fault or Fault("unterminated", token.start, token.end, message))
