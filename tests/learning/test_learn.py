"""Rules that are known are found from worlds that follow them, and nothing is found where there is no rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.learning.covering import Cover
from nsfrc.learning.extended import number_relation
from nsfrc.learning.kernels import NEGATIVE, POSITIVE
from nsfrc.learning.relations import priced
from nsfrc.learning.results import NothingLearnt, finish
from nsfrc.learning.scoring import Scoring
from nsfrc.learning.search import Limits
from nsfrc.learning.tables import Tables
from tests.learning.support import PROGRAM, Objects, balanced, worlds

_learn = partial(nsfrc.learn, beam=8)  # quicker than the default, and enough here


def _accuracy(learnt: nsfrc.Learnt, rule: Callable[[Objects], bool]) -> float:
    fresh = worlds(99, 300)
    values = learnt.program.reasoner()(learnt.program.valuation(*[one.world() for one in fresh]))
    said = learnt.program.predict(values)["kp(img)"] >= 0.5
    return float(np.mean([bool(answer) == rule(one) for answer, one in zip(said, fresh, strict=True)]))


def _chained(one: Objects) -> bool:
    reached = one.arrows.copy()
    for _ in range(4):
        reached |= (reached.astype(int) @ one.arrows.astype(int)) > 0
    return any(reached[i, j] and i != j and one.colors[i] == 0 and one.colors[j] == 2
               for i in range(one.count) for j in range(one.count))


RULES: dict[str, tuple[Callable[[Objects], bool], str]] = {
    "conjunction": (lambda one: one.has("red", "triangle") > 0, "color(A, red), shape(A, triangle)"),
    "negation": (lambda one: one.has("red") > 0 and not one.has("blue"), "\\+ (in(P, X), color(P, blue))"),
    "counts": (lambda one: one.has("red") > one.has("blue"), "N > M"),
    "two clauses": (lambda one: one.has("red", "triangle") > 0 or one.has("blue", "square") > 0, "shape(A, square)"),
    "recursion": (_chained, "arrow_chain(A, B) :- arrow(A, C), arrow_chain(C, B)."),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_found(name: str) -> None:
    rule, part = RULES[name]
    examples, labels = balanced(1, 140, rule)
    learnt = _learn(None, examples, labels, source=PROGRAM)
    assert part in learnt.text
    assert _accuracy(learnt, rule) == 1.0
    assert learnt.scores["kp(img) training"] == 1.0 and learnt.complete
    assert not [one for one in nsfrc.check(learnt.text) if one.severity == "error"]


def test_a_threshold_is_found_between_the_numbers_that_it_parts() -> None:
    examples, labels = balanced(2, 200, lambda one: any((one.colors == 0) & (one.areas > 0.5)))
    learnt = _learn(None, examples, labels, source=PROGRAM)
    (clause,) = learnt.clauses
    cut = float(clause.text.partition("area(A) > ")[2].split(",")[0].rstrip("."))
    assert "color(A, red)" in clause.text and abs(cut - 0.5) < 0.03 and (clause.true, clause.false) == (100, 0)


def test_alternatives_are_cut_as_well_as_what_was_chosen() -> None:
    """Area and width part these labels alike, though not where width was cut before the search."""
    area = np.linspace(0.01, 0.99, 60)[:, None]
    numbers = {"area": area, "width": area**0.5}
    relations = priced([number_relation("area", ">", 0.37, area > 0.37),
                        number_relation("width", ">", 0.625, area**0.5 > 0.625)])
    label = np.where(area[:, 0] > 0.37, POSITIVE, NEGATIVE).astype(np.int8)
    cover = Cover(Tables(relations, np.ones((60, 1), dtype=bool)), label, Limits(variables=1), numbers=numbers)
    theory = cover.run()
    (other,) = theory.alternatives[0]
    assert other.tp == int((label == POSITIVE).sum()) and other.fp == 0
    cut = cover.tables.relations[other.literals[0][0]].cut
    assert cut is not None and cut[0] == "width" and cut[2] ** 2 == pytest.approx(0.37, abs=0.02)


def test_wrong_labels_do_not_hide_a_rule() -> None:
    rule = RULES["conjunction"][0]
    examples, labels = balanced(4, 200, rule)
    for i in range(0, 200, 10):
        labels[i] = not labels[i]
    for noise in (None, 0.1):
        learnt = _learn(None, examples, labels, source=PROGRAM, noise=noise)
        assert [one.text for one in learnt.clauses] == ["kp(X) :- in(A, X), color(A, red), shape(A, triangle)."]
        assert (learnt.clauses[0].true, learnt.clauses[0].false) == (90, 10) or learnt.clauses[0].true < 100


@pytest.mark.parametrize("noise", [None, 0.0, 0.1])
def test_labels_that_count_more_save_more(noise: float | None) -> None:
    plain, heavy = (Scoring(4, 5, noise=noise, weight=weight) for weight in (1.0, 4.0))
    for tp, fp in ((4, 0), (3, 1), (1, 4)):
        assert float(heavy.gain(tp, fp)) == pytest.approx(4 * float(plain.gain(tp, fp)))
        assert float(heavy.most(tp)) == pytest.approx(4 * float(plain.most(tp)))


def test_random_labels_have_no_rule() -> None:
    examples = [one.world() for one in worlds(5, 80)]
    labels = np.random.default_rng(6).permutation([True, False] * 40).tolist()
    with pytest.raises(NothingLearnt, match=r"no rule for kp\(img\) explains its 80 labels better than chance"):
        nsfrc.learn(None, examples, labels, source=PROGRAM.replace("vars(object, 2)", "vars(object, 1)"), beam=5)


def test_what_cannot_be_learnt_from_is_said() -> None:
    examples = [one.world() for one in worlds(7, 12)]
    for labels, words in (
        ([True] * 12, "all of the 12 labels of kp.img. are true"),
        ([None] * 12, "no example has a label"),
        ([True] * 11, "11 labels for 12 examples"),
        (["maybe"] * 12, "a label is True, False or None"),
    ):
        with pytest.raises(NsfrcError, match=words):
            _learn(None, examples, labels, source=PROGRAM)
    with pytest.raises(NsfrcError, match="no example has any object"):
        _learn(None, [{}] * 12, [True, False] * 6, source=PROGRAM)
    with pytest.raises(NsfrcError, match="does not say what is to be learnt"):
        _learn(None, examples, [True, False] * 6, source=PROGRAM.replace(":- learn(kp(image)).\n:- vars", "% ")
                    + "kp(X) :- in(_, X).")
    with pytest.raises(NsfrcError, match="noise must be"):
        _learn(None, examples, [True, False] * 6, source=PROGRAM, noise=0.7)


OWN = """:- type(image, [scene]).
:- type(vehicle, slots(3)).
:- type(kind, [car, bike]).
:- neural(in(vehicle, image)).
:- neural(kind(vehicle, kind)).
:- learn(danger(image)).
"""


def test_a_world_of_ones_own_and_what_it_must_declare() -> None:
    kinds = [(i % 2, i // 2 % 2, i // 4 % 2) for i in range(40)]
    examples = [{f"{atom}(vehicle{n},{what})": 1.0 for n, kind in enumerate(some, 1)
                 for atom, what in (("in", "scene"), ("kind", ("car", "bike")[kind]))} for some in kinds]
    labels = [sum(some) > 1 for some in kinds]
    learnt = _learn(None, examples, labels, source=OWN)
    assert learnt.clauses[0].text == "danger(X) :- in(A, X), in(B, X), kind(A, bike), kind(B, bike)."
    scenes = OWN.replace("type(image", "type(scene").replace(", image)", ", scene)").replace("(image)", "(scene)")
    with pytest.raises(NsfrcError, match=r"danger\(scene\) is about scene.*write :- type\(image, \[scene\]\)"):
        _learn(None, examples, labels, source=scenes)
    listed = OWN.replace("slots(3)", "[vehicle1, vehicle2, vehicle3]")
    learnt = _learn(None, examples, [bool(some[0]) for some in kinds], source=listed)
    assert "no type is one of objects" in learnt.remarks[0] and "kind(vehicle1, bike)" in learnt.text


def test_rules_that_do_no_better_than_chance_on_labels_held_out_are_doubted() -> None:
    examples, labels = balanced(21, 60, lambda one: one.has("red") > 0)
    learner = _learn(None, examples, labels, source=PROGRAM).learner
    (found,) = learner.run()
    for right, doubted in ((found.right, False), (0.5, True), (0.4, True)):
        remarks = finish(learner, [replace(found, right=right, chance=0.5)]).remarks
        assert any("before you rely on them" in remark for remark in remarks) == doubted


def test_doubtful_examples_are_remarked_on() -> None:
    examples, labels = balanced(8, 60, lambda one: one.has("red") > 0)
    examples += [examples[0], {}]
    labels += [not labels[0], False]
    learnt = _learn(None, examples, labels, source=PROGRAM)
    said = " ".join(learnt.remarks)
    assert "2 examples look the same as another with the other label" in said and "example 62 is without" in said
    few, their = balanced(8, 8, lambda one: one.has("red") > 0)
    try:
        learnt = _learn(None, few, their, source=PROGRAM)
        assert "4 true and 4 false labels only" in " ".join(learnt.remarks)
    except NothingLearnt:
        pass


def test_confounded_labels_have_alternatives_and_what_tells_them_apart() -> None:
    """All red things are triangles: is it the colour or the shape?"""
    rng = np.random.default_rng(9)
    examples, labels = [], []
    while len(examples) < 80:
        one = Objects(rng)
        red, triangle = one.colors == 0, one.shapes == 2
        if (red == triangle).all() and any(red) == (len(examples) % 2 == 0):
            examples.append(one.world())
            labels.append(bool(any(red)))
    apart = {"in(obj1,img)": 1.0, "color(obj1,red)": 1.0, "shape(obj1,circle)": 1.0}
    learnt = _learn(None, [*examples, apart], [*labels, None], source=PROGRAM, names=[f"w{i}" for i in range(81)])
    (clause,) = learnt.clauses
    texts = [clause.text, *clause.alternatives]
    assert {"kp(X) :- in(A, X), color(A, red).", "kp(X) :- in(A, X), shape(A, triangle)."} <= set(texts)
    assert clause.apart == ("w80",) and "w80" in learnt.text and learnt.alternatives[clause.text]


def test_what_a_rule_may_ask_for_as_well_is_listed() -> None:
    """All triangles that make a world true are red, and there are others: red may be meant, or not."""
    rng = np.random.default_rng(19)
    examples, labels = [], []
    while len(examples) < 100:
        one = Objects(rng)
        triangle, true = one.shapes == 2, len(examples) % 2 == 0
        if any(triangle) == true and (one.colors[triangle] == 0).all():
            examples.append(one.world())
            labels.append(true)
    apart = {"in(obj1,img)": 1.0, "color(obj1,blue)": 1.0, "shape(obj1,triangle)": 1.0}
    learnt = _learn(None, [*examples, apart], [*labels, None], source=PROGRAM, names=[f"w{i}" for i in range(101)])
    (clause,) = learnt.clauses
    assert clause.text == "kp(X) :- in(A, X), shape(A, triangle)."
    assert "kp(X) :- in(A, X), color(A, red), shape(A, triangle)." in clause.narrower
    assert "what is added, all true examples have:" in learnt.text and clause.apart == ("w100",)
    examples, labels = balanced(20, 100, lambda one: one.has("red", "triangle") > 0)
    assert not _learn(None, examples, labels, source=PROGRAM).clauses[0].narrower  # nothing else is common to them


def test_classes() -> None:
    source = PROGRAM.replace("learn(kp(image))", "learn([warm(image), cold(image)])")
    examples, labels = balanced(10, 80, lambda one: one.has("red") > 0)
    learnt = _learn(None, examples, ["warm" if label else "cold" for label in labels], source=source)
    assert learnt.program.classes == ["warm(img)", "cold(img)"] and learnt.scores["classes training"] == 1.0
    with pytest.raises(NsfrcError, match="did you mean warm"):
        _learn(None, examples, ["wram"] * 80, source=source)


def test_body_and_vars_limit_what_is_used() -> None:
    examples, labels = balanced(11, 100, lambda one: one.has("red", "triangle") > 0)
    limited = PROGRAM + ":- body(color(object, color), [max(1)]).\n:- body(shape(object, shape), [max(1)]).\n"
    learnt = _learn(None, examples, labels, source=limited)
    assert learnt.clauses[0].text == "kp(X) :- in(A, X), color(A, red), shape(A, triangle)."
    with pytest.raises(NothingLearnt):
        _learn(None, examples, labels, source=PROGRAM + ":- body(area(object)).\n")


def test_valuations_objects_and_paper(tmp_path: Path) -> None:
    rule = RULES["conjunction"][0]
    examples, labels = balanced(12, 80, rule)
    text = PROGRAM.replace(":- number(area(object)).\n", "")
    base = nsfrc.compile(source=text)
    V0 = base.valuation(*[{k: v for k, v in one.items() if not k.startswith("area")} for one in examples])
    learnt = _learn(None, V0, labels, source=text)
    assert learnt.clauses[0].text == "kp(X) :- in(A, X), color(A, red), shape(A, triangle)."
    paper = _learn(None, V0, labels, source=text + ":- semantics(paper).\n")
    assert paper.clauses[0].text == learnt.clauses[0].text and not paper.program.anchored
    soft = torch.where(V0 > 0.5, V0 - 0.1, V0 + 0.1 * torch.from_numpy(base.ground.neural))
    assert _learn(None, soft, labels, source=text).clauses[0].text == learnt.clauses[0].text
    with pytest.raises(NsfrcError, match="V0 has 3 columns"):
        _learn(None, V0[:, :3], labels, source=text)


def test_the_same_again_and_stopped_early() -> None:
    examples, labels = balanced(13, 100, RULES["negation"][0])
    one, two = (_learn(None, examples, labels, source=PROGRAM, seed=3) for _ in range(2))
    assert one.text == two.text
    try:
        assert not _learn(None, examples, labels, source=PROGRAM, seconds=1e-9).complete
    except NothingLearnt as error:
        assert "before the search was stopped" in str(error)


def test_a_saved_program_finds_what_it_includes_and_does_without_what_it_does_not_need(tmp_path: Path) -> None:
    (tmp_path / "more.pl").write_text("hot(O) :- color(O, red).\n")
    (tmp_path / "rules.pl").write_text(PROGRAM + ":- include('more.pl').\nspare(O) :- shape(O, circle), hot(O).\n")
    examples, labels = balanced(14, 60, lambda one: one.has("yellow", "square") > 0)
    learnt = _learn(tmp_path / "rules.pl", examples, labels)
    path = learnt.save(tmp_path / "sub" / "learnt.pl")
    assert "spare" not in path.read_text() and ":- learn" not in path.read_text()
    assert nsfrc.compile(path).targets == ["kp(img)"]
