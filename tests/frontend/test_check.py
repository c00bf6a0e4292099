"""What a good program means."""

from __future__ import annotations

import pytest

from nsfrc.compiler import ir
from nsfrc.errors import CompileError
from tests.frontend.support import VOCABULARY, clauses, compile_text, messages, program


def test_a_program() -> None:
    result = compile_text("""
        kp(X) :- in(O1, X), in(O2, X), pair(O1, O2).      % declarations may come later
        pair(X, Y) :- color(X, Z), color(Y, W), diff(Z, W).
        diff(red, blue).  diff(blue, red).  diff(red, blue).
        :- target(kp(img)).
        :- type(color, [red, yellow, blue]).  :- type(image, [img]).  :- type(object, slots(2)).
        :- neural(in(object, image)).  :- neural(color(object, color)).
        :- steps(4).  :- gamma(0.05).  :- threshold(0.5).  :- perception(kandinsky).
    """)
    assert [t.name for t in result.types] == ["color", "image", "object"]
    assert [t.role for t in result.types] == [ir.ATTRIBUTE, ir.INPUT, ir.OBJECT]
    assert result.type("object").constants == ("obj1", "obj2")
    assert {str(p): (p.role, p.types) for p in result.predicates} == {
        "in/2": (ir.NEURAL, ("object", "image")),
        "color/2": (ir.NEURAL, ("object", "color")),
        "kp/1": (ir.DERIVED, ("image",)),
        "pair/2": (ir.DERIVED, ("object", "object")),
        "diff/2": (ir.BACKGROUND, ("color", "color")),
    }
    assert [str(fact) for fact in result.facts] == ["diff(red,blue)", "diff(blue,red)"]
    assert [str(clause) for clause in result.clauses] == [
        "kp(X) :- in(O1,X), in(O2,X), pair(O1,O2).",
        "pair(X,Y) :- color(X,Z), color(Y,W), diff(Z,W).",
    ]
    assert result.clauses[1].types == (("X", "object"), ("Y", "object"), ("Z", "color"), ("W", "color"))
    assert [str(target) for target in result.targets] == ["kp(img)"]
    assert result.settings == ir.Settings(steps=4, gamma=0.05, perception="kandinsky", threshold=0.5)


def test_slots_override_and_names() -> None:
    text = ":- type(cell, slots(2)). :- target(kp(img)). kp(X) :- in(_, X)."
    assert program(text).type("cell").constants == ("cell1", "cell2")
    result = program(text, object=5, cell=1)
    assert result.type("object").constants == ("obj1", "obj2", "obj3", "obj4", "obj5")
    assert result.type("cell").constants == ("cell1",)
    assert result.type("cell").role == ir.OBJECT and result.type("cell").slots


@pytest.mark.parametrize(("slots", "message"), [
    ({"objekt": 2}, "slots for unknown type objekt"),
    ({"color": 2}, "type color is not declared with slots(N), so its size cannot be changed"),
    ({"object": 0}, "slots of object must be from 1 to 100000, not 0"),
])
def test_wrong_slots(slots: dict[str, int], message: str) -> None:
    assert message in messages(":- target(kp(img)). kp(X) :- in(_, X).", **slots)


def test_ignored_directives() -> None:
    text = """
        :- module(m, [kp/1]).  :- use_module(library(nsfr)).  :- use_module(library(lists), [append/3]).
        :- discontiguous kp/1.  :- dynamic(seen/1).  :- table kp/1.  :- set_prolog_flag(double_quotes, codes).
        :- style_check(-singleton).  :- ensure_loaded(library(lists)).  :- initialization main.
        :- target(kp(img)).
        kp(X) :- in(_, X).
    """
    assert messages(text) == []


@pytest.mark.parametrize("target", [
    ":- target(kp(img)).", ":- target([kp(img)]).", "query(kp(img)).", "?- kp(img).", ":- query(kp(img)).",
    ":- target(kp(_)).", ":- target(kp(img)), target(kp(img)).",
])
def test_ways_to_write_a_target(target: str) -> None:
    result = program(f"{target} kp(X) :- in(_, X).")
    assert [str(t) for t in result.targets] == ["kp(img)"]


