"""`nsfrc explain`: a program in words."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.support import RULES, Run
from tests.examples import SHIPPED, write


def test_explain_says_everything_of_a_shipped_program(run: Run) -> None:
    text = run.good("explain", "twopairs")
    flat = " ".join(text.split())
    for part in (
        "asked kp(img)", "yolo must value 28 atoms per image", "color(object,color) 12",
        "6 of 6 atoms of diff_color(color,color), always true: diff_color(blue,red)",
        "reasoning paper, 4 steps; at least 2 for what is asked", "step 2 can first derive kp/1",
        "For any image X, kp(X) holds if there are four different objects O1, O2, O3 and O4 such that "
        "O1, O2, O3 and O4 are in X; same_shape_pair and same_color_pair hold for O1 and O2; and",
        "It derives 12 atoms with 6 substitutions each: 72 live rows, 36 in the plan, 46.2 % of its rows.",
        "78 rows, 102 products", "448.5 kB for the paper's index tensor 4 × 73 × 24 × 8",
        "merge_equal equal atoms merged: 73 → 49 atoms, 168 → 78 rows, 384 → 114 products.",
        "needed only what the targets need: nothing to do here.",
    ):
        assert part in flat, part
    assert max(map(len, text.splitlines())) <= 110
    assert os.listdir(run.folder) == []


@pytest.mark.parametrize("name", SHIPPED)
def test_explain_agrees_with_compile(name: str, run: Run) -> None:
    compiled = json.loads(run.good("compile", name, "--json"))
    told = json.loads(run.good("explain", name, "--json"))
    stored = json.loads(run.good("explain", f"{name}.nsfrc", "--json"))
    assert [c["plan_rows"] for c in told["clauses"]] == [c["rows"] for c in compiled["clauses"]]
    assert sum(c["live_rows"] for c in told["clauses"]) == compiled["index_tensor"]["live_rows"]
    assert [{k: v for k, v in p.items() if k != "note"} for p in told["passes"]] == compiled["passes"]
    assert told["cost"]["products"] == compiled["passes"][-1]["products"]
    assert told["cost"]["plan_bytes"] == compiled["plan_bytes"]
    same = told.keys() - {"source", "passes"}
    assert {k: told[k] for k in same} == {k: stored[k] for k in same}
    assert [p["pass"] for p in stored["passes"]] == ["dense", "live", "plan"]
    assert stored["passes"][-1]["rows"] == told["passes"][-1]["rows"]


def test_explain_one_clause(run: Run) -> None:
    text = run.good("explain", "twopairs", "--clause", "2")
    assert text.startswith("  2  same_shape_pair(X,Y) :- shape(X,Z), shape(Y,Z).\n") and "kp" not in text
    assert json.loads(run.good("explain", "twopairs", "--clause", "4", "--json"))["number"] == 4
    assert "has no clause 5: its clauses are 1 to 4" in run.refused("explain", "twopairs", "--clause", "5")
    assert "not in the range" in run.refused("explain", "twopairs", "--clause", "0")


def test_explain_slots(run: Run) -> None:
    assert "a step works on" in run.good("explain", "closeby", "--slots", "object=6")
    (clause,) = json.loads(run.good("explain", "closeby", "--slots", "object=6", "--json"))["clauses"]
    assert clause["substitutions"] == {"least": 30, "most": 30}
    run.good("compile", "closeby")
    assert "give the .pl file" in run.refused("explain", "closeby.nsfrc", "--slots", "object=6")


def test_explain_what_no_target_needs_and_no_target(run: Run) -> None:
    write(run.folder, RULES + " unused(X) :- in(O, X), near(O, P), in(P, X).")
    result = run("explain", "rules.pl", "--clause", "2")
    assert "No target needs this clause" in result.out and "6 in the plan, 66.7 % of its rows" in result.out
    assert "No target needs" not in run("explain", "rules.pl", "--clause", "1").out
    assert "warning" in result.err and "warning" not in result.out
    write(run.folder, "kp(X) :- in(O, X), color(O, red).")
    assert "nothing: the program has no target" in run.good("explain", "rules.pl")


def test_explain_refuses_what_compile_refuses(run: Run) -> None:
    write(run.folder, RULES + " kp(X) :- colour(X).")
    assert "unknown predicate colour/1" in run.refused("explain", "rules.pl")
    assert "there is no file" in run.refused("explain", "nothing.nsfrc")
    assert "no shipped program" in run.refused("explain", "nothing")
    (run.folder / "cut.nsfrc").write_bytes(b"short")
    assert "cut short" in run.refused("explain", "cut.nsfrc")


def test_help_tells_programs_from_answers(run: Run) -> None:
    assert "nsfrc infer --report" in " ".join(run.good("explain", "--help").split())


def test_errors_are_json_where_that_is_asked_for(run: Run) -> None:
    Path("wrong.pl").write_text("kp(X) :- in(O, X).")
    done = run("explain", "wrong.pl", "--json")
    assert done.code == 1
    assert json.loads(done.out)["errors"][1]["span"]["file"] == "wrong.pl"
    assert "no clause 9" in json.loads(run("explain", "closeby", "--clause", "9", "--json").out)["errors"][0]["message"]
