"""Clauses as sentences."""

from __future__ import annotations

import pytest

from nsfrc.compiler.ir import Program
from nsfrc.describe import Sentence, sentence
from nsfrc.describe.phrases import listed, number
from tests.amount import sample
from tests.examples import SHIPPED, SMALL, VOCABULARY, random_typed, shipped, small, typed


def sentences(program: Program) -> list[Sentence]:
    return [sentence(clause, program) for clause in program.clauses]


def said(text: str) -> Sentence:
    """The sentence of the first clause of a text with the usual vocabulary and a neural `online`."""
    return sentences(typed(VOCABULARY + ":- neural(online(object, object, object)).\n" + text))[0]


@pytest.mark.parametrize("name, index, words", [
    ("twopairs", 1, "For any two different objects X and Y, same_shape_pair(X,Y) holds if there is a shape Z such "
                    "that X and Y have shape Z."),
    ("twopairs", 3, "For any two different objects X and Y, diff_color_pair(X,Y) holds if there are two different "
                    "colors Z and W such that X has color Z; Y has color W; and diff_color(Z,W) is among the facts."),
    ("closeby", 0, "For any image X, kp(X) holds if there are two different objects O1 and O2 such that O1 and O2 "
                   "are in X; and O1 is close by O2."),
    ("nine_circles", 0, "For any image X, kp(X) holds if has_red_triple, has_yellow_triple and has_blue_triple "
                        "hold for X."),
    ("online_pair", 0, "For any image X, kp(X) holds if there are five different objects O1, O2, O3, O4 and O5 such "
                       "that O1, O2, O3, O4 and O5 are in X; O1, O2, O3, O4 and O5 lie on one line; and "
                       "same_shape_pair and same_color_pair hold for O1 and O2."),
    ("clevr_hans7", 2, "For any image X, kp3(X) holds if there are three different objects O1, O2 and O3 such that "
                       "O1, O2 and O3 are in X; O1 has color cyan and is in front of O2 and in front of O3; and O2 and "
                       "O3 have color red."),
    ("clevr_hans7", 8, "For any image X, has_3_spheres_left(X) holds if there are three different objects O1, O2 "
                       "and O3 such that O1, O2 and O3 are in X and on the left side and have shape sphere."),
])
def test_shipped_clauses(name: str, index: int, words: str) -> None:
    assert sentences(shipped(name).program)[index] == Sentence(words)


def test_constants_and_names_without_words() -> None:
    assert said("kp(img) :- near(obj1, O), in(obj1, img), in(O, img).").words == (
        "kp(img) holds if there is an object O such that near holds for obj1 and O; and obj1 and O are in img.")
    assert sentences(small("no arguments"))[0].words == (
        "alarm holds if there are two different objects X and Y such that warm holds; and near holds for X and Y.")


def test_a_declared_predicate_is_not_taken_for_a_neural_one() -> None:
    text = ":- pred(closeby(object, object)). closeby(O, P) :- near(O, P), in(O, _). kp(X) :- in(O, X), closeby(O, _P)."
    assert "closeby holds for O and _P" in sentences(typed(VOCABULARY + text))[1].words


def test_lines_are_not_joined() -> None:
    words = said("kp(X) :- in(O, X), in(P, X), online(O, P, Q), online(P, Q, R), in(Q, X), in(R, X).").words
    assert "O, P and Q lie on one line; and P, Q and R lie on one line." in words


def test_tests_on_constants() -> None:
    words = sentences(small("filters"))
    assert words[0].words.endswith("P has size M; N + 1 is less than M; and P is not the same as obj1.")
    assert words[1].words.endswith("O has size N; N mod 2 equals 1; and N is at most 2.")


@pytest.mark.parametrize("text, notes", [
    ("first(X) :- near(X, Y), near(Y, Z).", ("Z may be the same as X, which the head binds.",)),
    ("first(X) :- near(X, Y), near(Y, Z), X \\= Z.", ()),
    ("edge(X, Y) :- near(X, Y), in(Z, img).", ("Z may be the same as X or Y, which the head binds.",)),
    ("kp(X) :- in(O, X), in(O, X), color(O, red).", ("in(O,X) is written two times and counts each time.",)),
    ("kp(X) :- in(O, X), near(O, P), in(P, X).", ()),
])
def test_notes(text: str, notes: tuple[str, ...]) -> None:
    assert said(text).notes == notes


def test_types_that_are_no_plain_words() -> None:
    text = (":- type('big box', [a, b]). :- type(glass, [c, d]). :- type(city, [e, f]). :- neural(r('big box')). "
            ":- neural(p('big box', 'big box')). :- neural(q(glass, glass, city, city)). ")
    assert "two different constants of 'big box' X and Y such" in said(f"{text} k :- p(X, Y).").words
    assert "two different glasses A and B and two different cities C and D" in said(f"{text} k :- q(A, B, C, D).").words
    assert "there is a constant of 'big box' X such" in said(f"{text} k :- r(X).").words


def test_lists_and_numbers() -> None:
    assert [listed(["a", "b", "c"][:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert listed(["a", "b"], "or") == "a or b"
    assert [number(n) for n in (1, 12, 13, 2000)] == ["one", "twelve", "13", "2,000"]


@pytest.mark.parametrize("program", [*SHIPPED, *SMALL, *range(sample(15, 40))], ids=str)
def test_every_argument_is_in_the_words(program: str | int) -> None:
    checked = random_typed(program) if isinstance(program, int) else (
        shipped(program).program if program in SHIPPED else small(program))
    for clause, told in zip(checked.clauses, sentences(checked), strict=True):
        for atom in (clause.head, *clause.body):
            assert all(str(argument) in told.words for argument in atom.args)
