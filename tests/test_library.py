"""`programs/library/boxes.pl`: every relation on boxes that are clearly one way or the other, and what it costs."""

from __future__ import annotations

import pytest

import nsfrc

BASE = ":- include('boxes.pl').\n:- type(image, [img]).\n:- type(object, slots(3)).\n:- neural(in(object, image)).\n"
# x1, y1, x2, y2 of obj1, obj2, obj3: a large box on the left, a small one within it, a middle one on the right.
BOXES = ((0.1, 0.1, 0.5, 0.7), (0.2, 0.3, 0.3, 0.5), (0.7, 0.3, 0.9, 0.5))
PAIRS = {
    "left_of": {(1, 3), (2, 3), (2, 1)}, "right_of": {(3, 1), (3, 2), (1, 2)},
    "inside": {(2, 1)}, "contains": {(1, 2)}, "overlaps": {(1, 2), (2, 1)}, "touching": {(1, 2), (2, 1)},
    "near": {(1, 2), (2, 1)}, "larger": {(1, 2), (1, 3), (3, 2)}, "smaller": {(2, 1), (3, 1), (2, 3)},
    "same_row": {(1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2)},
}
ONE = {"largest": 1, "smallest": 2, "leftmost": 2, "rightmost": 3}


def world(boxes: tuple[tuple[float, ...], ...]) -> dict[str, float]:
    facts: dict[str, float] = {}
    for number, (x1, y1, x2, y2) in enumerate(boxes, 1):
        numbers = {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "x": (x1 + x2) / 2, "y": (y1 + y2) / 2,
                   "width": x2 - x1, "height": y2 - y1, "area": (x2 - x1) * (y2 - y1)}
        facts |= {f"{name}(obj{number})": value for name, value in numbers.items()}
        facts[f"in(obj{number},img)"] = 1
    return facts


def holding(target: str, boxes: tuple[tuple[float, ...], ...] = BOXES) -> set[str]:
    program = nsfrc.compile(source=f"{BASE}:- target({target}).\n", name="library")
    known = {p.key for p in program.source.numbers}
    facts = {atom: value for atom, value in world(boxes).items()
             if atom.startswith("in(") or (atom.partition("(")[0], 1) in known}
    values = program.reasoner("reference", outputs="targets")(program.valuation(facts))[0]
    return {atom for atom, value in zip(program.targets, values.tolist(), strict=True) if value > 0.5}


@pytest.mark.parametrize("name", PAIRS)
def test_relations_of_two(name: str) -> None:
    assert holding(f"{name}(_, _)") == {f"{name}(obj{a},obj{b})" for a, b in PAIRS[name]}


@pytest.mark.parametrize("name", ONE)
def test_the_one_that_no_other_exceeds(name: str) -> None:
    assert holding(f"{name}(_, img)") == {f"{name}(obj{ONE[name]},img)"}


def test_above_and_below() -> None:
    column = ((0.4, 0.0, 0.6, 0.1), (0.4, 0.4, 0.6, 0.5), (0.4, 0.8, 0.6, 0.9))
    assert holding("above(_, _)", column) == {f"above(obj{a},obj{b})" for a, b in ((1, 2), (1, 3), (2, 3))}
    assert holding("below(_, _)", column) == {f"below(obj{b},obj{a})" for a, b in ((1, 2), (1, 3), (2, 3))}
    assert len(holding("same_column(_, _)", column)) == 6 and not holding("same_column(_, _)", BOXES[1:])
    assert holding("topmost(_, img)", column) == {"topmost(obj1,img)"}
    assert holding("bottommost(_, img)", column) == {"bottommost(obj3,img)"}
    assert holding("between(_, _, _)", column) == {"between(obj2,obj1,obj3)", "between(obj2,obj3,obj1)"}


def test_numbers_are_counted_beside_the_library() -> None:
    """between/3 of numbers is Prolog's, although the library has one of objects."""
    text = BASE + ":- target(kp(img)).\nkp(X) :- aggregate_all(count, in(_, X), N), between(1, 2, N).\n"
    program = nsfrc.compile(source=text, name="counted")
    values = [program.valuation({f"in(obj{i},img)": 1 for i in range(1, n + 1)}) for n in range(4)]
    reasoner = program.reasoner("reference", outputs="targets")
    assert [float(reasoner(V0)) for V0 in values] == [0, 1, 1, 0]


def test_what_is_not_used_costs_nothing() -> None:
    text = "\n:- target(kp(img)).\nkp(X) :- in(A, X), in(B, X), left_of(A, B).\n"
    program = nsfrc.compile(source=BASE + text, name="one")
    assert {p.name for p in program.source.predicates} == {"in", "kp", "left_of", "x(A) < x(B)"}
    assert [n.name for n in program.source.numbers] == ["x"]
