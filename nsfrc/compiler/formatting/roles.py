"""What each token of a sentence is: operand, functor, prefix or infix operator, bracket or comment."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from nsfrc.compiler.parse.split import COMMENTS, Token
from nsfrc.records import dataclass

NECKS = (":-", "-->")
_PREFIXES = ("\\+", "+", "-", "\\")
_LEADS = (":-", "?-")
_DECLARE = ("dynamic", "discontiguous", "initialization", "multifile", "table")
_OPENING, _CLOSING = ("LPAR", "LSQB", "LBRACE"), ("RPAR", "RSQB", "RBRACE")
_BETWEEN = ("COMMA", "SEMICOLON", "BAR")


class Role(Enum):
    """OPEN is a bracket that groups, CALL the one behind a functor."""

    OPERAND = auto()
    FUNCTOR = auto()
    PREFIX = auto()
    INFIX = auto()
    OPEN = auto()
    CALL = auto()
    CLOSE = auto()
    COMMENT = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Part:
    """A token in its place.

    gap, newlines: blanks and line ends between it and what stands before it. depth: how many brackets are open around
    it. around: the innermost of them, '' outside of all.
    """

    kind: str
    text: str
    role: Role
    gap: bool
    newlines: int
    column: int
    depth: int
    around: str


def parts(text: str, tokens: Iterable[Token], start: int) -> list[Part]:
    """The parts of a sentence without syntax errors. start: where what stands before it ends."""
    return _Reader(text, start).read(list(tokens))


class _Reader:
    """Walks over a sentence and knows whether an operand is expected, as the grammar does."""

    def __init__(self, text: str, start: int):
        self._text, self._end = text, start
        self._open: list[str] = []
        self._operand = True
        self._last: Token | None = None  # that is no comment
        self._parts: list[Part] = []

    def read(self, tokens: list[Token]) -> list[Part]:
        for token, following in zip(tokens, [*tokens[1:], None], strict=True):
            if token.kind == "NUMBER" and token.text.startswith("-") and not self._operand:
                sign = Token("SYMBOL", "-", token.start)
                self._add(sign, False)
                token = Token("NUMBER", token.text[1:], token.start + 1)
            called = following is not None and following.kind == "LPAR" and following.start == token.end
            self._add(token, called)
        return self._parts

    def _add(self, token: Token, called: bool) -> None:
        role = self._role(token, called)
        if role is Role.CLOSE and self._open:
            self._open.pop()
        between = self._text[self._end : token.start]
        column = token.start - self._text.rfind("\n", 0, token.start) - 1
        around = self._open[-1] if self._open else ""
        newlines, depth = between.count("\n"), len(self._open)
        self._parts.append(Part(token.kind, token.text, role, bool(between), newlines, column, depth, around))
        if role in (Role.OPEN, Role.CALL):
            self._open.append(token.text)
        if role is not Role.COMMENT:
            self._operand = role in (Role.PREFIX, Role.INFIX, Role.OPEN, Role.CALL, Role.FUNCTOR)
            self._last = token
        self._end = token.end

    def _role(self, token: Token, called: bool) -> Role:
        if token.kind in COMMENTS:
            return Role.COMMENT
        if token.kind == "END":
            return Role.END
        if token.kind in _OPENING:
            last = next((part for part in reversed(self._parts) if part.role is not Role.COMMENT), None)
            return Role.CALL if last is not None and last.role is Role.FUNCTOR else Role.OPEN
        if token.kind in _CLOSING:
            return Role.CLOSE
        if token.kind in _BETWEEN or not self._operand:
            return Role.INFIX
        if called and token.kind in ("NAME", "QUOTED", "SYMBOL", "CUT"):
            return Role.FUNCTOR
        return Role.PREFIX if self._is_prefix(token) else Role.OPERAND

    def _is_prefix(self, token: Token) -> bool:
        """Of a token where an operand is expected and that is no functor."""
        last = self._last
        if token.kind == "NAME":
            return token.text in _DECLARE and last is not None and last.text == ":-" and self._parts[-1].depth == 0 \
                and sum(part.role is not Role.COMMENT for part in self._parts) == 1
        if token.kind != "SYMBOL":
            return False
        leads = last is None or last.kind in ("LPAR", "LBRACE")
        return token.text in _PREFIXES or (token.text in _LEADS and leads)
