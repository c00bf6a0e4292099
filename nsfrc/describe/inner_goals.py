r"""Negations and counts in words.

    \+ (in(P,X), larger(P,O))                                      there is no other object P such that …
    forall(in(O,X), color(O,red))                                  for every object O such that …: O has color red
    aggregate_all(count, (in(O,X), color(O,red)), N), N >= 2       there are at least two objects O such that …
    … N > M                                                        there are more objects O such that … than objects O …
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nsfrc.compiler import ir
from nsfrc.records import dataclass

_TESTS = {">=": "at least", "=<": "at most", ">": "more than", "<": "fewer than", "=:=": "exactly",
          "=\\=": "a number other than"}
_SIDES = {">": ("more", "than"), "<": ("fewer", "than"), ">=": ("at least as many", "as"),
          "=<": ("at most as many", "as"), "=:=": ("as many", "as"), "=\\=": ("not as many", "as")}
_DIFFERENCE = {">=": "is at least", "=<": "is at most", ">": "is more than", "<": "is less than", "=:=": "is",
               "=\\=": "is not"}


@dataclass(frozen=True)
class Kind:
    """Variables of one type: what one and several of them are called, as in object and objects.

    other: than those outside; different: whether they are different by themselves.
    """

    one: str
    several: str
    names: tuple[str, ...]
    other: bool = False
    different: bool = False


@dataclass(frozen=True)
class Inside:
    """What stands within a negation or count: its own variables by type, and what is said of them."""

    kinds: tuple[Kind, ...]
    said: str


class InnerWords:
    """Words for goals within goals; `number` and `listed` as the rest of the sentence has them."""

    def __init__(self, number: Callable[[int], str], listed: Callable[[Sequence[str]], str]) -> None:
        self._number, self._listed = number, listed

    def none(self, inside: Inside) -> str:
        if not inside.kinds:
            return f"it is not so that {inside.said}"
        there = "is" if len(inside.kinds) == len(inside.kinds[0].names) == 1 else "are"
        return f"there {there} no {self._listed([self._one(kind) for kind in inside.kinds])}{_such(inside)}"

    def every(self, inside: Inside, then: str) -> str:
        if not inside.kinds:
            return f"if {inside.said}, then {then}"
        return f"for every {self._listed([self._one(kind) for kind in inside.kinds])}{_such(inside)}: {then}"

    def counted(self, inside: Inside, tests: Sequence[ir.Filter], number: str) -> str:
        """`there are two to four objects O such that …`; number: what the count is called where no words are short."""
        amount = self._amount(tests)
        if amount is not None and inside.kinds:
            return f"there are {amount} {self._ways(inside)}{_such(inside)}"
        said = " and ".join(str(test) for test in tests)
        return f"{self.as_argument(inside, number)}" + (f", and {said}" if said else "")

    def as_argument(self, inside: Inside, number: str) -> str:
        return f"{number} is the number of {self._ways(inside)}{_such(inside)}"

    def compared(self, first: Inside, second: Inside, test: ir.Filter) -> str:
        sides = [f"{self._ways(inside)}{_such(inside)}" for inside in (first, second)]
        if str(test.right) == "0":
            more, than = _SIDES[test.op]
            return f"there are {more} {sides[0]} {than} {sides[1]}"
        return (f"the number of {sides[0]} minus that of {sides[1]} {_DIFFERENCE[test.op]} {test.right}")

    def _amount(self, tests: Sequence[ir.Filter]) -> str | None:
        """`at least two`, `two to four`; None where it takes more than that."""
        ends = {test.op: test.right.name for test in tests
                if test.left == ir.Var(ir.NUMBER) and isinstance(test.right, ir.Const) and test.right.name.isdigit()}
        if len(ends) < len(tests) or len(ends) > 2:
            return None
        if len(ends) == 2:
            return f"{self._small(ends['>='])} to {self._small(ends['=<'])}" if ends.keys() == {">=", "=<"} else None
        [(op, name)] = ends.items()
        return f"{_TESTS[op]} {self._small(name)}"

    def _small(self, name: str) -> str:
        return self._number(int(name)) if name != "0" else "0"

    def _one(self, kind: Kind) -> str:
        """`object O`, `other object O`, `two different objects O and P`."""
        other = "other " * kind.other
        if len(kind.names) == 1:
            return f"{other}{kind.one} {kind.names[0]}"
        different = "different " * kind.different
        return f"{self._number(len(kind.names))} {other}{different}{kind.several} {self._listed(kind.names)}"

    def _ways(self, inside: Inside) -> str:
        """`objects O`, `choices of two different objects O and P`."""
        if len(inside.kinds) == 1 and len(inside.kinds[0].names) == 1:
            kind = inside.kinds[0]
            return f"{'other ' * kind.other}{kind.several} {kind.names[0]}"
        chosen = self._listed([self._one(kind) for kind in inside.kinds])
        return f"choices of {chosen}" if chosen else "ways"


def _such(inside: Inside) -> str:
    return f" such that {inside.said}" if inside.said else ""
