"""The shim `programs/nsfr.pl`, rule by rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import examples
from tests.swi import oracle

pytestmark = oracle.needs_swipl

VOCABULARY = "\n:- use_module(library(nsfr))." + examples.VOCABULARY


def holds(clauses: str, world: str, target: str) -> bool:
    """Whether a target holds when the given neural atoms do."""
    return oracle.answers(VOCABULARY + clauses, [world.split()], [target]) == [[True]]


TWO = "two :- in(A, I), in(B, I), color(A, red), color(B, red)."
LOOSE = "loose(X) :- near(X, Y), color(_Z, red), in(Y, img)."
PATH = "path(X, Y) :- near(X, Y).  path(X, Y) :- near(X, Z), path(Z, Y)."
EITHER = "either(X) :- ( color(X, red) ; Y = X, size(Y, N), N > 1 )."
FILTER = "other(X) :- dif(X, Y), X \\== Z, color(Y, red), in(X, img), size(Z, 1), Z \\= Y."
DIAGONAL = """
:- type(row, [1, 2, 3]).
:- neural(row(object, row)).
:- pred(corner(row, size)).
at(O, R, N) :- row(O, R), size(O, N).
corner(1, 1).
diagonal :- at(_, R, N), R =:= N.
"""
ANY = ":- pred(any(object)).  any(_X) :- in(_Y, _I)."
ASKED = f":- classes([two, any(obj1)]).  :- threshold(two, 0.5), threshold(classes, 0.4).  {TWO}  {ANY}"

CASES = [
    ("two variables are two objects", TWO, "in(obj1,img) color(obj1,red)", "two", False),
    ("two objects are two", TWO, "in(obj1,img) color(obj1,red) in(obj2,img) color(obj2,red)", "two", True),
    ("a body variable may take a constant of the head", LOOSE,
     "near(obj1,obj2) color(obj1,red) in(obj2,img)", "loose(obj1)", True),
    ("body variables differ", LOOSE, "near(obj1,obj2) color(obj2,red) in(obj2,img)", "loose(obj1)", False),
    ("a fact with a repeated constant counts for nothing", PATH, "near(obj1,obj1)", "path(obj1,obj1)", False),
    ("nothing is derived with a repeated constant", PATH, "near(obj1,obj2) near(obj2,obj1)",
     "path(obj1,obj1)", False),
    ("recursion ends", PATH, "near(obj1,obj2) near(obj2,obj1) near(obj2,obj3)", "path(obj1,obj3)", True),
    ("constants are of their type", "one(X) :- color(X, _C).", "color(obj9,red)", "one(obj9)", False),
    ("first alternative", EITHER, "color(obj1,red)", "either(obj1)", True),
    ("second alternative", EITHER, "size(obj1,2)", "either(obj1)", True),
    ("no alternative", EITHER, "size(obj1,1) color(obj1,blue)", "either(obj1)", False),
    ("tests wait for their variables", FILTER, "color(obj1,red) in(obj2,img) size(obj3,1)",
     "other(obj2)", True),
    ("tests see constants", FILTER, "color(obj1,red) in(obj2,img) size(obj2,1)", "other(obj2)", False),
    ("constants of two types differ whatever their names", DIAGONAL, "row(obj1,2) size(obj1,2)", "diagonal", True),
    ("numbers of two types are compared by value", DIAGONAL, "row(obj1,2) size(obj1,1)", "diagonal", False),
    ("a fact may name constants of two types alike", DIAGONAL, "row(obj1,1) size(obj1,1)", "corner(1,1)", True),
    ("a head variable that the body leaves free", ANY, "in(obj2,img)", "any(obj1)", True),
    ("it takes constants of its type alone", ANY, "in(obj2,img)", "any(red)", False),
    ("what is asked does nothing", ASKED, "in(obj2,img)", "any(obj1)", True),
    ("it waits for the body", ANY, "color(obj2,red)", "any(obj1)", False),
    ("a clause of tests alone", "less(M, N) :- M < N.  :- pred(less(size, size)).", "", "less(1,2)", True),
    ("whose tests fail", "less(M, N) :- M < N.  :- pred(less(size, size)).", "", "less(2,1)", False),
    ("division by zero is no error", "big(X) :- size(X, N), 4 / (N - 1) > 3.", "size(obj1,1)",
     "big(obj1)", False),
]


@pytest.mark.parametrize(("clauses", "world", "target", "expected"), [case[1:] for case in CASES],
                         ids=[case[0] for case in CASES])
def test_rule(clauses: str, world: str, target: str, expected: bool) -> None:
    assert holds(clauses, world, target) == expected


def test_declarations_may_follow_the_clauses() -> None:
    text = ":- use_module(library(nsfr)).\n" + TWO + VOCABULARY
    worlds = [["in(obj1,img)", "color(obj1,red)"],
              ["in(obj1,img)", "color(obj1,red)", "in(obj2,img)", "color(obj2,red)"]]
    assert oracle.answers(text, worlds, ["two"]) == [[False], [True]]


def test_types_of_undeclared_predicates_are_inferred() -> None:
    text = VOCABULARY + """
        :- target(kp(img)).
        query(pair(obj1, obj2)).
        pair(X, Y) :- near(X, Y).
        chain(X, Z) :- pair(X, Y), pair(Y, Z).
        kp(img) :- chain(_X, _Y), chain(_Z, _W).
    """
    crowd = ["near(obj1,obj2)", "near(obj2,obj3)"]
    assert oracle.answers(text, [crowd], ["chain(obj1,obj3)", "kp(img)"]) == [[True, False]]


def test_facts_come_from_a_file_and_answers_follow_them(tmp_path: Path) -> None:
    first, second = tmp_path / "facts.pl", tmp_path / "more.pl"
    first.write_text("in(obj1, img).\ncolor(obj1, red).\nin(obj2, img).\ncolor(obj2, blue).\n")
    second.write_text("color(obj2, red).\n")
    program = tmp_path / "program.pl"
    program.write_text(VOCABULARY + TWO)
    ask = "(two -> write(yes) ; write(no))"
    steps = ["assertz(color(obj2, red))", "retract(color(obj2, red))", f"consult('{second}')"]
    result = oracle.run(program, first, goal=f", {ask}, ".join(["true", *steps]) + f", {ask}")
    assert (result.stdout, result.stderr) == ("noyesnoyes", "")


def test_shipped_vocabularies_are_found_from_anywhere(tmp_path: Path) -> None:
    program = tmp_path / "mine.pl"
    program.write_text(":- use_module(library(nsfr)).\n:- include('kandinsky.pl').\n"
                       ":- type(object, slots(2)).\nred(X) :- color(X, red).\n")
    assert oracle.answers(program, [["color(obj1,red)"]], ["red(obj1)", "red(obj2)"]) == [[True, False]]


def test_what_is_to_be_learnt_says_nothing_here(tmp_path: Path) -> None:
    program = tmp_path / "learn.pl"
    program.write_text(VOCABULARY + ":- learn([kp(image), other(image)]).\n:- vars(object, 2).\n"
                       ":- body(color(object, color)).\n:- body(near(object, object), [max(1), symmetric]).\n"
                       "red(X) :- color(X, red).\n")
    result = oracle.run(program, goal="true")
    assert (result.stdout, result.stderr) == ("", "")


DETECTOR = """
:- use_module(library(nsfr)).
:- type(image, [img]).  :- type(object, slots(auto)).  :- type(class, from_perception).
:- attributes([color-[red, blue], shape-[square, circle]]).
:- neural(in(object, image)).  :- neural(class(object, class)).
:- neural(color(object, color)).  :- neural(shape(object, shape)).
:- perception('best.onnx').  :- model([names([cup, 'traffic light']), size(640)]).  :- presence(crisp(0.4)).
cup(X) :- in(O, X), class(O, cup).
pair(X) :- in(A, X), in(B, X), class(A, C), class(B, C).
hue(C) :- color(_, C), shape(_, square).
:- target(cup(img)).  :- target(pair(img)).
"""


@pytest.mark.parametrize(("world", "cup", "pair", "red", "green"), [
    ("in(obj1,img) class(obj1,cup)", True, False, False, False),
    ("in(obj1,img) class(obj1,lamp) in(obj9,img) class(obj9,lamp)", False, True, False, False),
    ("in(obj1,img) class(obj1,lamp) in(obj2,img) class(obj2,cup)", True, False, False, False),
    ("in(obj1,img) class(obj1,lamp) in(obj11,img) class(obj11,lamp)", False, False, False, False),
    ("color(obj1,red) color(obj2,green) shape(obj3,square)", False, False, True, False),
    ("color(obj1,red) shape(obj1,triangle)", False, False, False, False),
])
def test_what_is_said_of_a_detector(world: str, cup: bool, pair: bool, red: bool, green: bool) -> None:
    """Classes are any constants, slots(auto) is ten, and the values of attributes are those that are listed."""
    for presence in ("crisp(0.4)", "soft"):
        text = DETECTOR.replace("crisp(0.4)", presence)
        found = oracle.answers(text, [world.split()], ["cup(img)", "pair(img)", "hue(red)", "hue(green)"])
        assert found == [[cup, pair, red, green]]


def test_two_programs_in_one_session(tmp_path: Path) -> None:
    for name in ("first", "second"):
        clause = f"{name}(X) :- near(X, Y), near(Y, Z), color(Z, red).\n"
        (tmp_path / f"{name}.pl").write_text(f":- module({name}, [{name}/1]).\n{VOCABULARY}{clause}")
    world = ["near(obj1,obj2)", "near(obj2,obj1)", "color(obj1,red)"]
    given = ", ".join(f"assertz({name}:{atom})" for name in ("first", "second") for atom in world)
    goal = f"{given}, forall((first(X) ; second(X)), writeln(X))"
    result = oracle.run(tmp_path / "first.pl", tmp_path / "second.pl", goal=goal)
    assert (result.stdout, result.stderr) == ("obj1\nobj1\n", "")