def test_target_with_variables() -> None:
    result = program(":- target(near(obj2, Y)). near(X, Y) :- closeby(X, Y).")
    assert [str(t) for t in result.targets] == ["near(obj2,obj1)", "near(obj2,obj3)"]
    assert len(program(":- target(near(_, _)). near(X, Y) :- closeby(X, Y).").targets) == 6


def test_zero_arity() -> None:
    result = program(":- pred(alarm). :- target(alarm). alarm :- color(_, red). alarm :- warm, in(_, img). warm.")
    assert [str(t) for t in result.targets] == ["alarm"]
    assert [str(c) for c in result.clauses] == ["alarm :- color(_1,red).", "alarm :- warm, in(_1,img)."]
    assert [str(f) for f in result.facts] == ["warm"]


DISJUNCTIONS = [
    ("(color(O, red) ; color(O, blue))", ["color(O,red)", "color(O,blue)"]),
    ("(true ; fail), color(O, red)", ["color(O,red)"]),
    ("color(O, C), (C = red ; C = blue)", ["color(O,red)", "color(O,blue)"]),
    ("((color(O, red) ; fail), (size(O, 1) ; size(O, 2)) ; size(O, 3))",
     ["color(O,red), size(O,1)", "color(O,red), size(O,2)", "size(O,3)"]),
    ("(color(O, red) | color(O, blue))", ["color(O,red)", "color(O,blue)"]),
    ("(red = blue ; color(O, red))", ["color(O,red)"]),
    ("(color(O, red), true), true", ["color(O,red)"]),
]


@pytest.mark.parametrize(("body", "expected"), DISJUNCTIONS)
def test_disjunction(body: str, expected: list[str]) -> None:
    assert clauses(f":- target(kp(img)). kp(X) :- in(O, X), {body}.") == [
        f"kp(X) :- in(O,X), {goals}." for goals in expected
    ]


@pytest.mark.parametrize(("body", "expected"), [
    ("in(O, X), O = P, color(P, red)", "in(O,X), color(O,red)"),
    ("P = O, in(O, X), color(P, red)", "in(O,X), color(O,red)"),
    ("in(O, Y), Y = X, color(O, C), C = D, D = red", "in(O,X), color(O,red)"),
    ("in(O, X), color(O, C), C \\= red", "in(O,X), color(O,C), C \\== red"),
    ("in(O, X), color(O, C), C \\== red, dif(C, blue)", "in(O,X), color(O,C), C \\== red, C \\== blue"),
    ("in(O, X), color(O, C), C == red", "in(O,X), color(O,C), C == red"),
    ("in(O, X), size(O, S), S < 3, S * 2 - 1 >= 2 mod 5", "in(O,X), size(O,S), S < 3, ((S * 2) - 1) >= (2 mod 5)"),
    ("in(O, X), size(O, S), S =\\= 1, S =:= -(-2)", "in(O,X), size(O,S), S =\\= 1, S =:= -(-2)"),
    ("in(O, X), red \\= blue, 1 < 2, O == O", "in(O,X)"),
    ("in(O, X), size(O, S), S = 2, S > 1", "in(O,X), size(O,2)"),
    ("in(O, X), closeby(O, _), closeby(_, O)", "in(O,X), closeby(O,_1), closeby(_2,O)"),
    ("in(_1, X), closeby(_1, _)", "in(_1,X), closeby(_1,_2)"),
])
def test_bodies(body: str, expected: str) -> None:
    assert clauses(f":- target(kp(img)). kp(X) :- {body}.") == [f"kp(X) :- {expected}."]


def test_head_is_bound_by_equality() -> None:
    assert clauses(":- target(has(C, img)). has(C, X) :- in(O, X), color(O, C), C = red.") == [
        "has(red,X) :- in(O,X), color(O,red)."
    ]


def test_clause_without_goals_is_a_fact() -> None:
    rule = ":- target(kp(img)). kp(X) :- in(O, X), color(O, C), warm(C)."
    result = program(f"{rule} warm(red) :- true. warm(blue) :- 1 < 2.")
    assert [str(fact) for fact in result.facts] == ["warm(red)", "warm(blue)"]
    assert result.predicate(("warm", 1)).role == ir.BACKGROUND


