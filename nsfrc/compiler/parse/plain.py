"""Sentences without operators, read ten times as fast as by the grammar: most clauses and all but a few facts.

    color(obj1, red).          :- type(color, [red, blue]).          kp(X) :- in(O, X), color(O, red).

Anything else (operators, escapes, comments inside a sentence, errors) is left to the grammar, which says what all of
this means; tests compare the two. Tokens are those of `grammars/prolog.lark`.
"""

from __future__ import annotations

import re

from nsfrc.compiler.parse.positions import Positions
from nsfrc.compiler.syntax import CLAUSE, DIRECTIVE, Compound, ListTerm, Name, Number, Sentence, Term, Variable
from nsfrc.errors import Span

MAX_NAME = 1000  # characters
MAX_NESTING = 20
MAX_PLAIN_DIGITS = 18

NAME = r"[^\W\d_A-ZÀ-ÖØ-Þ]\w*+"
VARIABLE = r"[A-Z_À-ÖØ-Þ]\w*+"
DECLARING = frozenset("dynamic discontiguous initialization multifile table".split())  # prefix operators behind `:-`
_BLANK = re.compile(r"(?:\s++|%[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
_TOKEN = re.compile(
    rf"\s*+(?:({NAME})(\()?|({VARIABLE})(?!\()|(-?[0-9]{{1,{MAX_PLAIN_DIGITS}}}+)(?![\w.'])|'([^'\\\n]*+)'(?!['(])"
    r"|([,)\[\]])|(:-)(?![#$&*+\-./:<=>?@^~\\])|(\.)(?=\s|%|\Z))"
)
_NAME, _OPEN, _VARIABLE, _NUMBER, _QUOTED, _MARK, _NECK, _END = range(1, 9)


class _NotPlain(Exception):
    """The sentence is for the grammar."""


class Plain:
    """Reads plain sentences of one text."""

    def __init__(self, positions: Positions):
        self._positions, self._source, self._text = positions, positions.source, positions.source.text
        self._known: dict[str, str] = {}  # names by themselves: those of a text are few, and each is kept once

    def skip_blanks(self, position: int) -> int:
        """Where the next sentence begins."""
        blank = _BLANK.match(self._text, position)
        return blank.end() if blank else position

    def sentence(self, start: int) -> tuple[Sentence, int] | None:
        """The sentence at `start` and where it ends, or None if it is not plain."""
        self._at = start
        line, column = self._positions.place(start)
        self._line = line
        self._line_start = start - column + 1
        self._newline = self._text.find("\n", start)
        try:
            kind, term = self._clause()
        except _NotPlain:
            return None
        span = Span(self._source, line, column, self._line, self._at - self._line_start + 1)
        return Sentence(kind, term, span), self._at

    def _clause(self) -> tuple[str, Term]:
        token = self._next()
        if token.lastindex == _NECK:
            token = self._next()
            if token[_NAME] in DECLARING and not token[_OPEN]:
                raise _NotPlain  # `:- dynamic a/1.`
            goals, last = self._goals(token)
            if last.lastindex != _END:
                raise _NotPlain
            return DIRECTIVE, goals
        head = self._goal(token)
        neck = self._next()
        if neck.lastindex == _END:
            return CLAUSE, head
        if neck.lastindex != _NECK:
            raise _NotPlain
        span = self._span(neck, _NECK)
        goals, last = self._goals(self._next())
        if last.lastindex != _END:
            raise _NotPlain
        depth = max(head.depth, goals.depth) + 1
        return CLAUSE, Compound(":-", (head, goals), head.span.to(goals.span), span, depth)

    def _goals(self, token: re.Match[str]) -> tuple[Term, re.Match[str]]:
        """Goals with commas between them, and the token behind the last."""
        goals, commas = [self._goal(token)], []
        while (following := self._next())[_MARK] == ",":
            commas.append(self._span(following, _MARK))
            goals.append(self._goal(self._next()))
        result = goals.pop()
        while goals:
            goal = goals.pop()
            depth = max(goal.depth + 1, result.depth)
            result = Compound(",", (goal, result), goal.span.to(result.span), commas.pop(), depth)
        return result, following

    def _goal(self, token: re.Match[str]) -> Name | Compound:
        if not token[_NAME]:
            raise _NotPlain
        return self._named(token, 1)

    def _named(self, token: re.Match[str], nesting: int) -> Name | Compound:
        """A name, or a name with arguments."""
        name, span = self._name(token[_NAME]), self._span(token, _NAME)
        if not token[_OPEN]:
            return Name(name, span)
        args, close = self._arguments(self._next(), nesting)
        if close[_MARK] != ")":
            raise _NotPlain
        depth = 1 + max([arg.depth for arg in args])
        return Compound(name, tuple(args), span.to(self._span(close, _MARK)), span, depth)

    def _arguments(self, token: re.Match[str], nesting: int) -> tuple[list[Term], re.Match[str]]:
        """Terms with commas between them, and the token behind the last."""
        terms = [self._term(token, nesting)]
        while (following := self._next())[_MARK] == ",":
            terms.append(self._term(self._next(), nesting))
        return terms, following

    def _term(self, token: re.Match[str], nesting: int) -> Term:
        kind = token.lastindex
        if kind == _VARIABLE:
            return Variable(self._name(token[_VARIABLE]), self._span(token, _VARIABLE))
        if kind == _NAME:
            return Name(self._name(token[_NAME]), self._span(token, _NAME))
        if kind == _OPEN and nesting < MAX_NESTING:
            return self._named(token, nesting + 1)
        if kind == _NUMBER:
            return Number(int(token[_NUMBER]), self._span(token, _NUMBER))
        if kind == _QUOTED:
            span = self._span(token, _QUOTED)
            quotes = Span(span.source, span.line, span.column - 1, span.line, span.end_column + 1)
            return Name(self._name(token[_QUOTED]), quotes)
        if token[_MARK] == "[" and nesting < MAX_NESTING:
            return self._list(self._span(token, _MARK), nesting + 1)
        raise _NotPlain

    def _list(self, opening: Span, nesting: int) -> Term:
        token = self._next()
        if token[_MARK] == "]":
            return Name("[]", opening.to(self._span(token, _MARK)))
        items, close = self._arguments(token, nesting)
        if close[_MARK] != "]":
            raise _NotPlain
        depth = 1 + max([item.depth for item in items])
        return ListTerm(tuple(items), None, opening.to(self._span(close, _MARK)), depth)

    def _next(self) -> re.Match[str]:
        token = _TOKEN.match(self._text, self._at)
        if token is None:
            raise _NotPlain
        self._at = token.end()
        if 0 <= self._newline < self._at:
            self._line += self._text.count("\n", self._newline, self._at)
            self._line_start = self._text.rindex("\n", self._newline, self._at) + 1
            self._newline = self._text.find("\n", self._at)
        return token

    def _span(self, token: re.Match[str], group: int) -> Span:
        line, before = self._line, self._line_start - 1
        return Span(self._source, line, token.start(group) - before, line, token.end(group) - before)

    def _name(self, name: str) -> str:
        if len(name) > MAX_NAME - 2:
            raise _NotPlain
        return self._known.setdefault(name, name)
