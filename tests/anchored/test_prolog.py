"""Crisp worlds under `anchored`: values are exactly 0 or 1, and what SWI-Prolog answers by way of the shim.

NSFRC_PROLOG=300x30 takes 300 random programs with 30 worlds each instead of what fits a test suite.
"""

from __future__ import annotations

import os
import random

import pytest
import torch

import nsfrc
from nsfrc.compiler import ir
from tests.anchored.support import GAMMAS, random_within
from tests.random_programs import random_value
from tests.random_text import program_text
from tests.swi import oracle
from tests.swi.worlds import random_world

pytestmark = oracle.needs_swipl

PROGRAMS, WORLDS = (int(number) for number in os.environ.get("NSFRC_PROLOG", "15x10").split("x"))
MOST_ASKED = 60


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    typed = random_value(rng, semantics=ir.ANCHORED)
    agree(program_text(typed, rng), typed, rng)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs_with_goals_within_goals(seed: int) -> None:
    surface, text = random_within(seed)
    agree(text, surface.base, random.Random(seed))


def agree(text: str, typed: ir.Program, rng: random.Random) -> None:
    """What holds in random worlds: every atom of a derived predicate, or as many of them as fit."""
    program = nsfrc.compile(source=text)
    worlds = [random_world(typed, rng) for _ in range(WORLDS)]
    own = {predicate.name for predicate in typed.predicates}
    heads = sorted(atom for atom in {program.atoms[i] for i in program.ground.pair_head} if atom.split("(")[0] in own)
    asked = rng.sample(heads, min(len(heads), MOST_ASKED))
    values = program.reasoner("cpu", gamma=rng.choice(GAMMAS))(
        program.valuation(*(dict.fromkeys(world, 1.0) for world in worlds))
    )
    answers = torch.tensor(oracle.answers(text, worlds, asked)).float()
    assert torch.equal(values[:, [program.index(atom) for atom in asked]], answers), text


VOCABULARY = """
:- use_module(library(nsfr)).
:- type(image, [img]).
:- type(object, slots(3)).
:- type(place, slots(2)).
:- type(color, [red, blue]).
:- type(digit, 0..3).
:- type(total, 0..6).
:- neural(in(object, image)).
:- neural(near(object, object)).
:- neural(at(object, place)).
:- neural(color(object, color)).
:- neural(digit(object, digit)).
:- neural(goes(color, color)).
"""
PAPER = ":- semantics(paper).\n"
TWO = "two :- color(A, C), color(B, D), in(A, I), in(B, I), likes(C, D). likes(red, red). likes(red, blue)."
LOOSE = "loose(X) :- near(X, _Y), color(_Z, red)."
SUM = ":- pred(sum(object, object, total)). sum(A, B, N) :- digit(A, X), digit(B, Y), N is X + Y."
BIG = "big(A) :- digit(A, X), Y > 3, Y is X * 2."
NEXT = "next(A, B) :- digit(A, X), digit(B, Y), succ(X, Y), between(1, 3, X)."
OWN = ":- pred(succ(color, color)). succ(red, blue). after(C, D) :- succ(C, D)."
LONELY = r"lonely(O) :- in(O, X), \+ (in(P, X), near(P, O))."
BARE = r"bare(X) :- in(_O, X), \+ color(_, red). :- pred(bare(image))."
UNNAMED = r"odd(O, P) :- near(O, P), \+ (in(Q, img), color(Q, red))."
APART = r"none :- in(_, X), \+ (in(P, X), color(P, red)), \+ (in(P, X), color(P, blue))."
ITSELF = r"far(O) :- in(O, img), \+ near(O, obj2)."
SAME = r"plain(O) :- in(O, img), \+ (color(O, C), D = C, goes(D, D))."
FORALL = r"calm(X) :- in(_, X), forall((in(O, X), color(O, red)), (near(O, P), color(P, blue)))."
TWICE = "two(X) :- in(_, X), aggregate_all(count, (in(O, X), (color(O, red) ; near(O, _P))), N), N =:= 2."
PROOFS = """one(X) :- in(_, X), aggregate_all(count, (in(O, X), lit(O)), 1).
    lit(O) :- color(O, red). lit(O) :- near(O, _)."""
MANY = ":- pred(many(image, digit)). many(X, N) :- findall(O, (in(O, X), color(O, red)), L), length(L, N)."
MORE = "more :- aggregate_all(count, color(_, red), N), aggregate_all(count, color(_, blue), M), N > M + 1."
EQUAL = "level :- aggregate_all(count, color(_, red), N), aggregate_all(count, color(_, blue), N)."
WITHIN = ("busy :- aggregate_all(count, (in(O, _X), aggregate_all(count, near(O, _), M), M >= 2, \\+ color(O, _)), N), "
          "N >= 1.")
