"""Measured numbers: comparisons become atoms of predicates of their own."""

from __future__ import annotations

import pytest

import nsfrc
from nsfrc.compiler import ir, spelling
from nsfrc.compiler.stages import compile_text
from nsfrc.errors import CompileError

VOCABULARY = """
:- type(image, [img]).
:- type(object, slots(3)).
:- type(color, [red, blue]).
:- type(size, 1..3).
:- neural(in(object, image)).
:- neural(color(object, color)).
:- neural(size(object, size)).
:- number(gap(object, object)).
:- number(score(object, color)).
:- number(brightness(image)).
:- target(kp(img)).
"""


def checked(clauses: str) -> ir.Program:
    return compile_text(VOCABULARY + clauses, "rules.pl").program


def compared(clauses: str) -> list[str]:
    """The names of the comparisons, in the order of the text."""
    return [p.name for p in checked(clauses).predicates if p.role == ir.COMPARED]


def last(clauses: str) -> str:
    return str(checked(clauses).clauses[-1])


@pytest.mark.parametrize(("body", "printed"), [
    ("area(O) > 0.3", "area(O) > 0.3"),
    ("0.3 =< area(O)", "0.3 =< area(O)"),
    ("area(O, V), V > 0.3", "area(O) > 0.3"),
    ("V > 0.3, area(O, V)", "area(O) > 0.3"),
    ("W is V * 2, area(O, V), W > 0.3", "area(O) * 2 > 0.3"),
    ("W is area(O) * 2, W > 0.4", "area(O) * 2 > 0.4"),
    ("area(O, 0.3)", "area(O) =:= 0.3"),
    ("area(O, V), width(O, V)", "area(O) =:= width(O)"),
    ("1 - (y1(O) - y2(O)) =\\= 2 / (x(O) * 3)", "1 - (y1(O) - y2(O)) =\\= 2 / (x(O) * 3)"),
    ("min(area(O), 1) + abs(x(O)) < sqrt(x(O) ** 2)", "min(area(O), 1) + abs(x(O)) < sqrt(x(O) ** 2)"),
    ("size(O, S), area(O) > S // 2", "size(O,S), area(O) > S // 2"),
    ("size(O, S), area(O) * 2 ** (S mod 2) > -(S ^ 2)", "size(O,S), area(O) * 2 ** (S mod 2) > -(S ^ 2)"),
    ("size(O, S), S is area(O)", "size(O,S), S =:= area(O)"),
    ("score(O, red) > 2", "score(O,red) > 2"),
    ("P = obj2, gap(O, P) < 1", "gap(O,obj2) < 1"),
    ("brightness(X) > 0.5", "brightness(X) > 0.5"),
    ("between(0.2, 0.4, area(O))", "0.2 =< area(O), area(O) =< 0.4"),
])
def test_spellings(body: str, printed: str) -> None:
    assert last(f"kp(X) :- in(O, X), {body}.") == f"kp(X) :- in(O,X), {printed}."


def test_comparisons_that_read_the_same_are_one() -> None:
    """Up to the names of variables and of objects, not of attributes and numbers."""
    clauses = """
        kp(X) :- in(O, X), area(O) > 0.3, area(P) > 0.3, in(P, X).
        kp(X) :- in(T, X), area(T, V), V > 0.3, area(obj1) > 0.3.
        kp(X) :- in(A, X), in(B, X), gap(B, A) < 1, gap(A, B) < 1, gap(obj1, obj2) < 1.
        kp(X) :- in(A, X), score(A, red) > 2, score(A, blue) > 2, score(A, C) > 2, color(A, C).
    """
    assert compared("kp(X) :- in(A, X), area(A) > area(obj2), area(obj1) > area(obj2).") == [
        "area(A) > area(obj2)", "area(A) > area(B)"]
    assert compared(clauses) == ["area(A) > 0.3", "gap(A,B) < 1", "score(A,red) > 2", "score(A,blue) > 2",
                                 "score(A,B) > 2"]


def test_the_same_text_of_other_types_is_another_comparison() -> None:
    names = compared("""
        :- type(level, [1, 5]).
        :- neural(level(object, level)).
        kp(X) :- in(O, X), size(O, N), area(O) > N.
        kp(X) :- in(O, X), level(O, N), area(O) > N.
    """)
    assert names == ["area(A) > B", "area(A) > B #2"]


