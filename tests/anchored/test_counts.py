r"""Counts against every subset of up to twelve objects, in values and gradients; negations that hold, to the bit."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Sequence
from itertools import product

import pytest
import torch

import nsfrc
from nsfrc.program import Program

ENGINES = ("cpu", "reference")
TESTS: dict[str, Callable[[int], bool]] = {
    "N >= 1": lambda n: n >= 1, "N >= 2": lambda n: n >= 2, "N > 7": lambda n: n > 7, "N =< 3": lambda n: n <= 3,
    "N =:= 0": lambda n: n == 0, "N =:= 4": lambda n: n == 4, "N =\\= 2": lambda n: n != 2, "5 < N": lambda n: n > 5,
    "between(2, 5, N)": lambda n: 2 <= n <= 5, "N mod 3 =:= 1": lambda n: n % 3 == 1,
    "N >= 2, N =\\= 4": lambda n: n >= 2 and n != 4, "N * N > 10": lambda n: n * n > 10,
}
OPERATORS = {"<": operator.lt, ">": operator.gt, "=<": operator.le, ">=": operator.ge, "=:=": operator.eq,
             "=\\=": operator.ne}


def counting(objects: int, rules: str) -> Program:
    return nsfrc.compile(source=f"""
        :- type(image, [img]). :- type(object, slots({objects})). :- type(number, 0..12).
        :- neural(red(object)). :- neural(blue(object)). {rules}""")


def outcomes(values: Sequence[float]) -> list[tuple[int, float]]:
    """Every subset: how many are in it, and how likely it is."""
    return [(sum(happens), math.prod(x if yes else 1 - x for x, yes in zip(values, happens, strict=True)))
            for happens in product((0, 1), repeat=len(values))]


def values_and_gradients(program: Program, V0: torch.Tensor, engine: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Of the targets [B, n], and of their sum, the i-th divided by i + 1, with respect to V0: [B, G]."""
    start = V0.to(torch.float64 if engine == "reference" else torch.float32).requires_grad_()
    found = program.reasoner(engine, outputs="targets")(start)
    (gradient,) = torch.autograd.grad((found / torch.arange(1, found.shape[1] + 1)).sum(), start)
    return found.detach().double(), gradient.double()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("objects", [1, 2, 5, 12])
def test_every_test_of_a_count(objects: int, engine: str) -> None:
    possible = {text: test for text, test in TESTS.items() if any(map(test, range(objects + 1)))}
    rules = ":- target(p{0}). p{0} :- aggregate_all(count, red(_), N), {1}.\n"
    program = counting(objects, "".join(rules.format(i, text) for i, text in enumerate(possible)))
    rng = random.Random(objects)
    red = [rng.random() if rng.random() < 0.8 else float(rng.random() < 0.5) for _ in range(objects)]
    V0 = program.valuation({f"red(obj{i + 1})": x for i, x in enumerate(red)}).repeat(5, 1)
    found, gradient = values_and_gradients(program, V0, engine)
    red = V0[0, [program.index(f"red(obj{i + 1})") for i in range(objects)]].double().tolist()
    every, with_last, without_last = (outcomes(values) for values in (red, [*red[:-1], 1.0], [*red[:-1], 0.0]))
    slope = 0.0
    for number, test in enumerate(possible.values()):
        assert found[:, number].tolist() == pytest.approx([sum(p for n, p in every if test(n))] * 5, abs=2e-6)
        change = sum(p for n, p in with_last if test(n)) - sum(p for n, p in without_last if test(n))
        slope += change / (number + 1)
    assert gradient[:, program.index(f"red(obj{objects})")].tolist() == pytest.approx([slope] * 5, abs=1e-5)


@pytest.mark.parametrize("engine", ENGINES)
def test_at_least_as_many_as_are_there_have_the_gradient_of_the_others(engine: str) -> None:
    """∂P(N >= k)/∂x is how likely it is that of the others exactly k − 1 hold."""
    program = counting(6, ":- target(p). p :- aggregate_all(count, red(_), N), N >= 3.")
    red = [0.1, 0.35, 0.5, 0.5, 0.8, 0.95]
    V0 = program.valuation({f"red(obj{i + 1})": x for i, x in enumerate(red)}).repeat(5, 1)
    _, gradient = values_and_gradients(program, V0, engine)
    for i in range(6):
        others = sum(p for n, p in outcomes([*red[:i], *red[i + 1:]]) if n == 2)
        assert float(gradient[0, program.index(f"red(obj{i + 1})")]) == pytest.approx(others, abs=1e-5)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("more", [0, 2, -1])
