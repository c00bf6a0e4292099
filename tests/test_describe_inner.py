"""Negations and counts in words, what they cost, and how a compilation shows them."""

from __future__ import annotations

import pytest

from nsfrc.compiler import report
from nsfrc.compiler.emit import STAGES
from nsfrc.compiler.stages import compile_text
from nsfrc.describe import account, as_text, of_compilation, sentence
from tests.test_goal_text import CLAUSES, SCENE, compiled

SOME = "there is an object _1 such that _1 is in X; and "
RED = "O is in X and has color red"
WORDS = {
    "none(img)": f"{SOME}there is no object O such that {RED}",
    "empty(img)": "image(X) is among the facts; and there is no object _1 such that _1 is in X",
    "largest(img)": f"there is an object O such that {RED}; and there is no other object P such that P is in X and "
                    "larger",
    "all(img)": f"{SOME}for every object O such that O is in X: O has color red",
    "either(img)": f"{SOME}there is no object O such that {RED}, or O is in X and has color blue",
    "two(img)": f"{SOME}there are two to three objects O such that {RED}",
    "even(img)": f"{SOME}N is the number of objects O such that {RED}, and (N mod 2) =:= 0",
    "more(img)": f"{SOME}the number of objects O such that {RED} minus that of objects O such that O is in X and has "
                 "color blue is more than 1",
    "n(img,2)": f"{SOME}N is the number of objects O such that {RED}",
    "nested(img)": f"{SOME}there is no object O such that O is in X and there are at least two other objects P such "
                   "that P is in X and larger",
}


@pytest.mark.parametrize("target", WORDS)
def test_words(target: str) -> None:
    program = compiled(target).source
    assert WORDS[target] in sentence(program.clauses[0], program).words


@pytest.mark.parametrize("goals, words", [
    (r"in(O,X), \+ color(O,red)", "O is in X and does not have color red"),
    (r"in(O,X), in(P,X), \+ closeby(O,P)", "O and P are in X; and O is not close by P"),
    ("aggregate_all(count, in(_,X), N), N =< 3", "there are at most three objects _1 such that _1 is in X"),
    ("aggregate_all(count, in(_,X), 2)", "there are exactly two objects _1 such that _1 is in X"),
    ("aggregate_all(count, (in(A,X), in(B,X), closeby(A,B)), N), N > 1",
     "there are more than one choices of two different objects A and B such that A and B are in X and A is close by B"),
    ("aggregate_all(count, (in(O,X), color(O,red)), N), aggregate_all(count, (in(O,X), color(O,blue)), M), N >= M",
     f"there are at least as many objects O such that {RED} as objects O such that O is in X and has color blue"),
])
def test_more_words(goals: str, words: str) -> None:
    text = f"{SCENE}:- neural(closeby(object, object)).\n:- target(kp(img)).\nkp(X) :- {goals}."
    program = compile_text(text, "kp").program
    assert words in sentence(program.clauses[0], program).words


def done(target: str) -> str:
    return f"{SCENE}:- target({target}).\n{CLAUSES[target]}\n"


def test_the_account_says_what_counts_cost_and_where_inner_goals_stand() -> None:
    data = account(of_compilation(compile_text(done("two(img)"), "two")))
    outer, inner = data["clauses"]
    assert outer["counts"] == [
        {"goal": "count(in(O,X), color(O,red)) in 2..3", "atoms": 1, "solutions": 4, "choices": 16}]
    assert data["cost"]["choices"] == compiled("two(img)").lowered.choices <= 16
    assert inner["words"] == "What clause 1 counts." and inner["notes"] == []
    assert [one["predicates"] for one in data["steps"]["first"]] == [["two/1"]]
    text = as_text(data)
    assert "count(in(O,X), color(O,red)) in 2..3: 1 atom that looks at 4 others, at most 16 choices." in text
    assert "choices for negations and counts" in text
    negation = account(of_compilation(compile_text(done("largest(img)"), "largest")))
    assert negation["clauses"][1]["words"] == "What clause 1 negates."


def test_the_report_counts_choices() -> None:
    data = report.as_data(compile_text(done("largest(img)"), "largest"), None)
    assert sum(level["choices"] for level in data["levels"]) == 4
    assert data["clauses"][0]["clause"] == CLAUSES["largest(img)"]
    assert "negations and counts: 4 choices between two values (4 in level 2)" in report.as_text(data)
    assert "choice" not in report.as_text(report.as_data(compile_text(
        f"{SCENE}:- target(kp(img)).\nkp(X) :- in(_,X).\n", "kp"), None))


def test_emitted_stages_show_what_counts_what() -> None:
    compilation = compile_text(done("more(img)"), "more")
    typed, ground = (list(STAGES[stage](compilation)) for stage in ("ir", "ground"))
    assert "% 'more#1 - more#2 > 1'(image) counts 'more#1'(image,object) less 'more#2'(image,object): N > 1" in typed
    four = ", ".join(f"'more#1'(img,obj{i})" for i in range(1, 5))
    less = ", ".join(rf"\+ 'more#2'(img,obj{i})" for i in range(1, 5))
    assert f"'more#1 - more#2 > 1'(img) counts {four}, {less}.  % wanted: 6 or more" in ground
    assert r"\+ 'more#2'(img,obj1) counts 'more#2'(img,obj1).  % wanted: 0" in ground
