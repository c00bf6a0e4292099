"""What stands between two tokens that share a line: nothing, or one blank."""

from __future__ import annotations

from itertools import pairwise

from nsfrc.compiler.formatting.roles import Part, Role

_SYMBOLS = frozenset("#$&*+-./:<=>?@^~\\")
# Infix operators with a blank on both sides: those that bind at 700 or more loosely, and words.
_LOOSE = frozenset(
    ":- --> ; -> *-> = \\= == \\== @< @> @=< @>= =.. is =:= =\\= < > =< >= mod rem div".split()
)
_TIGHT = frozenset([":", "::", ".."])  # all others are as their author has them


def gaps(line: list[Part]) -> list[str]:
    """What stands before each part of a sentence, were it all on one line; nothing before the first."""
    result = [""]
    for place, (left, right) in enumerate(pairwise(line), start=1):
        wanted = _wanted(line, place, left, right)
        result.append(" " if wanted or _would_join(left, right) else "")
    return result


def _wanted(line: list[Part], place: int, left: Part, right: Part) -> bool:
    if Role.COMMENT in (left.role, right.role):
        return True
    if right.role in (Role.END, Role.CLOSE) or right.kind == "COMMA" or left.role in (Role.OPEN, Role.CALL):
        return False
    if left.kind == "COMMA":
        return True
    if left.role is Role.FUNCTOR:
        return False
    if left.role is Role.PREFIX:
        return left.text not in ("-", "+", "\\") or right.gap
    if left.role is Role.INFIX:
        return _spaced(line, place - 1)
    return right.role is Role.INFIX and _spaced(line, place)


def _spaced(line: list[Part], place: int) -> bool:
    """Whether the infix operator at a place has blanks on both sides."""
    operator = line[place]
    if operator.kind == "BAR":
        return operator.around != "["
    if operator.text in _LOOSE:
        return True
    if operator.text in _TIGHT:
        return False
    return operator.gap or (place + 1 < len(line) and line[place + 1].gap)


def _would_join(left: Part, right: Part) -> bool:
    """Whether two tokens would be read as one, or as a comment, without a blank."""
    return left.text[-1] in _SYMBOLS and left.kind == "SYMBOL" and right.text[0] in _SYMBOLS