def test_derived_predicates_may_have_facts() -> None:
    result = program(":- target(ok(red)). ok(C) :- color(_, C). ok(blue).")
    assert result.predicate(("ok", 1)).role == ir.DERIVED
    assert [str(fact) for fact in result.facts] == ["ok(blue)"]


def test_inference_over_several_clauses() -> None:
    result = program("""
        :- target(kp(img)).
        kp(X) :- in(O, X), chain(O, _), tint(blue), mix(red, C), color(O, C).
        chain(X, Y) :- link(X, Y).
        chain(X, Z) :- link(X, Y), chain(Y, Z).
        link(X, Y) :- link(Y, X).
        link(obj1, obj2).
        tint(C) :- mix(C, _).
        mix(X, Y) :- mix(Y, X).
        mix(red, yellow).
    """)
    types = {p.name: p.types for p in result.predicates}
    assert types["chain"] == types["link"] == ("object", "object")
    assert types["tint"] == ("color",) and types["mix"] == ("color", "color")


def test_a_constant_of_two_types_is_told_by_the_others() -> None:
    result = program("""
        :- type(mood, [red, calm]).  :- target(kp(img)).
        kp(X) :- in(O, X), color(O, C), warm(C), feels(_).
        warm(red).  warm(yellow).  feels(red).  feels(calm).
    """)
    assert result.predicate(("warm", 1)).types == ("color",)
    assert result.predicate(("feels", 1)).types == ("mood",)


def test_a_program_may_define_library_names() -> None:
    assert clauses(":- target(member(obj1)). member(O) :- color(O, red).") == ["member(O) :- color(O,red)."]


def test_a_declared_query_is_a_predicate() -> None:
    result = program(":- pred(query(color)). :- target(kp(img)). query(red). kp(X) :- in(O, X), color(O, C), query(C).")
    assert [str(fact) for fact in result.facts] == ["query(red)"]


@pytest.mark.parametrize(("directive", "message"), [
    (":- ensure_loaded('x.pl').", "ensure_loaded reads libraries only"),
    (":- include('x.pl').", "include must be a directive of its own, in a file"),
])
def test_directives_that_need_files(directive: str, message: str) -> None:
    assert messages(f"{directive} :- target(kp(img)). kp(X) :- in(_, X).") == [message]


def test_a_large_program() -> None:
    rules = "".join(f"p{i}(X) :- p{i + 1}(X), color(X, red) ; near(X, _), size(X, S), S > {i}.\n" for i in range(500))
    facts = "".join(f"pair(obj{i}, obj{i + 1}).\n" for i in range(1, 2000))
    text = f"{rules}{facts} p500(X) :- pair(X, _). near(X, Y) :- pair(X, Y). :- target(p0(obj1))."
    result = program(text, object=5000)
    assert len(result.clauses) == 1002 and len(result.facts) == 1999


def test_all_errors_at_once() -> None:
    found = messages("""
        :- target(kp(img)).
        kp(X) :- in(O, X), colour(O, red), color(O, grey), closeby(O, O), \\+ size(O, 1), color(O).
        kp(X) :- in O.
        near(X, Y) :- closeby(X, _).
    """)
    assert len(found) == 7


def test_names_of_broken_sentences_are_not_missed() -> None:
    found = messages("""
        :- target(kp(img)).
        :- type(texture, [rough smooth]).
        :- neural(texture(object, texture)).
        helper(O) :- color(O red).
        kp(X) :- in(O, X), helper(O), texture(O, rough).
    """)
    assert len(found) == 2 and all(message.startswith("expected") for message in found)


