"""Clauses to choose from: the background stays as it is, and every engine agrees."""

from __future__ import annotations

import pytest
import torch

import nsfrc
from nsfrc.errors import NsfrcError
from tests.engines.support import valuations

SOURCE = """
:- include('kandinsky.pl').
:- type(object, slots(3)).
:- target([kp(img), other(img)]).
kp(X) :- in(A, X), in(B, X), same_shape(A, B), same_color(A, B).
kp(X) :- in(A, X), in(B, X), same_shape(A, B), color(A, red).
kp(X) :- in(A, X), in(B, X), same_color(A, B), shape(A, circle).
other(X) :- in(A, X), color(A, red).
other(X) :- in(A, X), color(A, blue).
same_shape(A, B) :- shape(A, S), shape(B, S).
same_color(A, B) :- color(A, C), color(B, C).
"""


@pytest.mark.parametrize("head", ["", ":- semantics(paper).\n"])
@pytest.mark.parametrize("names", ["kp/1", ("kp/1", "other/1")])
def test_engines_agree(head: str, names: str | tuple[str, ...]) -> None:
    program = nsfrc.compile(source=head + SOURCE)
    V0 = valuations(program, 5)
    found = []
    for engine in ("cpu", "reference"):
        reasoner = program.reasoner(engine, candidates=names, mixtures=2, outputs="targets", inputs="neural")
        values = reasoner(V0)
        (values * torch.tensor([1.0, 0.5])).sum().backward()
        assert reasoner.clause_weights.grad is not None
        found.append((values.detach(), reasoner.clause_weights.grad))
    assert torch.allclose(found[0][0], found[1][0], atol=2e-6)
    assert torch.allclose(found[0][1], found[1][1], atol=2e-6)
    assert not found[0][1][:, 5:].any(), "the background has no weights"


def test_a_decided_mixture_is_the_program_with_that_clause_alone() -> None:
    program = nsfrc.compile(source=SOURCE)
    alone = nsfrc.compile(source="\n".join(
        line for line in SOURCE.split("\n") if not line.startswith("kp(") or "color(A, red)" in line))
    V0 = valuations(program, 7)
    reasoner = program.reasoner(candidates="kp/1", outputs="targets", inputs="neural")
    with torch.no_grad():
        reasoner.clause_weights[0, 1] = 40.0
    expected = alone.reasoner(outputs="targets", inputs="neural")(V0)
    assert torch.allclose(reasoner(V0), expected, atol=1e-6)


def test_it_learns_beside_background_clauses_what_a_row_over_all_of_them_cannot() -> None:
    program = nsfrc.compile(source=SOURCE)
    V0 = valuations(program, 60)
    alone = program.reasoner(candidates="kp/1", outputs="targets", inputs="neural")
    with torch.no_grad():
        alone.clause_weights[0, 2] = 40.0
        truth = alone(V0)[:, 0]
    reasoner = program.reasoner(candidates="kp/1", outputs="targets", inputs="neural")
    optimiser = torch.optim.Adam(reasoner.parameters(), lr=0.3)
    for _ in range(60):
        optimiser.zero_grad()
        ((reasoner(V0)[:, 0] - truth) ** 2).sum().backward()
        optimiser.step()
    assert int(reasoner.clause_weights[0, :3].argmax()) == 2


def test_what_is_refused() -> None:
    program = nsfrc.compile(source=SOURCE)
    with pytest.raises(NsfrcError, match="did you mean kp/1"):
        program.reasoner(candidates="kp/2")
    with pytest.raises(NsfrcError, match="leave out clause_weights"):
        program.reasoner(candidates="kp/1", clause_weights="trainable")
    with pytest.raises(NsfrcError, match="mixtures is a whole number"):
        program.reasoner(candidates="kp/1", mixtures=0)
    with pytest.raises(NsfrcError, match="each once"):
        program.reasoner(candidates=["kp/1", "kp/1"])
    assert "candidates of kp/1" in repr(program.reasoner(candidates="kp/1"))