def test_two_counts_are_taken_as_independent(more: int, engine: str) -> None:
    rules = "".join(
        f":- target(p{i}). p{i} :- aggregate_all(count, red(_), N), aggregate_all(count, blue(_), M), "
        f"N {op} M + {more}.\n"
        for i, op in enumerate(OPERATORS))
    program, rng = counting(5, rules), random.Random(more)
    chosen = {f"{color}(obj{i})": rng.random() for color in ("red", "blue") for i in range(1, 6)}
    V0 = program.valuation(chosen).repeat(5, 1)
    red, blue = (outcomes([chosen[f"{color}(obj{i})"] for i in range(1, 6)]) for color in ("red", "blue"))
    found, _ = values_and_gradients(program, V0, engine)
    for number, holds in enumerate(OPERATORS.values()):
        expected = sum(p * q for (n, p), (m, q) in product(red, blue) if holds(n, m + more))
        assert found[:, number].tolist() == pytest.approx([expected] * 5, abs=2e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_number_as_an_argument(engine: str) -> None:
    rules = ":- pred(many(number)). many(N) :- aggregate_all(count, red(_), N)." + "".join(
        f" :- target(many({n}))." for n in range(13))
    program = counting(12, rules)
    red = [0.05 + 0.07 * i for i in range(12)]
    V0 = program.valuation({f"red(obj{i + 1})": x for i, x in enumerate(red)}).repeat(5, 1)
    found, _ = values_and_gradients(program, V0, engine)
    every = outcomes(red)
    expected = [sum(p for n, p in every if n == number) for number in range(13)]
    assert found[0].tolist() == pytest.approx(expected, abs=2e-6) and sum(expected) == pytest.approx(1)


@pytest.mark.parametrize("engine", ENGINES)
def test_twelve_negated_conjuncts_that_hold_are_exactly_true(engine: str) -> None:
    """Seven of them would be below one half if what is false were worth a little."""
    negations = ", ".join(f"\\+ (red(O{i}), blue(O{i}))" if i % 2 else f"\\+ blue(obj{i + 1})" for i in range(12))
    program = counting(12, f":- target(p). p :- red(obj1), {negations}.")
    V0 = program.valuation({f"red(obj{i})": 1.0 for i in range(1, 13)}).repeat(7, 1)
    for gamma in (0.01, 0.1, 1.0, 5.0):
        for batch in (7, 1):
            values = program.reasoner(engine, gamma=gamma, outputs="targets")(V0[:batch])
            assert torch.equal(values, torch.ones(batch, 1))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_empty_picture(engine: str) -> None:
    expected = {
        "none": (r"\+ red(_)", 1), "alone": (r"\+ (red(O), \+ blue(O))", 1), "some": ("red(_)", 0),
        "all": ("forall(red(O), blue(O))", 1), "not_all": (r"\+ forall(red(O), blue(O))", 0),
        "zero": ("aggregate_all(count, red(_), 0)", 1), "two": ("aggregate_all(count, red(_), N), N >= 2", 0),
        "few": ("aggregate_all(count, red(_), N), N < 2", 1),
        "even": ("aggregate_all(count, red(_), N), N mod 2 =:= 0", 1),
        "more": ("aggregate_all(count, red(_), N), aggregate_all(count, blue(_), M), N > M", 0),
        "as_many": ("aggregate_all(count, red(_), N), aggregate_all(count, blue(_), N)", 1),
        "bare": (r"aggregate_all(count, (red(O), \+ blue(O)), N), N =< 0", 1),
    }
    program = counting(4, "".join(f":- target({name}). {name} :- {body}.\n" for name, (body, _) in expected.items()))
    for gamma in (0.01, 1.0, 5.0):
        values = program.reasoner(engine, gamma=gamma, outputs="targets")(program.valuation({}).repeat(5, 1))
        assert values.tolist() == [[float(value) for _, value in expected.values()]] * 5
