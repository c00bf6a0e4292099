"""Builds surface terms while Lark reduces; no parse tree, no recursion."""

from __future__ import annotations

import re

from lark import Token, Transformer, v_args

from nsfrc.compiler.parse.positions import Positions
from nsfrc.compiler.syntax import Compound, ListTerm, Name, Number, Term, Text, Variable
from nsfrc.errors import Source, Span

MAX_DEPTH = 100
MAX_DIGITS = 300

_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "s": " ",
    "0": "\0", "\n": "", "\\": "\\", "'": "'", '"': '"', "`": "`",
}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]+\\?|[0-7]+\\?|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[\s\S])")


class Fault(Exception):
    """A sentence that the grammar accepts and we do not; offsets count from the start of the text."""

    def __init__(self, code: str, start: int, end: int, message: str, hint: str | None = None):
        super().__init__(message)
        self.code, self.start, self.end, self.message, self.hint = code, start, end, message, hint


@v_args(inline=True)
class Builder(Transformer):
    """One method for each rule name of the grammar; tokens and finished terms go in, a term comes out."""

    def begin(self, source: Source, positions: Positions, start: int) -> None:
        """Set the place of the sentence that is parsed next."""
        self._source, self._positions, self._start = source, positions, start

    def start(self, term: Term, _end: Token) -> Term:
        return term

    def variable(self, token: Token) -> Term:
        return Variable(str(token), self._span(token))

    def name(self, token: Token) -> Term:
        return Name(str(token), self._span(token))

    def quoted(self, token: Token) -> Term:
        return Name(self._unquote(token), self._span(token))

    def string(self, token: Token) -> Term:
        return Text(self._unquote(token), self._span(token))

    def number(self, token: Token) -> Term:
        return Number(self._value(token), self._span(token))

    def infix(self, left: Term, operator: Token, right: Term) -> Term:
        name = ";" if operator == "|" else str(operator)
        # A chain a, b, c, ... is walked in a loop, so only its left operands count as deeper.
        deeper = right.depth if name in (",", ";") else right.depth + 1
        depth = self._depth(max(left.depth + 1, deeper), operator)
        return Compound(name, (left, right), None, self._span(operator), depth)

    def prefix(self, operator: Token, operand: Term) -> Term:
        span = self._span(operator)
        depth = self._depth(operand.depth + 1, operator)
        return Compound(str(operator), (operand,), span.to(operand.span), span, depth)

    def declaration(self, neck: Token, word: Token, operand: Term) -> Term:
        return self.prefix(neck, self.prefix(word, operand))

    def compound(self, functor: Token, _open: Token, args: list[Term], close: Token) -> Term:
        name = self._unquote(functor) if functor.startswith("'") else str(functor)
        depth = self._depth(1 + max(arg.depth for arg in args), functor)
        span = self._span(functor)
        return Compound(name, tuple(args), span.to(self._span(close)), span, depth)

    def arguments(self, *terms: Term) -> list[Term]:
        return list(terms)

    def parenthesised(self, opening: Token, term: Term, _close: Token) -> Term:
        self._depth(term.depth, opening)
        return term

    def empty(self, opening: Token, close: Token) -> Term:
        return Name(f"{opening}{close}", self._span(opening).to(self._span(close)))

    def list_term(self, opening: Token, items: list[Term], close: Token) -> Term:
        depth = self._depth(1 + max(item.depth for item in items), opening)
        return ListTerm(tuple(items), None, self._span(opening).to(self._span(close)), depth)

    def partial_list(self, opening: Token, items: list[Term], _bar: Token, tail: Term, close: Token) -> Term:
        depth = self._depth(1 + max(item.depth for item in (*items, tail)), opening)
        return ListTerm(tuple(items), tail, self._span(opening).to(self._span(close)), depth)

    def braces(self, opening: Token, term: Term, close: Token) -> Term:
        span = self._span(opening)
        return Compound("{}", (term,), span.to(self._span(close)), span, self._depth(1 + term.depth, opening))

    def _span(self, token: Token) -> Span:
        start = self._start + (token.start_pos or 0)
        return self._positions.span(start, start + len(token))

    def _fault(self, code: str, token: Token, message: str, hint: str | None = None) -> Fault:
        start = self._start + (token.start_pos or 0)
        return Fault(code, start, start + len(token), message, hint)

    def _depth(self, depth: int, token: Token) -> int:
        """Refuse what later stages could not walk without running out of stack."""
        if depth > MAX_DEPTH:
            raise self._fault("too-deep", token, f"this term is nested more than {MAX_DEPTH} levels deep")
        return depth

    def _value(self, token: Token) -> int | float:
        text = token.replace("_", "")
        sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
        if len(digits) > MAX_DIGITS:
            raise self._fault("long-number", token, f"this number is longer than {MAX_DIGITS} digits")
        if digits.startswith("0'"):
            character = digits[2:]
            return sign * ord("'" if character == "''" else self._decode(character, token))
        if digits[:2] in ("0x", "0o", "0b"):
            return sign * int(digits, 0)
        if digits.isdigit():
            return sign * int(digits)
        value = float(digits)
        if value == float("inf"):
            raise self._fault("bad-number", token, "this number is too large")
        return sign * value

    def _unquote(self, token: Token) -> str:
        quote = token[0]
        return self._decode(token[1:-1].replace(quote * 2, quote), token)

    def _decode(self, text: str, token: Token) -> str:
        """Replace the escapes of quoted text."""

        def replace(match: re.Match[str]) -> str:
            escape = match[1]
            if escape in _ESCAPES:
                return _ESCAPES[escape]
            base = {"x": 16, "u": 16, "U": 16}.get(escape[0], 8)
            digits = escape.rstrip("\\") if base == 8 else escape[1:].rstrip("\\")
            try:
                code = int(digits, base)
            except ValueError:
                code = -1
            if not (0 <= code < 0xD800 or 0xE000 <= code < 0x110000):
                raise self._fault("bad-escape", token, f"unknown escape \\{escape} in quoted text",
                                  "a backslash itself is written \\\\")
            return chr(code)

        return _ESCAPE.sub(replace, text) if "\\" in text else text
