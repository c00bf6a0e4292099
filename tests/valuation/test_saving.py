"""`FactsConverter.save_concepts`: what was learnt end to end, in a file and back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.valuation import FactsConverter, concepts
from tests.valuation.support import DIMENSIONS, compiled, program, random_objects


def scrambled(facts: FactsConverter, seed: int = 0) -> FactsConverter:
    """With random parameters, as if they had been learnt."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in facts.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return facts


@pytest.mark.parametrize("name", ["closeby", "online_pair"])
def test_what_is_written_gives_the_same_values_when_read(name: str, tmp_path: Path) -> None:
    facts, objects = scrambled(FactsConverter(compiled(name), DIMENSIONS)), random_objects(3, 5)
    path = tmp_path / "mine.json"
    facts.save_concepts(path, made_by={"labels": 3})
    again = FactsConverter(compiled(name), DIMENSIONS, parameters=path)
    assert torch.equal(again(objects), facts(objects))
    assert not torch.equal(FactsConverter(compiled(name), DIMENSIONS)(objects), facts(objects))
    assert [entry["made_by"] for entry in concepts.read(path).values()] == [{"labels": 3}]


def test_concepts_of_other_programs_stay(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    for name in ("closeby", "online_pair"):
        scrambled(FactsConverter(compiled(name), DIMENSIONS)).save_concepts(str(path))
    assert set(concepts.read(path)) == {"closeby", "online"}


def test_a_network_of_ones_own(tmp_path: Path, fresh: None) -> None:
    @nsfrc.neural_predicate("likes")
    class Likes(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))

        def forward(self, a: nsfrc.valuation.Objects, b: nsfrc.valuation.Objects) -> torch.Tensor:
            return self.layers(torch.stack([a["red"], b["blue"]], dim=-1)).squeeze(-1).sigmoid()

    rules = program(tmp_path, ":- neural(likes(object, object)). :- target(kp(img)). kp(X) :- in(A, X), likes(A, B).")
    facts, objects = FactsConverter(rules, DIMENSIONS), random_objects(2, 4)
    facts.save_concepts(tmp_path / "likes.json")
    other = FactsConverter(rules, DIMENSIONS)  # starts elsewhere
    assert not torch.equal(other(objects), facts(objects))
    assert torch.equal(FactsConverter(rules, DIMENSIONS, tmp_path / "likes.json")(objects), facts(objects))


def test_one_name_with_two_meanings(tmp_path: Path) -> None:
    rules = program(tmp_path, """
        :- neural(online(object, object, object)).
        :- neural(online(object, object, object, object)).
        :- target(kp(img)).
        kp(X) :- in(A, X), online(A, B, C).
        kp(X) :- in(A, X), online(A, B, C, D).
    """)
    facts = FactsConverter(rules, DIMENSIONS)
    facts.save_concepts(tmp_path / "same.json")  # both are as shipped
    with pytest.raises(NsfrcError, match=r"online of 4 arguments and another online .*two.json"):
        scrambled(facts).save_concepts(tmp_path / "two.json")
    assert not (tmp_path / "two.json").exists()


def test_nothing_is_written_that_could_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    with pytest.raises(NsfrcError, match=r"nothing to write to .*bad.json: .*color, in, shape"):
        FactsConverter(compiled("twopairs"), DIMENSIONS).save_concepts(path)
    facts = FactsConverter(compiled("closeby"), DIMENSIONS)
    with torch.no_grad():
        next(facts.parameters()).fill_(float("nan"))
    with pytest.raises(NsfrcError, match="parameter w cannot be written: it must be finite"):
        facts.save_concepts(path)
    assert not path.exists()
    path.write_text("dear diary")
    with pytest.raises(NsfrcError, match=r"bad.json is not a concepts file"):
        FactsConverter(compiled("closeby"), DIMENSIONS).save_concepts(path)
    assert path.read_text() == "dear diary"


def test_buffers_are_written_too(tmp_path: Path, fresh: None) -> None:
    """Scores of a network with a batch norm depend on what it has seen."""

    @nsfrc.neural_predicate("pale")
    class Pale(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(1)
            self.register_buffer("scratch", torch.full((1,), float("nan")), persistent=False)

        def forward(self, a: nsfrc.valuation.Objects) -> torch.Tensor:
            return self.norm(a["red"].reshape(-1, 1)).view_as(a["red"]).sigmoid()

    rules = program(tmp_path, ":- neural(pale(object)). :- target(kp(img)). kp(X) :- in(A, X), pale(A).")
    facts, objects = FactsConverter(rules, DIMENSIONS), random_objects(3, 4)
    facts.train()(objects)
    facts.eval().save_concepts(tmp_path / "pale.json")
    again = FactsConverter(rules, DIMENSIONS, tmp_path / "pale.json").eval()
    assert torch.equal(again(objects), facts(objects))
    assert not torch.equal(FactsConverter(rules, DIMENSIONS).eval()(objects), facts(objects))
    assert "norm.running_mean" in concepts.read(tmp_path / "pale.json")["pale"]
    facts.predicates["pale/1"].function.norm.running_var.fill_(float("inf"))
    with pytest.raises(NsfrcError, match=r"buffer norm\.running_var cannot be written.*persistent=False"):
        facts.save_concepts(tmp_path / "pale.json")
