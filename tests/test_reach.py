"""What can be derived, how deep, and what is said about what cannot."""

from __future__ import annotations

import numpy as np
import pytest

from nsfrc.errors import CompileError, Diagnostics
from nsfrc.passes.live import live
from nsfrc.reach import NEVER, chain_length, check_reach, reach
from tests.examples import SHIPPED, VOCABULARY, grounded, random_typed, shipped, small, typed
from tests.swi import crisp


def messages(text: str, **slots: int) -> list[tuple[str, str | None]]:
    program = typed(VOCABULARY + text, **slots)
    with pytest.raises(CompileError) as caught:
        check_reach(program, live(grounded(program)), Diagnostics())
    return [(d.message, d.hint) for d in caught.value.diagnostics]


def depths(text: str) -> dict[str, int]:
    program = live(grounded(typed(VOCABULARY + text)))
    found = reach(program).depth
    return {name: int(d) for name, d in zip(program.herbrand.names(), found, strict=True)}


def test_depth_counts_steps() -> None:
    depth = depths(
        ":- target(c(img)). a(X) :- in(O, X). b(X) :- a(X), in(O, X). c(X) :- b(X). c(X) :- a(X), b(X). like(red)."
    )
    assert [depth[f"{p}(img)"] for p in "abc"] == [1, 2, 3]
    assert depth["true"] == depth["in(obj1,img)"] == depth["like(red)"] == 0
    assert depth["false"] == NEVER


def test_depth_through_recursion() -> None:
    depth = depths("""
        :- target(reach(obj3)).
        :- type(node, [a, b, c, d]).
        edge(a, b). edge(b, c). edge(c, d).
        from_a(X) :- edge(a, X), near(obj1, obj2).
        from_a(Y) :- from_a(X), edge(X, Y).
        reach(O) :- from_a(d), near(O, P).
    """)
    assert [depth[f"from_a({n})"] for n in "abcd"] == [NEVER, 1, 2, 3]
    assert depth["reach(obj1)"] == 4


@pytest.mark.parametrize("seed", range(20))
def test_reach_agrees_with_crisp_chaining(seed: int) -> None:
    program = random_typed(seed)
    ground = live(grounded(program))
    names = ground.herbrand.names()
    everything = [n for n, neural in zip(names, ground.neural, strict=True) if neural]
    rows = crisp.rows(program)
    depth = reach(ground).depth
    for steps in range(int(depth.max()) + 1):
        known = crisp.derive(program, rows, everything, steps)
        assert {names[i] for i in np.flatnonzero((depth >= 0) & (depth <= steps))} - {"true"} == known


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_programs_fire(name: str) -> None:
    done = shipped(name)
    assert reach(done.ground).fires.all()
    assert done.depth == chain_length(done.program)
    assert done.steps >= done.depth


def test_chain_length() -> None:
    assert chain_length(shipped("twopairs").program) == 2
    assert chain_length(shipped("closeby").program) == 1
    assert chain_length(small("recursion")) is None
    shared = ":- target(d). d :- b, c. c :- b. b :- a. a :- color(O, red)."
    assert chain_length(typed(VOCABULARY + shared)) == 4
    loop_beside = ":- target(d). d :- color(O, red). e :- f. f :- e. f :- d."
    assert chain_length(typed(VOCABULARY + loop_beside)) == 1
    loop_below = ":- target(d). d :- e. e :- f. f :- e. f :- color(O, red)."
    assert chain_length(typed(VOCABULARY + loop_below)) is None


def test_chain_longer_than_python_recurses() -> None:
    rules = "".join(f"p{i} :- p{i + 1}.\n" for i in range(3000))
    assert chain_length(typed(f"{VOCABULARY}:- target(p0).\n{rules}p3000 :- color(O, red).")) == 3001


def test_more_variables_than_constants() -> None:
    text = ":- target(kp(img)). kp(X) :- in(A, X), in(B, X), in(C, X)."
    assert messages(text, object=2) == [
        ("no clause derives the target kp(img)", None),
        ("this clause can never fire", "A, B, C must be different constants of object, which has only 2"),
    ]


def test_absent_facts() -> None:
    found = messages(":- target(kp(img)). likes(red, 1). kp(X) :- in(O, X), likes(blue, N), size(O, N).")
    assert ("this clause can never fire",
            "likes(blue,N) is never true here: there is no such fact, and no clause derives it") in found
    assert ("no clause derives the target kp(img)", None) in found


def test_filters_that_exclude_everything() -> None:
    found = messages(":- target(kp(img)). kp(X) :- in(O, X). bad(X) :- in(O, X), size(O, N), N > 2, N < 2.")
    assert found == [("this clause can never fire",
                      "its conditions exclude every substitution")]


def test_a_loop_without_a_beginning() -> None:
    found = messages(":- pred(a(image)). :- target(a(img)). a(X) :- b(X). b(X) :- a(X).")
    assert [message for message, _ in found].count("this clause can never fire") == 2
    assert ("no clause derives the target a(img)", None) in found


def test_a_head_without_atoms() -> None:
    text = ":- pred(two(image, image)). :- target(kp(img)). kp(X) :- in(O, X). two(X, Y) :- in(O, X), in(P, Y)."
    found = messages(text)
    assert found == [("this clause can never fire", "no ground atom unifies with its head")]


def test_too_few_steps_are_warned_about() -> None:
    text = ":- steps(1). :- target(c(img)). a(X) :- in(O, X). c(X) :- a(X)."
    program, found = typed(VOCABULARY + text), Diagnostics()
    assert check_reach(program, live(grounded(program)), found) == 2
    (warning,) = found.warnings()
    assert warning.message == "1 step is too few: deriving c(img) takes 2"
    assert warning.hint == "write :- steps(2). or leave it out"


def test_enough_steps_are_not() -> None:
    text = ":- steps(2). :- target(c(img)). a(X) :- in(O, X). c(X) :- a(X)."
    program, found = typed(VOCABULARY + text), Diagnostics()
    check_reach(program, live(grounded(program)), found)
    assert not found.found
