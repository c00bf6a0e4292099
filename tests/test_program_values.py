"""Programs that are built as values, without text, and what survives compiling and saving."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nsfrc
from nsfrc.compiler import ir
from nsfrc.compiler.stages import compile_program
from nsfrc.compiler.well_formed import well_formed
from nsfrc.errors import NsfrcError
from tests.examples import SHIPPED, SMALL, random_typed, shipped, small


@pytest.mark.parametrize("name", SHIPPED)
def test_a_value_compiles_to_the_plan_of_its_text(name: str) -> None:
    of_text = shipped(name)
    of_value = compile_program(of_text.program)
    for field, table in of_text.plan.tables().items():
        other = of_value.plan.tables()[field]
        assert np.array_equal(table, other, equal_nan=table.dtype.kind == "f"), field
    assert of_text.plan.sizes == of_value.plan.sizes


@pytest.mark.parametrize("program", [*SMALL, *range(20)])
def test_what_check_makes_is_well_formed(program: str | int) -> None:
    well_formed(random_typed(program) if isinstance(program, int) else small(program))


def test_the_program_survives_compiling_and_saving(tmp_path: Path) -> None:
    program = nsfrc.compile("twopairs")
    loaded = nsfrc.load(program.save(tmp_path / "p.nsfrc"))
    assert isinstance(loaded.source, ir.Program)
    assert loaded.source == program.source
    assert loaded.ground.clauses == program.ground.clauses == program.source.clauses
    again = nsfrc.compile(loaded.source)
    assert again.save(tmp_path / "again.nsfrc").read_bytes() == (tmp_path / "p.nsfrc").read_bytes()


def test_a_generated_clause() -> None:
    X, O1, red = ir.Var("X"), ir.Var("O1"), ir.Const("red")
    clause = ir.Clause(ir.Atom("kp", (X,)), (ir.Atom("in", (O1, X)), ir.Atom("color", (O1, red))), (),
                       (("X", "image"), ("O1", "object")))
    program = nsfrc.compile(replace(nsfrc.compile("twopairs").source, clauses=(clause,)))
    assert program.clauses == ("kp(X) :- in(O1,X), color(O1,red).",)
    with pytest.raises(NsfrcError, match="slots is only for programs given as text"):
        nsfrc.compile(program.source, slots={"object": 3})


def clause_of(program: ir.Program, **changes: object) -> ir.Program:
    return replace(program, clauses=(replace(program.clauses[0], **changes), *program.clauses[1:]))  # type: ignore[arg-type]


@pytest.mark.parametrize(("spoil", "message"), [
    (lambda p: replace(p, types=(*p.types, p.types[0])), "two types called image"),
    (lambda p: replace(p, types=tuple(replace(t, constants=()) for t in p.types)), "has no constants"),
    (lambda p: replace(p, predicates=p.predicates[1:]), "is not there"),
    (lambda p: replace(p, predicates=(*p.predicates, p.predicates[0])), "two predicates"),
    (lambda p: clause_of(p, head=ir.Atom("in", (ir.Const("obj1"), ir.Const("img")))), "role is not derived"),
    (lambda p: clause_of(p, types=()), "is not of type image"),
    (lambda p: clause_of(p, types=(*p.clauses[0].types, ("Q", "object"))), "are not those of its variables"),
    (lambda p: clause_of(p, body=(ir.Atom("color", (ir.Var("O1"), ir.Const("puce"))),)), "puce .* not a constant"),
    (lambda p: clause_of(p, filters=(ir.Filter("~", ir.Var("O1"), ir.Var("O2")),)), "has the test ~"),
    (lambda p: clause_of(p, filters=(ir.Filter("<", ir.Var("Q"), ir.Const("1")),)), "Q, which has no type"),
    (lambda p: replace(p, targets=(ir.Atom("kp", (ir.Var("X"),)),)), "has variables"),
    (lambda p: replace(p, facts=(ir.Atom("in", (ir.Const("obj1"), ir.Const("img"))),)), "of a neural predicate"),
    (lambda p: replace(p, settings=ir.Settings(steps=0)), "steps is 0"),
    (lambda p: replace(p, targets=p.targets * 2), r"two targets kp\(img\)"),
    (lambda p: replace(p, classes=p.targets), "there is one class, kp"),
    (lambda p: replace(p, classes=p.targets * 2), "not the last of the targets"),
    (lambda p: replace(p, settings=ir.Settings(thresholds=(("kp9", 0.5),))), "threshold of kp9, which is not asked"),
    (lambda p: replace(p, settings=ir.Settings(thresholds=(("kp(img)", 1.5),))), "is 1.5, not a number from 0 to 1"),
])
def test_values_that_are_not_well_formed_are_refused(spoil: object, message: str) -> None:
    with pytest.raises(NsfrcError, match=f"not well formed: .*{message}"):
        nsfrc.compile(spoil(shipped("twopairs").program))  # type: ignore[operator]
