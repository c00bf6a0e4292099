"""Most sentences, read several times as fast as by the grammar and without building its tables.

    color(obj1, red).     0.9::shape(obj1, square).     kp(X) :- in(O, X), \\+ color(O, red), size(O, S), S >= 2 * 3.

Anything else (rare operators, escapes, comments inside a sentence, errors) is left to the grammar, which says what all
of this means; tests compare the two. Tokens and priorities are those of `grammars/prolog.lark`. What is read here nests
little, so a call a level is safe; chains of `,` and `;` may be long and are gone through in loops.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from nsfrc.compiler.parse.positions import Positions
from nsfrc.compiler.syntax import CLAUSE, DIRECTIVE, Compound, ListTerm, Name, Number, Sentence, Term, Variable
from nsfrc.errors import Span

MAX_NAME = 1000  # characters
MAX_NESTING, MAX_DEPTH = 20, 60
MAX_PLAIN_DIGITS = 18

NAME = r"[^\W\d_A-ZÀ-ÖØ-Þ]\w*+"
VARIABLE = r"[A-Z_À-ÖØ-Þ]\w*+"
SYMBOLS = r"#$&*+\-./:<=>?@^~\\"
DECLARING = frozenset("dynamic discontiguous initialization multifile table".split())  # prefix operators behind `:-`
COMPARISONS = frozenset(r"= \= == \== =.. @< @> @=< @>= =:= =\= < > =< >= is".split())
SUMS, PRODUCTS = frozenset("+-"), frozenset("* / // << >> mod rem div".split())
PROBABILITY, NOT, NECK, RANGE, POWER, END = "::", "\\+", ":-", "..", "**", "."
ARITHMETIC = frozenset({*SUMS, *PRODUCTS, RANGE, POWER})

_BLANK = re.compile(r"(?:\s++|%[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
_OPERAND = re.compile(
    rf"\s*+(?:({NAME})(\()?|({VARIABLE})(?!\()|(-?[0-9]{{1,{MAX_PLAIN_DIGITS}}}+(?:\.[0-9]{{1,{MAX_PLAIN_DIGITS}}}+)?+)"
    rf"(?![\w'])|'([^'\\\n]*+)'(?!['(])|([(\[\]])|(:-|\\\+)(?![{SYMBOLS}(]))"
)
_NAME, _OPEN, _VARIABLE, _NUMBER, _QUOTED, _MARK, _PREFIX = range(1, 8)
_BEHIND = re.compile(
    rf"\s*+([,)\];]|\.(?=\s|%|\Z)|(?!\.(?![{SYMBOLS}]))[{SYMBOLS}]++|(?:is|mod|rem|div)(?!\w))"
)
_ARGUMENT = rf"({NAME}|-?[0-9]{{1,{MAX_PLAIN_DIGITS}}}+)"
# A fact of up to four names or whole numbers, such as most of a table of facts has.
_FACT = re.compile(rf"({NAME})\({_ARGUMENT}(?:, ?{_ARGUMENT}(?:, ?{_ARGUMENT}(?:, ?{_ARGUMENT})?+)?+)?+\)\.(?=\s|%|\Z)")


class _NotPlain(Exception):
    """The sentence is for the grammar."""


class Plain:
    """Reads plain sentences of one text.

    Every method that reads a term leaves what stands behind it, an operator or a mark, in `_behind`.
    """

    def __init__(self, positions: Positions):
        self._positions, self._source, self._text = positions, positions.source, positions.source.text
        self._known: dict[str, str] = {}  # names by themselves: those of a text are few, and each is kept once
        self._behind = END

    def skip_blanks(self, position: int) -> int:
        """Where the next sentence begins."""
        blank = _BLANK.match(self._text, position)
        return blank.end() if blank else position

    def sentence(self, start: int) -> tuple[Sentence, int] | None:
        """The sentence at `start` and where it ends, or None if it is not plain."""
        line, column = self._positions.place(start)
        fact = _FACT.match(self._text, start)
        if fact is not None and fact.end() - start < MAX_NAME:
            return self._fact(fact, line, column)
        self._at, self._nesting = start, 0
        self._line = line
        self._line_start = start - column + 1
        self._newline = self._text.find("\n", start)
        try:
            kind, term = self._clause()
        except _NotPlain:
            return None
        span = Span(self._source, line, column, self._line, self._at - self._line_start + 1)
        return Sentence(kind, term, span), self._at

    def _fact(self, fact: re.Match[str], line: int, column: int) -> tuple[Sentence, int]:
        source, known, end = self._source, self._known, fact.end()
        before = fact.start() - column
        args: list[Term] = []
        for number in range(2, (fact.lastindex or 2) + 1):
            text, place = fact[number], fact.span(number)
            span = Span(source, line, place[0] - before, line, place[1] - before)
            if text[0] in "-0123456789":
                args.append(Number(int(text), span))
            else:
                args.append(Name(known.setdefault(text, text), span))
        whole = Span(source, line, column, line, end - 1 - before)
        term = Compound(known.setdefault(fact[1], fact[1]), tuple(args), whole, None, 2)
        return Sentence(CLAUSE, term, None), end

    def _clause(self) -> tuple[str, Term]:
        token = self._operand()
        if token[_PREFIX] == NECK:
            token = self._operand()
            if token[_NAME] in DECLARING and not token[_OPEN]:
                raise _NotPlain  # `:- dynamic a/1.`
            kind, term = DIRECTIVE, self._alternatives(token)
        else:
            kind, term = CLAUSE, self._goal(token)
            if self._behind == NECK:
                neck = self._operator()
                term = self._infix(term, NECK, neck, self._alternatives(self._operand()))
        if self._behind != END:
            raise _NotPlain
        return kind, term

    def _alternatives(self, token: re.Match[str]) -> Term:
        return self._chain(";", self._goals, token)

    def _goals(self, token: re.Match[str]) -> Term:
        return self._chain(",", self._goal, token)

    def _chain(self, operator: str, read: Callable[[re.Match[str]], Term], token: re.Match[str]) -> Term:
        """Terms with one operator between them, which holds on to the right."""
        term = read(token)
        if self._behind != operator:
            return term
        terms, places = [term], []
        while self._behind == operator:
            places.append(self._operator())
            terms.append(read(self._operand()))
        result = terms.pop()
        while terms:
            result = self._infix(terms.pop(), operator, places.pop(), result)
        return result

    def _goal(self, token: re.Match[str]) -> Term:
        """A goal, or an argument: whatever binds tighter than a comma."""
        left = self._negated(token)
        if self._behind != PROBABILITY:
            return left
        return self._infix(left, PROBABILITY, self._operator(), self._negated(self._operand()))

    def _negated(self, token: re.Match[str]) -> Term:
        if token[_PREFIX] != NOT:
            return self._comparison(token)
        span = self._span(*token.span(_PREFIX))
        self._deeper()
        goal = self._negated(self._operand())
        self._nesting -= 1
        return Compound(NOT, (goal,), span.to(goal.span), span, goal.depth + 1)

    def _comparison(self, token: re.Match[str]) -> Term:
        left = self._term(token)
        operator = self._behind
        if operator in ",.)":
            return left
        if operator in ARITHMETIC:
            left = self._sum(left)
            operator = self._behind
        if operator not in COMPARISONS:
            return left
        place = self._operator()
        return self._infix(left, operator, place, self._sum(self._term(self._operand())))

    def _sum(self, left: Term) -> Term:
        """The methods from here on have the first operand already."""
        left = self._range(left)
        while (operator := self._behind) in SUMS:
            place = self._operator()
            left = self._infix(left, operator, place, self._range(self._term(self._operand())))
        return left

    def _range(self, left: Term) -> Term:
        left = self._product(left)
        if self._behind != RANGE:
            return left
        return self._infix(left, RANGE, self._operator(), self._product(self._term(self._operand())))

    def _product(self, left: Term) -> Term:
        left = self._power(left)
        while (operator := self._behind) in PRODUCTS:
            place = self._operator()
            left = self._infix(left, operator, place, self._power(self._term(self._operand())))
        return left

    def _power(self, left: Term) -> Term:
        if self._behind != POWER:
            return left
        return self._infix(left, POWER, self._operator(), self._term(self._operand()))

    def _term(self, token: re.Match[str]) -> Term:
        """A term without operators, or in parentheses."""
        kind = token.lastindex
        if kind == _OPEN:
            return self._compound(token)
        term: Term
        if kind == _VARIABLE:
            term = Variable(self._name(token[kind]), self._span(*token.span(kind)))
        elif kind == _NAME:
            term = Name(self._name(token[kind]), self._span(*token.span(kind)))
        elif kind == _NUMBER:
            digits = token[kind]
            term = Number(float(digits) if "." in digits else int(digits), self._span(*token.span(kind)))
        elif kind == _QUOTED:
            start, end = token.span(kind)
            term = Name(self._name(token[kind]), self._span(start - 1, end + 1))
        elif token[_MARK] == "[":
            return self._list(token)
        elif token[_MARK] == "(":
            return self._parenthesised()
        else:
            raise _NotPlain
        self._look_behind()
        return term

    def _compound(self, token: re.Match[str]) -> Term:
        name, line, column = self._name(token[_NAME]), self._line, token.start(_NAME) - self._line_start + 1
        args = self._arguments(self._operand(), ")")
        whole = Span(self._source, line, column, self._line, self._at - self._line_start + 1)
        self._look_behind()
        return Compound(name, args, whole, None, 1 + max([arg.depth for arg in args]))

    def _list(self, token: re.Match[str]) -> Term:
        opening = self._span(*token.span(_MARK))
        token = self._operand()
        items = None if token[_MARK] == "]" else self._arguments(token, "]")
        whole = Span(self._source, opening.line, opening.column, self._line, self._at - self._line_start + 1)
        self._look_behind()
        if items is None:
            return Name("[]", whole)
        return ListTerm(items, None, whole, 1 + max([item.depth for item in items]))

    def _parenthesised(self) -> Term:
        self._deeper()
        term = self._alternatives(self._operand())
        self._nesting -= 1
        if self._behind != ")":
            raise _NotPlain
        self._look_behind()
        return term

    def _arguments(self, token: re.Match[str], close: str) -> tuple[Term, ...]:
        """Terms with commas between them, up to what closes them."""
        self._deeper()
        terms = [self._goal(token)]
        while self._behind == ",":
            terms.append(self._goal(self._operand()))
        self._nesting -= 1
        if self._behind != close:
            raise _NotPlain
        return tuple(terms)

    def _infix(self, left: Term, operator: str, place: Span, right: Term) -> Compound:
        # A chain is walked in a loop, so only its left operands count as deeper.
        depth = max(left.depth + 1, right.depth if operator in ",;" else right.depth + 1)
        if depth > MAX_DEPTH:
            raise _NotPlain
        return Compound(operator, (left, right), None, place, depth)

    def _deeper(self) -> None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise _NotPlain

    def _operand(self) -> re.Match[str]:
        """The next token, where a term begins."""
        token = _OPERAND.match(self._text, self._at)
        if token is None:
            raise _NotPlain
        self._at = token.end()
        if 0 <= self._newline < self._at:
            self._next_line()
        return token

    def _look_behind(self) -> None:
        """The next token, where a term has ended."""
        token = _BEHIND.match(self._text, self._at)
        if token is None:
            raise _NotPlain
        self._behind, self._at = token[1], token.end()
        if 0 <= self._newline < self._at:
            self._next_line()

    def _next_line(self) -> None:
        self._line += self._text.count("\n", self._newline, self._at)
        self._line_start = self._text.rindex("\n", self._newline, self._at) + 1
        self._newline = self._text.find("\n", self._at)

    def _operator(self) -> Span:
        """The place of the operator that was read last."""
        return self._span(self._at - len(self._behind), self._at)

    def _span(self, start: int, end: int) -> Span:
        line, before = self._line, self._line_start - 1
        return Span(self._source, line, start - before, line, end - before)

    def _name(self, name: str) -> str:
        if len(name) > MAX_NAME - 2:
            raise _NotPlain
        return self._known.setdefault(name, name)