SIZES = r"odd(O) :- digit(O, A), B is A + 1, \+ big(B). :- pred(big(digit)). big(2). big(3)."
LARGER = r"top(O) :- digit(O, A), B is A + 1, \+ (digit(P, C), C >= B, in(P, img))."
EVEN = r":- pred(even(digit)). even(0). even(N) :- M is N - 1, \+ even(M)."
AFTER = r":- pred(even(digit)). even(0). even(N) :- succ(M, N), \+ even(M)."
COUNTED = r"full :- aggregate_all(count, in(_, img), N), \+ wanted(N). :- pred(wanted(digit)). wanted(0). wanted(2)."
BOTH_RED = "in(obj1,img) color(obj1,red) in(obj2,img) color(obj2,red)"

CASES = [
    ("attributes may be equal", TWO, BOTH_RED, "two", True),
    ("attributes differ under paper", PAPER + TWO, BOTH_RED, "two", False),
    ("objects differ", TWO, "in(obj1,img) color(obj1,red)", "two", False),
    ("objects of the body and of the head differ", LOOSE, "near(obj1,obj2) color(obj1,red)", "loose(obj1)", False),
    ("those of the body may be one of the head under paper", PAPER + LOOSE, "near(obj1,obj2) color(obj1,red)",
     "loose(obj1)", True),
    ("a third object", LOOSE, "near(obj1,obj2) color(obj3,red)", "loose(obj1)", True),
    ("no atom repeats an object", "p(X, Y) :- near(X, Y).", "near(obj1,obj1)", "p(obj1,obj1)", False),
    ("an atom may repeat an attribute", "q(C) :- goes(C, C).", "goes(red,red)", "q(red)", True),
    ("a head may repeat an attribute", "q(C, C) :- color(_O, C).", "color(obj1,red)", "q(red,red)", True),
    ("and then derives no other", "q(C, C) :- color(_O, C).", "color(obj1,red) color(obj2,blue)", "q(red,blue)", False),
    ("all types with slots are objects", "r :- at(A, P), at(B, Q), near(A, B), color(A, red).",
     "at(obj1,place1) at(obj2,place1) near(obj1,obj2) color(obj1,red)", "r", False),
    ("objects of two types", "r :- at(A, P), at(B, Q), near(A, B), color(A, red).",
     "at(obj1,place1) at(obj2,place2) near(obj1,obj2) color(obj1,red)", "r", True),
    ("sums", SUM, "digit(obj1,2) digit(obj2,2)", "sum(obj1,obj2,4)", True),
    ("other sums", SUM, "digit(obj1,2) digit(obj2,2)", "sum(obj1,obj2,3)", False),
    ("numbers are computed before they are tested", BIG, "digit(obj1,2)", "big(obj1)", True),
    ("and not only compared", BIG, "digit(obj1,1)", "big(obj1)", False),
    ("succ and between", NEXT, "digit(obj1,1) digit(obj2,2)", "next(obj1,obj2)", True),
    ("outside the range", NEXT, "digit(obj1,0) digit(obj2,1)", "next(obj1,obj2)", False),
    ("another object is near", LONELY, "in(obj1,img) in(obj2,img) near(obj2,obj1)", "lonely(obj1)", False),
    ("no object is near itself", LONELY, "in(obj1,img) in(obj2,img) near(obj2,obj1)", "lonely(obj2)", True),
    ("none at all", BARE, "in(obj1,img) color(obj1,blue)", "bare(img)", True),
    ("one is enough", BARE, "in(obj1,img) color(obj2,red)", "bare(img)", False),
    ("variables that the goal does not mention have no say", UNNAMED,
     "near(obj1,obj2) in(obj1,img) color(obj1,red)", "odd(obj1,obj2)", False),
    ("two negations have variables of their own", APART, "in(obj1,img) in(obj2,img) color(obj3,red)", "none", True),
    ("so that either is about any object", APART, "in(obj1,img) in(obj2,img) color(obj2,blue)", "none", False),
    ("nothing is near itself, whoever is named", ITSELF, "in(obj2,img) in(obj1,img)", "far(obj2)", True),
    ("another may be near it", ITSELF, "in(obj1,img) near(obj1,obj2)", "far(obj1)", False),
    ("an equality within", SAME, "in(obj1,img) color(obj1,red) goes(red,red)", "plain(obj1)", False),
    ("that does not hold", SAME, "in(obj1,img) color(obj1,red) goes(red,blue)", "plain(obj1)", True),
    ("all of them", FORALL, "in(obj1,img) color(obj1,red) near(obj1,obj2) color(obj2,blue)", "calm(img)", True),
    ("all of none", FORALL, "in(obj1,img)", "calm(img)", True),
    ("not all of them", FORALL, "in(obj1,img) color(obj1,red) near(obj1,obj2)", "calm(img)", False),
    ("a variable that one way leaves open stands for every object", TWICE, "in(obj1,img) color(obj1,red)", "two(img)",
     True),
    ("solutions and not proofs are counted", PROOFS, "in(obj1,img) color(obj1,red) near(obj1,obj2) near(obj1,obj3)",
     "one(img)", True),
    ("two solutions", PROOFS, "in(obj1,img) color(obj1,red) in(obj2,img) near(obj2,obj3)", "one(img)", False),
    ("a number as an argument", MANY, BOTH_RED, "many(img,2)", True),
    ("another number", MANY, BOTH_RED, "many(img,1)", False),
    ("none are 0", MANY, "in(obj1,img)", "many(img,0)", True),
    ("more than that", MORE, "color(obj1,red) color(obj2,red) color(obj3,blue)", "more", False),
    ("enough", MORE, "color(obj1,red) color(obj2,red)", "more", True),
    ("one number for two counts", EQUAL, "color(obj1,red) color(obj2,blue)", "level", True),
    ("two numbers", EQUAL, "color(obj1,red) color(obj2,blue) color(obj3,blue)", "level", False),
    ("a count within a count", WITHIN, "in(obj1,img) near(obj1,obj2) near(obj1,obj3)", "busy", True),
    ("with a negation beside it", WITHIN, "in(obj1,img) near(obj1,obj2) near(obj1,obj3) color(obj1,red)", "busy",
     False),
    ("what is computed and negated", SIZES, "digit(obj1,1)", "odd(obj1)", False),
    ("what is computed and not there", SIZES, "digit(obj1,0)", "odd(obj1)", True),
    ("what is computed and compared within", LARGER, "digit(obj1,1) digit(obj2,2) in(obj2,img)", "top(obj1)", False),
    ("the largest", LARGER, "digit(obj1,1) digit(obj2,2) in(obj1,img)", "top(obj2)", True),
    ("negation along numbers", EVEN, "", "even(2)", True),
    ("odd numbers", EVEN, "", "even(3)", False),
    ("a number that only tests and negations mention", AFTER, "", "even(2)", True),
    ("and that is odd", AFTER, "", "even(3)", False),
    ("a count that is negated", COUNTED, "in(obj1,img)", "full", True),
    ("a count that is wanted", COUNTED, "in(obj1,img) in(obj3,img)", "full", False),
    ("a predicate of the program's own", OWN, "color(obj1,red)", "after(red,blue)", True),
]