def test_clauses_read_back() -> None:
    text = """
        :- type(label, ['big box', 'it''s', 'Red', -1, 2.5, 1e22, 'a\\nb\\x1\\', '', '1.', ' 1', été]).
        :- neural('has label'(object, label)).  :- target(kp(img)).
        kp(X) :- in(O, X), 'has label'(O, 'big box'), 'has label'(O, 'it''s'), 'has label'(_, 'Red').
        kp(X) :- in(O, X), 'has label'(O, -1), 'has label'(O, 2.5), 'has label'(O, 1e22), 'has label'(O, 'a\\nb\\x1\\').
        kp(X) :- in(O, X), 'has label'(O, ''), 'has label'(O, '1.'), 'has label'(O, ' 1'), 'has label'(O, été).
        kp(X) :- in(O, X), size(O, S), S mod 2 =:= 0, S - 1 < -(S), O \\= obj1, (S == 1 ; S \\== 2), in(_, X).
    """
    first = compile_text(VOCABULARY + text)
    rules = text[: text.index("kp(X)")] + "\n".join(str(clause) for clause in first.clauses)
    assert compile_text(VOCABULARY + rules).clauses == first.clauses


def test_warnings_do_not_stop() -> None:
    with pytest.raises(CompileError):
        compile_text("kp(X) :- in(X).")
    assert messages("kp(X) :- in(O, X).") == ["singleton variable O; write _O if that is meant", "test has no target"]


GRID = """
:- type(row, [1, 2, 3]).
:- type(column, [1, 2, 3]).
:- neural(row(object, row)).
:- neural(column(object, column)).
:- target(kp(img)).
at(O, R, C) :- row(O, R), column(O, C).
"""


def test_a_constant_belongs_to_its_type() -> None:
    corner = ":- pred(corner(row, column)).  corner(1, 1).  "
    checked = program(GRID + corner + "kp(X) :- in(O, X), at(O, 2, 2), corner(1, 1).")
    assert [str(fact) for fact in checked.facts] == ["corner(1,1)"]
    assert str(checked.clauses[-1]) == "kp(X) :- in(O,X), at(O,2,2), corner(1,1)."
    assert [str(t) for t in program(GRID + ":- target(at(obj1, R, 2)).  kp(X) :- in(_, X).").targets][1:] == [
        "at(obj1,1,2)", "at(obj1,2,2)", "at(obj1,3,2)",
    ]


@pytest.mark.parametrize(("rules", "expected"), [
    ("kp(X) :- in(O, X), row(O, R), row(P, S), over(R, S), R = 2, (S = 2 ; S = 3).",
     ["kp(X) :- in(O,X), row(O,2), row(P,3), over(2,3)."]),
    ("kp(X) :- in(O, X), at(O, R, C), R = 2, (C = 2 ; C = 3).",
     ["kp(X) :- in(O,X), at(O,2,2).", "kp(X) :- in(O,X), at(O,2,3)."]),
])
def test_alternatives_that_repeat_a_constant_of_one_type_are_dropped(rules: str, expected: list[str]) -> None:
    over = "over(R, S) :- row(_O, R), row(_P, S), R > S.  "  # undeclared: its types follow from the body
    assert clauses(GRID + over + rules)[2:] == expected


def test_head_variables_that_the_body_does_not_mention() -> None:
    rules = ":- target(kp(img)).  :- pred(any(object, color)).  kp(X) :- in(O, X), any(O, red).  "
    more = "any(_, C) :- color(_, C).  any(O, C) :- size(O, N), C \\= red, N > 1.  any(_, _) :- true."
    checked = program(rules + more)
    assert [clause.types for clause in checked.clauses[1:]] == [
        (("_1", "object"), ("C", "color"), ("_2", "object")), (("O", "object"), ("C", "color"), ("N", "size")),
        (("_1", "object"), ("_2", "color")),
    ]
    assert checked.clauses[3].body == ()
    assert messages(rules + "any(O, C) :- color(_, C).") == [
        "O does not occur in the body, so it stands for every object",
    ]
    assert messages(":- target(kp(img)).  kp(X) :- in(_, X).  kp(Y) :- color(_, red).") == [
        "Y does not occur in the body, so it stands for every image",
    ]
    assert messages(":- target(kp(img)).  kp(X) :- in(O, X), odd(O, _).  odd(O, Z) :- color(O, red).") == [
        "cannot tell the type of Z: it does not occur in the body",
    ]
