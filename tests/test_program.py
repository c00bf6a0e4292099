"""Facts as a valuation: `Program.valuation`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import nsfrc
from nsfrc.program import Program


@pytest.fixture(scope="module")
def twopairs() -> Program:
    return nsfrc.compile("twopairs")


def test_a_row_for_every_world(twopairs: Program) -> None:
    V0 = twopairs.valuation({"color(obj1,red)": 0.9, "in( obj2 , img )": 1}, {}, {"color(obj1,red)": np.float32(0.25)})
    assert V0.dtype == torch.float32 and V0.shape == (3, len(twopairs.atoms))
    wanted = torch.from_numpy(twopairs.initial_valuation()).repeat(3, 1)
    wanted[[0, 2], twopairs.index("color(obj1,red)")] = torch.tensor([0.9, 0.25])
    wanted[0, twopairs.index("in(obj2,img)")] = 1
    assert torch.equal(V0, wanted)
    assert wanted[1, twopairs.index("diff_color(red,blue)")] == 1  # what the program says itself stays


def test_no_world_and_one(twopairs: Program) -> None:
    assert twopairs.valuation().shape == (0, len(twopairs.atoms))
    before = twopairs.initial_valuation()
    twopairs.valuation({"in(obj1,img)": 1})[0, 2:] = 0.5
    assert np.array_equal(twopairs.initial_valuation(), before)  # what it gives is the caller's own


@pytest.mark.parametrize(("facts", "message"), [
    ({"colour(obj1,red)": 1}, r"twopairs has no ground atom colour\(obj1,red\); did you mean color\(obj1,red\)\?"),
    ({5: 1}, "twopairs has no ground atom 5"),
    ({"kp(img)": 1}, r"kp\(img\) is not a neural atom; the program itself decides its value"),
    ({"diff_color(red,blue)": 0}, "is not a neural atom"),
    ({"true": 0}, "true is not a neural atom"),
    ({"in(obj1,img)": 1.01}, r"the value of in\(obj1,img\) is 1.01; it must be a number from 0 to 1"),
    ({"in(obj1,img)": -0.1}, "must be a number from 0 to 1"),
    ({"in(obj1,img)": float("nan")}, "must be a number from 0 to 1"),
    ({"in(obj1,img)": True}, "must be a number from 0 to 1"),
    ({"in(obj1,img)": "1"}, "must be a number from 0 to 1"),
    ({"in(obj1,img)": None}, "must be a number from 0 to 1"),
    ([{"in(obj1,img)": 1}], r"not a list; give several worlds as valuation\(\*worlds\)"),
])
def test_facts_that_are_refused(facts: Any, message: str, twopairs: Program) -> None:
    with pytest.raises(nsfrc.NsfrcError, match=message) as one:
        twopairs.valuation(facts)
    assert "world" not in str(one.value).partition("the facts of a world")[0]
    with pytest.raises(nsfrc.NsfrcError, match=f"world 2: .*{message}"):
        twopairs.valuation({}, facts, {})


def test_printed_it_says_what_is_asked_and_how_it_reasons(twopairs: Program) -> None:
    assert repr(twopairs) == "Program(twopairs: kp(img); paper, 4 steps)"
    text = """:- type(digit, 0..9). :- neural(seen(digit)). :- pred(next(digit)). :- target(next(_)).
        next(N) :- seen(M), succ(M, N)."""
    asked = ", ".join(f"next({n})" for n in range(7))
    assert repr(nsfrc.compile(source=text, name="count")) == f"Program(count: {asked} and 3 more; anchored, 1 level)"


@pytest.mark.parametrize(("semantics", "targets"), [
    ("anchored", ["same(red,red)", "same(red,blue)", "same(blue,red)", "same(blue,blue)"]),
    ("paper", ["same(red,blue)", "same(blue,red)"]),
])
def test_a_target_with_variables_stands_for_all_atoms_of_the_semantics(semantics: str, targets: list[str]) -> None:
    text = f""":- semantics({semantics}).
        :- type(color, [red, blue]). :- neural(seen(color)). :- target(same(_, _)).
        same(C, D) :- seen(C), seen(D)."""
    assert nsfrc.compile(source=text, name="same").targets == targets