def test_numbers_give_types() -> None:
    program = checked("""
        kp(X) :- high(T), in(T, X), far(T, P), in(P, X).
        high(T) :- y1(T) < 0.2.
        far(A, B) :- gap(A, B) > 0.5.
    """)
    assert program.predicate(("high", 1)).types == ("object",)
    assert program.predicate(("far", 2)).types == ("object", "object")
    assert [str(number) for number in program.numbers] == [
        "gap(object, object)", "score(object, color)", "brightness(image)", "y1(object)"]


def test_a_predicate_of_the_programs_own_goes_first() -> None:
    program = checked("""
        :- pred(area(object, size)).
        area(O, S) :- size(O, S).
        x(O) :- color(O, red).
        kp(X) :- in(O, X), area(O, S), S > 1, x(O).
    """)
    assert not [p for p in program.predicates if p.role == ir.COMPARED]
    with pytest.raises(CompileError, match="unknown number x/1"):
        checked("x(O) :- color(O, red). kp(X) :- in(O, X), x(O) > 0.5.")


def test_comparisons_are_inputs() -> None:
    program = nsfrc.compile(source=VOCABULARY + "kp(X) :- in(O, X), area(O) > 1.5 * area(P), in(P, X).")
    names = [atom for atom, neural in zip(program.atoms, program.ground.neural, strict=True) if neural]
    assert names[:2] == ["area(obj1) > 1.5 * area(obj2)", "area(obj1) > 1.5 * area(obj3)"]
    assert program.index("area(obj1)>1.5*area(obj2)") == program.atoms.index("area(obj1) > 1.5 * area(obj2)")
    assert set(program.ground.initial.tolist()) == {0, 1}


def test_constants_alone_are_still_filters() -> None:
    program = checked("kp(X) :- in(O, X), size(O, S), sqrt(S) > 1.5, S ** 2 < 10.")
    assert len(program.clauses[-1].filters) == 2 and not program.clauses[-1].body[2:]


def test_a_quoted_name_that_reads_like_a_comparison_is_a_name() -> None:
    program = checked("""
        :- neural('area(A) > 0.3'(object)).
        kp(X) :- in(O, X), 'area(A) > 0.3'(O), area(O) > 0.3.
    """)
    assert [p.name for p in program.predicates if p.role == ir.COMPARED] == ["area(A) > 0.3 #2"]


def test_names_with_capitals_in_quotes_stay() -> None:
    assert spelling.spelt("'A b'(A) > B", ["obj1", "2"]) == "'A b'(obj1) > 2"
    assert spelling.spelt("p", ["obj1"]) is None and spelling.spelt("a > b", ["obj1"]) is None
    assert [spelling.variable(place) for place in (0, 25, 26, 53)] == ["A", "Z", "A1", "B2"]


def test_the_emitted_program_reads_back() -> None:
    from nsfrc.compiler.emit import typed

    clauses = "kp(X) :- in(O, X), area(O) > 1.5 * area(P), in(P, X), gap(O, P) =\\= 2.\n0.5::kp(X) :- in(_, X).\n"
    first = compile_text(VOCABULARY + clauses, "rules.pl")
    again = compile_text("\n".join(typed(first)), "rules.pl")
    assert again.program.clauses == first.program.clauses
    assert set(again.program.predicates) == set(first.program.predicates)
    assert list(typed(again)) == list(typed(first))


def test_what_is_said_of_perception_reads_back() -> None:
    from nsfrc.compiler.emit import typed

    first = compile_text("""
        :- type(image, [img]). :- type(object, slots(3)). :- type(class, from_perception).
        :- perception('best.onnx'). :- model([names(['traffic light', car]), size(320, 640)]). :- presence(crisp(0.25)).
        :- attributes([color-[red, blue], shape-[square]]).
        :- neural(class(object, class)). :- neural(color(object, color)). :- target(kp).
        kp :- class(O, 'traffic light'), color(O, red).
    """, "rules.pl")
    again = compile_text("\n".join(typed(first)), "rules.pl")
    assert list(typed(again)) == list(typed(first))
    assert again.program.settings == first.program.settings
    assert ":- attributes([color-[red, blue], shape-[square]])." in typed(first)


@pytest.mark.parametrize("doublings", [8, 9, 40, 400])
def test_expressions_do_not_explode(doublings: int) -> None:
    """What `is` shares is written out, so it must be small."""
    steps = ", ".join(f"X{i + 1} is X{i} + X{i}" for i in range(doublings))
    text = f"kp(X) :- in(O, X), X0 is area(O), {steps}, X{doublings} > 1."
    if doublings < 9:
        assert len(last(text)) < 10_000
        return
    with pytest.raises(CompileError, match="more than 1,000 numbers, or nested too deep"):
        checked(text)
