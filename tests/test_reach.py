"""What can be derived, how deep, and what is said about what cannot."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from nsfrc.compiler.passes.live import live
from nsfrc.compiler.reach import DEFAULT_STEPS, NEVER, chain_length, check_reach, enough_steps, knots, reach, silenced
from nsfrc.errors import CompileError, Diagnostics
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


def test_a_long_chain_is_followed_to_its_end() -> None:
    names = [f"n{i}" for i in range(20)]
    edges = " ".join(f"edge({a}, {b})." for a, b in pairwise(names))
    depth = depths(f"""
        :- target(end(obj1)).
        :- type(node, [{", ".join(names)}]).
        {edges}
        way(X) :- edge(n0, X), near(obj1, obj2).
        way(Y) :- way(X), edge(X, Y).
        end(O) :- way(n19), near(O, P).
    """)
    assert [depth[f"way({name})"] for name in names] == [NEVER, *range(1, 20)]
    assert depth["end(obj1)"] == 20


@pytest.mark.parametrize("seed", range(20))
def test_reach_agrees_with_crisp_chaining(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program = random_typed(seed)
    ground = live(grounded(program))
    names = ground.herbrand.names()
    everything = [n for n, neural in zip(names, ground.neural, strict=True) if neural]
    rows = crisp.rows(program)
    found = reach(ground)
    depth = found.depth
    monkeypatch.setattr("nsfrc.compiler.reach.SWEEPS", 1)  # what a long chain comes to
    again = reach(ground)
    assert (again.depth == depth).all() and (again.fires == found.fires).all()
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


CHAINS = {
    "to the right": "far(X, Y) :- near(X, Y). far(X, Y) :- near(X, Z), far(Z, Y).",
    "to the left": "far(X, Y) :- near(X, Y). far(X, Y) :- far(X, Z), near(Z, Y).",
    "in halves": "far(X, Y) :- near(X, Y). far(X, Y) :- far(X, Z), far(Z, Y).",
    "either way round": "far(X, Y) :- near(X, Y). far(X, Y) :- near(X, Z), far(Z, Y). far(X, Y) :- far(Y, X).",
    "by a start": "reached(O) :- color(O, red). reached(O) :- reached(P), near(P, O)."
                  " far(X, Y) :- reached(X), reached(Y).",
    "in turns": "far(X, Y) :- odd(X, Y). odd(X, Y) :- near(X, Y). odd(X, Y) :- even(X, Z), near(Z, Y)."
                " even(X, Y) :- odd(X, Z), near(Z, Y). even(O, P) :- color(O, red), color(P, red).",
}


def recursive(rules: str, more: str = "", objects: int = 6) -> Diagnostics:
    """What is said of a program whose target needs far(X, Y), with so many objects."""
    text = f"{VOCABULARY}{more} :- target(kp(img)). kp(X) :- in(O, X), far(O, _). {rules}"
    program, found = typed(text, object=objects), Diagnostics()
    check_reach(program, live(grounded(program)), found)
    return found


@pytest.mark.parametrize("name", CHAINS)
def test_enough_steps_for_recursion_are_enough(name: str) -> None:
    program = typed(f"{VOCABULARY}:- target(far(X, Y)). {CHAINS[name]}", object=6)
    rows, steps = crisp.rows(program), enough_steps(program)
    generator = np.random.default_rng(0)
    worlds = [[(i, i + 1) for i in range(1, 6)]]
    worlds += [list(pairwise(generator.permutation(6) + 1)) for _ in range(20)]
    for links in worlds:
        world = [f"near(obj{a},obj{b})" for a, b in links] + [f"color(obj{links[0][0]},red)"]
        assert crisp.derive(program, rows, world, steps) == crisp.derive(program, rows, world)


def test_four_steps_are_not() -> None:
    program = typed(f"{VOCABULARY}:- target(far(X, Y)). {CHAINS['to the right']}", object=6)
    world = [f"near(obj{i},obj{i + 1})" for i in range(1, 6)]
    assert "far(obj1,obj6)" not in crisp.derive(program, crisp.rows(program), world, DEFAULT_STEPS)
    assert "far(obj1,obj6)" in crisp.derive(program, crisp.rows(program), world, enough_steps(program))


@pytest.mark.parametrize(("name", "steps"), [("to the right", 7), ("by a start", 8), ("in turns", 14)])
def test_recursion_without_steps_is_warned_about(name: str, steps: int) -> None:
    (warning,) = recursive(CHAINS[name]).warnings()
    assert "depends on itself, and there is no :- steps(N): reasoning stops after 4 steps" in warning.message
    assert warning.span is not None and warning.hint is not None and f":- steps({steps})." in warning.hint
    assert silenced(warning, 8) and not silenced(warning, None)


def test_recursion_that_needs_no_warning() -> None:
    assert not recursive(CHAINS["to the right"], ":- steps(5).").found
    assert not recursive(CHAINS["to the right"], objects=3).found
    beside = "far(X, Y) :- near(X, Y). loop(X, Y) :- near(X, Y). loop(X, Y) :- near(X, Z), loop(Z, Y)."
    assert not recursive(beside).found


def test_knots_come_after_what_they_call() -> None:
    rules = ":- target(kp(img)). kp(X) :- in(O, X), far(O, _), a. a :- b. b :- a. b :- c. c :- color(_, red)."
    program = typed(f"{VOCABULARY}{rules} {CHAINS['in turns']}")
    found = knots(program)
    assert [sorted(name for name, _ in knot.keys) for knot in found if knot.recursive] in (
        [["even", "odd"], ["a", "b"]], [["a", "b"], ["even", "odd"]])
    done: set[tuple[str, int]] = set()
    for knot in found:
        assert knot.calls - set(knot.keys) <= done
        done |= set(knot.keys)
    assert found[-1].keys == (("kp", 1),) and len(done) == 7
