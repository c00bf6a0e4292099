"""Reasons: on worlds given by hand, crisp and soft, and against a search through all substitutions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.explain import Reason, as_text, explain, objects_of
from nsfrc.program import Program
from tests.examples import SHIPPED, write


@cache
def compiled(name: str) -> Program:
    return nsfrc.compile(name)


def crisp(program: Program, *atoms: str) -> np.ndarray:
    """V0 [G] in which these neural atoms are 1."""
    V0 = program.initial_valuation()
    for atom in atoms:
        V0[program.index(atom)] = 1
    return V0


def reasoned(program: Program, V0: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return program.reasoner("cpu", inputs="neural")(torch.from_numpy(V0)[None])[0].numpy()


def parts(reason: Reason) -> Iterator[Reason]:
    yield reason
    for part in reason.body:
        yield from parts(part)


def two_pairs() -> np.ndarray:
    """obj1, obj4 are blue circles; obj2 a red and obj3 a yellow square."""
    kinds = {"obj1": "blue circle", "obj2": "red square", "obj3": "yellow square", "obj4": "blue circle"}
    atoms = [f"in({o},img)" for o in kinds]
    for name, kind in kinds.items():
        color, shape = kind.split()
        atoms += [f"color({name},{color})", f"shape({name},{shape})"]
    return crisp(compiled("twopairs"), *atoms)


def test_a_target_that_holds() -> None:
    program = compiled("twopairs")
    reason = explain(program, reasoned(program, two_pairs()), "kp(img)")
    assert reason.atom == "kp(img)" and reason.clause == 0 and reason.value > 0.9
    assert [part.atom for part in reason.body] == [
        "in(obj1,img)", "in(obj4,img)", "in(obj2,img)", "in(obj3,img)",
        "same_shape_pair(obj1,obj4)", "same_color_pair(obj1,obj4)",
        "same_shape_pair(obj2,obj3)", "diff_color_pair(obj2,obj3)",
    ]
    last = reason.body[-1]
    assert program.clauses[last.clause or 0].startswith("diff_color_pair")
    assert [p.atom for p in last.body] == ["color(obj2,red)", "color(obj3,yellow)", "diff_color(red,yellow)"]
    assert all(p.clause is None and not p.body for p in last.body)
    assert objects_of(reason) == ["obj1", "obj4", "obj2", "obj3"]
    assert objects_of(last) == ["obj2", "obj3"]


def test_a_fact_is_its_own_reason() -> None:
    program = compiled("twopairs")
    reason = explain(program, program.initial_valuation(), "diff_color(red, blue)")
    assert reason == Reason("diff_color(red,blue)", 1.0)
    assert as_text(reason) == "diff_color(red,blue) 1.00"


def test_what_is_missing() -> None:
    program = compiled("closeby")
    V0 = crisp(program, "in(obj2,img)", "in(obj3,img)", "in(obj4,img)")
    V0[program.index("closeby(obj2,obj4)")] = 0.2
    V_T = reasoned(program, V0)
    reason = explain(program, V_T, "kp(img)")
    assert [part.atom for part in reason.body] == ["in(obj2,img)", "in(obj4,img)", "closeby(obj2,obj4)"]
    assert "missing closeby(obj2,obj4) 0.2" in as_text(reason) and "given in(obj2,img) " in as_text(reason)
    shown = explain(program, V_T, "kp(img)", V0)
    assert shown.body[2].value == pytest.approx(0.2) and shown.value == reason.value


def test_nothing_holds_at_all_and_the_nearest_substitution_is_named() -> None:
    program = compiled("red_triangle")
    empty = explain(program, program.initial_valuation(), "kp(img)")
    assert empty.value == 0 and empty.clause == 0 and len(empty.body) == 7
    V_T = crisp(program, "in(obj5,img)", "in(obj3,img)", "color(obj5,red)", "shape(obj5,triangle)",
                "diff_shape_pair(obj5,obj3)", "diff_color_pair(obj5,obj3)")
    reason = explain(program, V_T, "kp(img)")
    assert reason.value == 0 and objects_of(reason) == ["obj5", "obj3"]
    assert [part.atom for part in reason.body if part.value == 0] == ["closeby(obj5,obj3)"]


def best_by_search(program: Program, V: np.ndarray, head: int) -> float:
    """The greatest product over all substitutions of all clauses, one by one."""
    ground, best = program.ground, 0.0
    for pair in range(ground.pairs):
        if ground.pair_head[pair] == head:
            for row in ground.factors[ground.pair_start[pair] : ground.pair_start[pair + 1]]:
                best = max(best, float(np.prod([V[i] for i in row if i >= 0])))
    return best


@pytest.mark.parametrize("name", [name for name in SHIPPED if name != "clevr_hans7"])
def test_the_best_substitution_is_found_in_soft_worlds(name: str) -> None:
    program = compiled(name)
    rng = np.random.default_rng(0)
    V0 = program.initial_valuation()
    V0[program.ground.neural] = rng.uniform(0.7, 1.0, int(program.ground.neural.sum()))
    V_T = reasoned(program, V0).astype(np.float64)
    for target in program.targets:
        for part in parts(explain(program, V_T, target)):
            index = program.index(part.atom)
            assert part.value == V_T[index]
            if part.clause is None:
                assert program.ground.neural[index] or program.ground.initial[index] == 1
            else:
                product = np.prod([p.value for p in part.body])
                assert product == pytest.approx(best_by_search(program, V_T, index))
                assert program.clauses[part.clause].startswith(part.atom.split("(")[0] + "(")


def test_of_twins_the_first_is_named_whatever_the_last_digits_say() -> None:
    """Two pairs of objects that are alike differ by rounding alone, which depends on the other images of a batch."""
    program = compiled("closeby")
    V = crisp(program, *(f"in(obj{i},img)" for i in range(1, 5)), "closeby(obj1,obj2)", "closeby(obj3,obj4)")
    first = explain(program, V, "kp(img)")
    assert objects_of(first) == ["obj1", "obj2"]
    rng = np.random.default_rng(0)
    for _ in range(20):
        noisy = (V * (1 + rng.uniform(-3e-7, 3e-7, len(V)))).astype(np.float32)
        assert objects_of(explain(program, noisy, "kp(img)")) == ["obj1", "obj2"]
    V[program.index("closeby(obj1,obj2)")] = 0.999
    assert objects_of(explain(program, V, "kp(img)")) == ["obj3", "obj4"]


def test_no_deeper_than_the_steps_that_were_taken() -> None:
    program = compiled("twopairs")
    V_T = reasoned(program, two_pairs())
    deep = explain(program, V_T, "kp(img)")
    assert any(part.body for part in deep.body)
    once = explain(program, V_T, "kp(img)", steps=1)
    assert [part.atom for part in once.body] == [part.atom for part in deep.body]
    assert not any(part.body for part in once.body)
    assert explain(program, V_T, "kp(img)", steps=0) == Reason("kp(img)", deep.value)
    assert explain(program, V_T, "kp(img)", steps=program.steps) == deep


def test_recursion_does_not_go_round(tmp_path: Path) -> None:
    program = nsfrc.compile(write(tmp_path, """
        :- target(path(obj1, obj3)).
        :- steps(6).
        path(X, Y) :- path(X, Z), path(Z, Y).
        path(X, Y) :- near(X, Y).
    """))
    V_T = reasoned(program, crisp(program, "near(obj1,obj2)", "near(obj2,obj3)"))
    reason = explain(program, V_T, "path(obj1,obj3)")
    assert [part.atom for part in reason.body] == ["path(obj1,obj2)", "path(obj2,obj3)"]
    for part in reason.body:
        assert [p.atom for p in part.body] == [part.atom.replace("path", "near")]
    around = np.ones(program.ground.G)  # all that is derived is as good as anything else

    def check(part: Reason, above: tuple[str, ...]) -> None:
        assert part.atom not in above and len(above) <= 6
        for below in part.body:
            check(below, (*above, part.atom))

    check(explain(program, around, "path(obj1,obj3)"), ())


def test_an_atom_that_rests_on_itself_alone_has_no_reason(tmp_path: Path) -> None:
    program = nsfrc.compile(write(tmp_path, """
        :- target(p(obj1)).
        p(X) :- q(X).
        q(X) :- p(X).
        p(X) :- color(X, red).
    """))
    V = np.zeros(program.ground.G)
    V[[program.index("p(obj1)"), program.index("q(obj1)")]] = 1
    reason = explain(program, V, "p(obj1)")
    assert [part.atom for part in reason.body] == ["q(obj1)"]
    assert reason.body[0].body == ()


def test_clauses_without_a_body(tmp_path: Path) -> None:
    program = nsfrc.compile(write(tmp_path, ":- target(kp(img)). kp(X) :- in(O, X), warm. warm :- true."))
    reason = explain(program, np.ones(program.ground.G), "kp(img)")
    assert [part.atom for part in reason.body] == ["in(obj1,img)", "warm"]
    assert reason.body[1].body == ()


def test_text_is_indented_and_ends_at_a_depth() -> None:
    program = compiled("twopairs")
    reason = explain(program, reasoned(program, two_pairs()), "kp(img)")
    lines = as_text(reason).splitlines()
    assert len(lines) == 5 and lines[0].startswith("kp(img) 1.00 because in(obj1,img) 0.99, in(obj4,img) 0.99, ")
    assert lines[4].startswith("  diff_color_pair(obj2,obj3) 1.00 because color(obj2,red) ")
    assert as_text(reason, 1) == lines[0]
    assert as_text(reason, 0) == "kp(img) 1.00"


def test_what_cannot_be_explained() -> None:
    program = compiled("closeby")
    with pytest.raises(NsfrcError, match="no ground atom kp"):
        explain(program, program.initial_valuation(), "kp(image)")
    with pytest.raises(NsfrcError, match=r"shape \[1\]; an explanation needs the values of all 43 ground atoms"):
        explain(program, np.ones(1), "kp(img)")


def test_a_loaded_program_gives_the_same_reason(tmp_path: Path) -> None:
    program = compiled("twopairs")
    program.save(tmp_path / "rules.nsfrc")
    V_T = reasoned(program, two_pairs())
    assert explain(nsfrc.load(tmp_path / "rules.nsfrc"), V_T, "kp(img)") == explain(program, V_T, "kp(img)")


def test_tensors_with_gradients() -> None:
    program = compiled("twopairs")
    V0 = torch.from_numpy(two_pairs()).requires_grad_()
    V_T = program.reasoner("cpu", inputs="neural")(V0[None])[0]
    reason = explain(program, V_T, "kp(img)", V0)
    assert reason == explain(program, V_T.detach().numpy(), "kp(img)", V0.detach().numpy())
