"""Counts of independent facts are the probabilities that ProbLog gives; skipped where ProbLog is absent."""

from __future__ import annotations

import math
from itertools import product

import pytest

from nsfrc.benchmarks import problog


def by_subsets(question: problog.Question) -> float:
    values = [math.prod(facts) for facts in question.facts]
    return sum(math.prod(x if yes else 1 - x for x, yes in zip(values, happens, strict=True))
               for happens in product((False, True), repeat=len(values)) if sum(happens) >= question.least)


def test_questions_have_the_probability_of_their_subsets() -> None:
    asked = problog.questions()
    assert len(asked) == 20
    for question in asked[::4]:
        program = problog.nsfrc.compile(source=question.ours())
        value = program.reasoner("cpu", outputs="targets")(program.valuation(question.values()))
        assert float(value) == pytest.approx(by_subsets(question), abs=problog.NEAR)


def test_problog_agrees() -> None:
    python = problog.interpreter()
    if python is None:
        pytest.skip("ProbLog is not installed")
    asked = [question for question in problog.questions() if len(question.facts) <= 5]
    for question, (value, _) in zip(asked, problog.ask_problog(python, asked), strict=True):
        program = problog.nsfrc.compile(source=question.ours())
        mine = program.reasoner("cpu", outputs="targets")(program.valuation(question.values()))
        assert float(mine) == pytest.approx(value, abs=problog.NEAR)


def test_where_it_is_absent_nothing_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr(problog, "interpreter", lambda: None)
    assert problog.main() == 0
    assert "pip install problog" in capsys.readouterr().out
