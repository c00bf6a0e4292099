"""Annotated clauses: one more body atom, whose value is the probability."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import nsfrc
from nsfrc.compiler import ir
from nsfrc.compiler.stages import compile_text

VOCABULARY = """
:- type(image, [img]).
:- type(object, slots(2)).
:- neural(in(object, image)).
:- target(kp(img)).
"""


def checked(clauses: str) -> ir.Program:
    return compile_text(VOCABULARY + clauses, "rules.pl").program


def value(clauses: str, facts: dict[str, float] | None = None) -> float:
    program = nsfrc.compile(source=VOCABULARY + clauses)
    values = program.reasoner("reference", outputs="targets")(program.valuation(facts or {}))
    assert torch.equal(values, program.reasoner("cpu", outputs="targets")(program.valuation(facts or {})))
    return float(values)


@pytest.mark.parametrize(("written", "printed"), [
    ("0.9::lucky.", "0.9::lucky :- true."),
    ("1::lucky.", "1.0::lucky :- true."),
    ("1/4::lucky.", "0.25::lucky :- true."),
    ("t(0.3)::lucky.", "t(0.3)::lucky :- true."),
    ("t(_)::lucky.", "t(_)::lucky :- true."),
    ("0.25::lucky :- in(_, img).", "0.25::lucky :- in(_1,img)."),
])
def test_printed_as_written(written: str, printed: str) -> None:
    program = checked(f"kp(X) :- in(_, X), lucky. {written}")
    assert str(program.clauses[-1]) == printed
    (chance,) = (p.chance for p in program.predicates if p.role == ir.CHANCE)
    assert chance is not None and chance.learnt == written.startswith("t(")


def test_values_are_exact() -> None:
    assert value("0.9::kp(img).") == pytest.approx(0.9, abs=1e-7)
    assert value("0.7::kp(X) :- in(_O, X).", {"in(obj1,img)": 0.5}) == pytest.approx(0.35, abs=1e-7)
    assert value("kp(X) :- a, in(_O, X). 0.5::a :- b. 0.4::b.", {"in(obj1,img)": 1}) == pytest.approx(0.2, abs=1e-7)
    assert value("0::kp(img).") == 0 and value("1::kp(img).") == 1


def test_these_are_the_best_reasons_not_marginals() -> None:
    """ProbLog says 0.75 of two coins."""
    assert value("0.5::kp(img). 0.5::kp(img).") == pytest.approx(0.5, abs=0.01)


def test_annotated_disjunctions_are_a_clause_for_each_head() -> None:
    program = checked("kp(X) :- a, in(_, X). kp(X) :- b, in(_, X). 0.3::a ; t(0.6)::b :- c(_). 1::c(obj1).")
    assert [str(clause) for clause in program.clauses[2:4]] == ["0.3::a :- c(_1).", "t(0.6)::b :- c(_1)."]


def test_equal_annotations_are_two_probabilities() -> None:
    program = checked("t(0.5)::kp(X) :- in(_, X). t(0.5)::kp(X) :- in(_, X), in(_, X).")
    assert [p.name for p in program.predicates if p.chance] == ["t(0.5)::kp(X)", "t(0.5)::kp(X) #2"]
    assert [str(clause)[:14] for clause in program.clauses] == ["t(0.5)::kp(X) "] * 2


def test_alternatives_share_a_probability() -> None:
    program = checked("t(0.5)::kp(X) :- in(O, X), (O = obj1 ; O = obj2).")
    assert len(program.clauses) == 2 and len([p for p in program.predicates if p.chance]) == 1


def test_variables_of_one_head_are_no_singletons() -> None:
    program = nsfrc.compile(source=VOCABULARY + """
        kp(X) :- left(_O, X). kp(X) :- right(_O), in(_P, X).
        0.3::left(O, X) ; 0.3::right(O) :- in(O, X).
    """)
    assert not program.warnings


def test_where_probabilities_start() -> None:
    program = nsfrc.compile(source=VOCABULARY + "0.7::kp(X) :- in(_, X). t(_)::kp(X) :- in(_, X).")
    start = program.initial_valuation()
    assert start[program.index("0.7::kp(X)")] == np.float32(0.7) and start[program.index("t(_)::kp(X)")] == 0.5
    assert set(program.ground.initial.tolist()) == {0, 1}
    assert program.ground.neural[program.index("0.7::kp(X)")]


def test_emitted_files_have_the_probabilities() -> None:
    from nsfrc.engines.gpu.source import emit

    text = emit(nsfrc.compile(source=VOCABULARY + "0.7::kp(X) :- in(_, X)."))
    assert 'CHANCES = {"0.7::kp(X)": 0.7}' in text and "CHANCES.get(atom, start)" in text
