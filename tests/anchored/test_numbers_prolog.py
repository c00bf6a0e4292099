"""Crisp worlds with numbers, and probabilities of 0 and 1: exactly 0 or 1, and what SWI-Prolog answers.

Numbers are whole tens and orders are asked five apart, so that no temperature is felt. NSFRC_PROLOG=300x30 takes more.
"""

from __future__ import annotations

import os
import random

import pytest
import torch

import nsfrc
from tests.swi import oracle

pytestmark = oracle.needs_swipl

PROGRAMS, WORLDS = (int(number) for number in os.environ.get("NSFRC_PROLOG", "12x10").split("x"))
OBJECTS = ("obj1", "obj2", "obj3")
VOCABULARY = """
:- use_module(library(nsfr)).
:- style_check(-singleton).
:- type(image, [img]).
:- type(object, slots(3)).
:- type(level, [10, 20, 30]).
:- neural(in(object, image)).
:- neural(near(object, object)).
:- neural(level(object, level)).
:- number(gap(object, object)).
:- number(light(image)).
:- pred(one(object)).
:- pred(two(object, object)).
:- pred(none).
"""


class Writer:
    """Random clauses over a fixed vocabulary."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.defined = ["one", "two", "none"]

    def program(self) -> str:
        first = ["one(A) :- area(A) > 15.", "two(A, B) :- gap(A, B) < 25.", "none :- light(img) > 5."]
        return VOCABULARY + "\n".join([*first, *(self.clause() for _ in range(self.rng.randint(3, 7)))])

    def clause(self) -> str:
        head = self.rng.choice(["one(A)", "two(A, B)", "none"])
        body = ", ".join(self.goal() for _ in range(self.rng.randint(1, 4)))
        bound = "in(A, I), in(B, I), level(A, N), I = img"
        if self.rng.random() < 0.2:
            return f"{self.rng.choice(['1', '0', '1.0'])}::{head} ; 0::none :- {bound}, {body}."
        return f"{self.rng.choice(['', '', '1::', '0::', '1.0::'])}{head} :- {bound}, {body}."

    def goal(self) -> str:
        kind = self.rng.randrange(6)
        fresh = f"V{self.rng.randrange(10**6)}"
        if kind == 0:
            return self.rng.choice(["near(A, B)", "near(B, C)", "one(B)", "two(B, A)", "none", "level(B, M), M > N"])
        if kind == 1:
            return f"{self.number()[:-1]}, {fresh}), {fresh} {self.order()} {self.expression()} + 5"
        if kind == 2:
            return f"{fresh} is {self.number()} + {self.expression()}, {fresh} {self.order()} {self.expression()} + 5"
        if kind == 3:
            return f"{self.number()} {self.rng.choice(['=:=', '=' + chr(92) + '='])} {self.expression()}"
        return f"{self.number()} - {self.expression()} {self.order()} {self.expression()} + 5"

    def order(self) -> str:
        return self.rng.choice(["<", ">", "=<", ">="])

    def number(self) -> str:
        return self.rng.choice(["area(A)", "area(B)", "x(A)", "gap(A, B)", "gap(B, C)", "light(I)", "area(obj2)"])

    def expression(self, depth: int = 2) -> str:
        kind = self.rng.randrange(8 if depth else 3)
        if kind < 2:
            return self.number()
        if kind == 2:
            return self.rng.choice(["10", "20", "N", "40"])
        left, right = self.expression(depth - 1), self.expression(depth - 1)
        return (f"({left} + {right})", f"({left} - {right})", f"2 * {left}", f"max({left}, {right})",
                f"abs({left} - min({left}, {right}))")[kind - 3]


def random_world(rng: random.Random) -> tuple[set[str], dict[str, int]]:
    """Neural atoms that hold, and numbers, of which some are missing."""
    pairs = [(a, b) for a in OBJECTS for b in OBJECTS if a != b]
    numbers = [f"area({a})" for a in OBJECTS] + [f"x({a})" for a in OBJECTS] + [f"gap({a},{b})" for a, b in pairs]
    atoms = [f"in({a},img)" for a in OBJECTS] + [f"near({a},{b})" for a, b in pairs]
    atoms += [f"level({a},{n})" for a in OBJECTS for n in (10, 20, 30)]
    sure = rng.choice((0.5, 0.8, 1.0))
    return ({atom for atom in atoms if rng.random() < sure},
            {number: 10 * rng.randint(0, 5) for number in [*numbers, "light(img)"] if rng.random() < 0.9})


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    text = Writer(rng).program()
    worlds = [random_world(rng) for _ in range(WORLDS)]
    program = nsfrc.compile(source=text)
    asked = [atom for atom in program.atoms if atom.startswith(("one(", "two(")) or atom == "none"]
    V0 = program.valuation(*({**dict.fromkeys(atoms, 1), **numbers} for atoms, numbers in worlds))
    values = program.reasoner("cpu")(V0)[:, [program.index(atom) for atom in asked]]
    facts = [[*atoms, *(f"{number[:-1]},{value})" for number, value in numbers.items())] for atoms, numbers in worlds]
    answers = torch.tensor(oracle.answers(text, facts, asked)).float()
    assert torch.equal(values, answers), text


def test_the_programs_are_worth_asking() -> None:
    """Both answers come, from comparisons of every kind."""
    texts = [Writer(random.Random(seed)).program() for seed in range(40)]
    for word in ("=:=", "=\\=", " is ", "gap(A, B, V", "max(", "abs(", "1::", "0::", "light(I)"):
        assert any(word in text for text in texts), word
    rng, answers = random.Random(0), set()
    for text in texts[:5]:
        program = nsfrc.compile(source=text)
        V0 = program.valuation(*({**dict.fromkeys(atoms, 1), **numbers}
                                 for atoms, numbers in (random_world(rng) for _ in range(10))))
        answers |= set(program.reasoner("reference")(V0)[:, program.index("one(obj1)")].tolist())
    assert answers == {0, 1}
