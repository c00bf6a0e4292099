"""Says in plain words why the grammar stopped at a token."""

from __future__ import annotations

import re

from nsfrc.compiler.parse.build import Fault
from nsfrc.compiler.parse.positions import Positions
from nsfrc.compiler.parse.split import Piece, Token, tokens
from nsfrc.compiler.syntax import INFIX

_OPENING = {"LPAR": "')'", "LSQB": "']'", "LBRACE": "'}'"}
_CLOSING = {"RPAR", "RSQB", "RBRACE"}
_OPERANDS = {"NAME", "VARIABLE", "NUMBER", "QUOTED", "STRING", "CODES", "CUT", *_CLOSING}

# What people write who come from another language.
_FOREIGN = {
    "<=": "'less or equal' is written =<",
    "=>": "'greater or equal' is written >=",
    "<-": "a clause is written head :- body",
    ":=": "a clause is written head :- body",
    "&": "'and' is written ,",
    "&&": "'and' is written ,",
    "<>": "'different' is written \\=",
    "/=": "'different' is written \\=",
    "\\=\\=": "'different' is written \\==",
    "===": "'equal' is written ==",
    "?::": "a probability is written 0.5::fact, one that is learnt t(0.5)::fact",
}
_NOT = "'not' is written \\+, as in \\+ color(O, red); several goals stand in parentheses: \\+ (G, H)"
_COUNT = "to count solutions write aggregate_all(count, color(O, red), N), N >= 2"
# Words and signs that stand in front of something in other languages, and mean nothing there here.
_PREFIXES = {
    "not": _NOT, "~": _NOT, "!": _NOT, "#": _COUNT, "?::": _FOREIGN["?::"],
    "rel": "a clause is written head :- body, and variables begin with a capital letter: kp(X) :- in(O, X).",
}
_STARTS = {"NAME", "VARIABLE", "QUOTED", "LPAR"}


def explain(text: str, positions: Positions, piece: Piece, offset: int) -> tuple[Fault, int | None]:
    """The fault at `offset` of a sentence, and where to go on when the sentence seems to lack its '.'."""
    before: list[Token] = []
    token = Token("END", ".", piece.end - 1)
    following: Token | None = None
    for current in tokens(text, piece.start, piece.end):
        if current.end > offset:
            if current.start >= offset or current.kind != "END":
                token = current
            following = next(tokens(text, current.end, piece.end), None)
            break
        before.append(current)
    previous = before[-1] if before else None
    if token.kind == "STRAY":
        return _stray(text, token), None
    if token.text == "." and token.kind == "SYMBOL":
        message = "the '.' that ends a clause must be followed by white space"
        return Fault("syntax-error", token.start, token.end, message), None
    if previous is None or previous.kind not in _OPERANDS:
        after = f" after '{_shown(previous)}'" if previous else ""
        return Fault("syntax-error", token.start, token.end, f"expected a term{after} before '{_shown(token)}'",
                     _hint(previous, token, following)), None
    closers = _closers(before)
    message = f"expected {closers} before '{_shown(token)}'"
    if "'.'" in closers and positions.place(token.start)[1] == 1:
        line = positions.place(piece.start)[0]
        hint = f"the clause that starts on line {line} has no '.' at its end"
        return Fault("missing-end", token.start, token.end, message, hint), token.start
    return Fault("syntax-error", token.start, token.end, message, _hint(previous, token, following)), None


def _stray(text: str, token: Token) -> Fault:
    if token.text.isdigit():
        end = token.end
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
        return Fault("bad-number", token.start, end, f"'{text[token.start:end]}' is not a number",
                     "a name begins with a lower-case letter")
    shown = f"'{token.text}'" if token.text.isprintable() else f"U+{ord(token.text):04X}"
    return Fault("unexpected-character", token.start, token.end, f"unexpected character {shown}")


def _closers(before: list[Token]) -> str:
    """What may follow an operand: the separator or the end of the innermost open bracket."""
    stack: list[str] = []
    for token in before:
        if token.kind in _OPENING:
            stack.append(_OPENING[token.kind])
        elif token.kind in _CLOSING and stack:
            stack.pop()
    return f"',' or {stack[-1]}" if stack else "',' or '.'"


def _hint(previous: Token | None, token: Token, following: Token | None) -> str | None:
    if previous and token.kind == "LPAR" and previous.kind == "VARIABLE":
        return f"'{previous.text}' is a variable; a predicate begins with a lower-case letter"
    if previous and token.kind == "LPAR" and previous.kind == "NAME" and previous.text not in _PREFIXES:
        return f"write '{previous.text}(' without a space"
    if token.kind == "CUT" and following and following.text.startswith("="):
        return "'different' is written \\="
    if previous and previous.text in _PREFIXES and token.kind in _STARTS:
        return _PREFIXES[previous.text]
    if token.text in _FOREIGN:
        return _FOREIGN[token.text]
    if token.kind == "SYMBOL" and token.text in INFIX - {":-", "-->"}:
        return "operators of the same priority do not chain; use parentheses"
    if token.kind == "SYMBOL" and re.fullmatch(r".+[-+\\]", token.text) and token.text != ":-":
        return f"'{token.text}' is read as one symbol; put spaces between operators"
    return None


def _shown(token: Token) -> str:
    return token.text if len(token.text) <= 30 else token.text[:27] + "..."
