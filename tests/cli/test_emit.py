"""`nsfrc compile --emit`: every stage as text."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from nsfrc.program import compile as compile_program
from tests.cli.support import RULES, Run
from tests.examples import SHIPPED, write


@pytest.mark.parametrize("stage", ["ast", "ir", "ground", "index", "plan"])
def test_emit_to_screen_and_file(stage: str, run: Run) -> None:
    text = run.good("compile", "twopairs", "--emit", stage)
    assert text.strip() and os.listdir(run.folder) == []
    assert run.good("compile", "twopairs", "--emit", stage, "--out", "stage.txt") == ""
    assert (run.folder / "stage.txt").read_text() == text


def test_emit_ast_names_places(run: Run) -> None:
    write(run.folder, RULES)
    assert "rules.pl:2:1: :- type(image,[img])." in run.good("compile", "rules.pl", "--emit", "ast")


@pytest.mark.parametrize("name", [*SHIPPED, "odd"])
def test_emitted_ir_compiles_to_the_same_program(name: str, run: Run) -> None:
    if name == "odd":
        write(run.folder, """
            :- steps(9). :- gamma(0.00001). :- threshold(0.25). :- perception(mine).
            :- type(thing, slots(2)).
            :- type('odd type', ['big box', 'It\\'s', -3, 2.5]).
            :- neural(has(thing, 'odd type')). :- target(q(thing1)). :- target(alarm).
            q(X) :- has(X, 'big box'), has(_, -3), size(O, N), N * 2 - 1 >= - N mod 2, O \\= obj1.
            alarm :- q(X), has(X, Y), Y \\== 'It\\'s'.
        """, "odd.pl")
    source = f"{name}.pl" if name == "odd" else name
    run.good("compile", source, "--emit", "ir", "--out", "again.pl")
    first, second = compile_program(source), compile_program("again.pl")
    assert first.atoms == second.atoms
    assert first.clauses == second.clauses
    assert (first.settings, first.steps, first.targets) == (second.settings, second.steps, second.targets)
    assert [t.role for t in first.ground.herbrand.types] == [t.role for t in second.ground.herbrand.types]
    for table, other in zip(first.plan.tables().values(), second.plan.tables().values(), strict=True):
        assert np.array_equal(table, other, equal_nan=table.dtype.kind == "f")


def test_emit_ground(run: Run) -> None:
    lines = run.good("compile", "closeby", "--emit", "ground").splitlines()
    assert len(lines) == 12
    assert lines[0] == "kp(img) :- in(obj1,img), in(obj2,img), closeby(obj1,obj2).  % clause 0"


def test_emit_index(run: Run) -> None:
    lines = run.good("compile", "twopairs", "--emit", "index").splitlines()
    assert lines[0].split("\t") == ["clause", "atom", "substitution", *(f"l{i}" for i in range(8))]
    assert len(lines) == 1 + 168
    run.good("compile", "twopairs", "--emit", "index", "--out", "index.npy")
    tensor = np.load(run.folder / "index.npy")
    assert tensor.shape == (4, 73, 24, 8)
    for line in lines[1:]:
        clause, atom, k, *row = map(int, line.split("\t"))
        assert tensor[clause, atom, k].tolist() == row
    assert "only --emit index" in run.refused("compile", "twopairs", "--emit", "plan", "--out", "x.npy")


def test_emit_plan_is_json(run: Run) -> None:
    data = json.loads(run.good("compile", "twopairs", "--emit", "plan"))
    plan = compile_program("twopairs").plan
    shapes = {name: list(table.shape) for name, table in plan.tables().items()}
    assert {name: table["shape"] for name, table in data.items()} == shapes
    assert data["row_left"]["values"] == plan.row_left.tolist()
    assert data["constant"]["values"][:3] == [0.0, 1.0, None]


def test_emit_unknown_stage(run: Run) -> None:
    assert "'plan'" in run.refused("compile", "twopairs", "--emit", "assembly")
