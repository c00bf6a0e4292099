"""What a program asks, and what scores say to it."""

from __future__ import annotations

import pytest

import nsfrc
from nsfrc.questions import DRIFT, Question, called, questions, short
from nsfrc.reasoner import empty_values

TEXT = """
    :- include('kandinsky.pl').
    :- type(object, slots(2)).
    :- classes([warm(img), cold(img)]).
    :- target(triangle(img)).
    ?- seen(_).
    :- threshold(seen(_), 0.25), threshold(classes, 0.125).
    warm(X) :- in(O, X), color(O, red).
    cold(X) :- in(O, X), color(O, blue).
    triangle(X) :- in(O, X), shape(O, triangle).
    seen(O) :- in(O, img).
"""


def test_questions_of_a_program() -> None:
    """Targets come first, in the order of the text; the classes are one question, the last."""
    program = nsfrc.compile(source=TEXT)
    assert program.targets == ["triangle(img)", "seen(obj1)", "seen(obj2)", "warm(img)", "cold(img)"]
    assert program.classes == ["warm(img)", "cold(img)"]
    assert [(one.name, one.atoms, one.first) for one in program.questions] == [
        ("triangle(img)", ("triangle(img)",), 0), ("seen(obj1)", ("seen(obj1)",), 1),
        ("seen(obj2)", ("seen(obj2)",), 2), ("classes", ("warm(img)", "cold(img)"), 3)]
    assert program.settings.thresholds == (("seen(obj1)", 0.25), ("seen(obj2)", 0.25), ("classes", 0.125))
    assert [one.values((1, 2, 3, 4, 5)) for one in program.questions] == [(1,), (2,), (3,), (4, 5)]


def test_classes_are_not_targets_and_targets_not_classes() -> None:
    assert questions(["a", "b"]) == (Question("a", ("a",), 0), Question("b", ("b",), 1))
    assert questions(["a", "b"], ["a", "b"]) == (Question("classes", ("a", "b"), 0),)
    assert nsfrc.compile("clevr_hans3").questions == questions(*[["kp1(img)", "kp2(img)", "kp3(img)"]] * 2)
    assert [one.name for one in nsfrc.compile("twopairs").questions] == ["kp(img)"]


def test_a_target_holds_from_its_threshold_on_as_written() -> None:
    one = Question("b", ("b",), 1)
    assert [one.answer((1.0, s), 0.6) for s in (0.59, 0.59994, 0.59996, 0.6, 1.0)] == ["false"] * 2 + ["true"] * 3
    assert one.answer((1.0, 0.0), 0.0) == "true" and one.best((1.0, 0.0)) == "b"


@pytest.mark.parametrize(("values", "threshold", "empty", "answer"), [
    ((0.1, 0.3, 0.2), 0.0, None, "b"),
    ((0.1, 0.3, 0.3), 0.3, None, "b"),  # the first of equals
    ((0.1, 0.3, 0.3000001), 0.0, None, "b"),
    ((0.1, 0.99996, 0.99999), 0.0, None, "c"),  # all digits count
    ((0.1, 0.3, 0.2), 0.31, None, "none"),
    ((0.0, 0.0, 0.0), 0.0, None, "none"),
    ((0.0, 0.00004, 0.0), 0.0, None, "none"),  # 0, as it is written
    ((0.0, 0.0001, 0.0), 0.0, None, "b"),
    ((0.07, 0.07, 0.07), 0.0, (0.07, 0.07, 0.07), "none"),
    ((0.07, 0.07 + DRIFT, 0.07), 0.0, (0.07, 0.07, 0.07), "none"),
    ((0.07, 0.0712, 0.07), 0.0, (0.07, 0.07, 0.07), "b"),
    ((0.07, 0.12, 0.07), 0.0, (0.07, 0.12, 0.07), "none"),  # each class has a level of its own
    ((0.125, 0.12, 0.07), 0.0, (0.07, 0.12, 0.07), "a"),
    ((0.07, 0.5, 0.07), 0.6, (0.07, 0.07, 0.07), "none"),
])
def test_classes(
    values: tuple[float, ...], threshold: float, empty: tuple[float, ...] | None, answer: str
) -> None:
    one = Question("classes", ("a", "b", "c"), 1)
    assert one.answer((1.0, *values), threshold, None if empty is None else (1.0, *empty)) == answer
    assert one.answers == ("a", "b", "c", "none")


def test_what_users_call_questions() -> None:
    asked = questions(["red(img)", "blue(img)", "a(img)", "b(img)"], ["a(img)", "b(img)"])
    known = {"red": "red(img)", "red(img)": "red(img)", "blue( img )": "blue(img)", "classes": "classes"}
    for name, found in known.items():
        question = called(asked, name)
        assert question is not None and question.name == found
    assert called(asked, "a") is None and called(asked, "re") is None
    same = questions(["has(img,1)", "has(img,2)"])
    assert called(same, "has") is None and called(same, "has(img, 2)") == same[1]
    assert short(["has(img,1)", "has(img,2)"]) == ("has(img,1)", "has(img,2)") and short(["a(x)", "b"]) == ("a", "b")


def test_the_level_of_an_empty_image() -> None:
    """The drift under `paper`; 0 under `anchored`, where what follows from nothing is an answer like any other."""
    text = ":- semantics({}). :- type(image, [img]). :- neural(dark(image)). :- classes([night(img), day(img)])." \
           " night(X) :- dark(X), dark(X). day(X) :- light(X). light(img)."
    for semantics in ("paper", "anchored"):
        program = nsfrc.compile(source=text.format(semantics))
        reasoner = program.reasoner(outputs="targets")
        (values,) = reasoner(program.valuation({})).tolist()
        found = empty_values(reasoner)
        assert found == (tuple(values) if semantics == "paper" else (0.0, 0.0))
        assert empty_values(program.reasoner()) == pytest.approx(found, abs=1e-6)
        assert values[1] > 0.9
        assert program.questions[0].answer(values, 0.0, found) == ("none" if semantics == "paper" else "day(img)")