@pytest.mark.parametrize(("clauses", "world", "target", "expected"), [case[1:] for case in CASES],
                         ids=[case[0] for case in CASES])
def test_rule(clauses: str, world: str, target: str, expected: bool) -> None:
    text = VOCABULARY + ":- style_check(-singleton).\n" + clauses
    assert oracle.answers(text, [world.split()], [target]) == [[expected]]
    if PAPER in clauses or target == "p(obj1,obj1)":  # which is no atom here
        return
    program = nsfrc.compile(source=text)
    values = program.reasoner("cpu")(program.valuation(dict.fromkeys(world.split(), 1.0)))
    assert values[0, program.index(target)] == float(expected)


@pytest.mark.parametrize("height", range(1, 9))
def test_towers_of_negations(height: int) -> None:
    """Over a neural atom, a derived one, and one with a variable of its own at every level."""
    plain = "\\+ " * height + "color(O, red)"
    nested = "in(O, img)"
    for level in range(height):
        nested = f"\\+ (near(O{level}, O), {nested.replace('O', 'P')})" if level % 2 else f"\\+ ({nested})"
    text = f"""{VOCABULARY} :- style_check(-singleton).
        lit(O) :- color(O, red), in(O, img).
        plain(O) :- in(O, img), {plain}.
        derived(O) :- in(O, img), {plain.replace("color(O, red)", "lit(O)")}.
        nested(O) :- in(O, img), {nested}."""
    program, rng = nsfrc.compile(source=text), random.Random(height)
    worlds = [random_world(program.source, rng) for _ in range(10)]
    asked = [f"{name}(obj{i})" for name in ("plain", "derived", "nested") for i in (1, 2, 3)]
    values = program.reasoner("cpu")(program.valuation(*(dict.fromkeys(world, 1.0) for world in worlds)))
    expected = torch.tensor(oracle.answers(text, worlds, asked)).float()
    assert torch.equal(values[:, [program.index(atom) for atom in asked]], expected)
    for world, row in zip(worlds, expected.tolist(), strict=True):
        assert row[0] == ("in(obj1,img)" in world and ("color(obj1,red)" in world) == (height % 2 == 0))
