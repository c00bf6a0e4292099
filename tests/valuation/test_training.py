"""End to end: gradients from prediction to object vectors and concepts; learning from pattern labels alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nsfrc.data.kandinsky import DIMENSIONS, figure, truth
from nsfrc.reasoner import Reasoner
from nsfrc.valuation import FactsConverter
from tests.valuation.support import compiled

SOFT = {"closeby": (-6.0, 1.0), "online_pair": (-9.0, 1.0)}  # w, b with slopes everywhere


def figures(name: str, seed: int, count: int, objects: int) -> tuple[torch.Tensor, torch.Tensor]:
    """True object vectors [count, E, 11] of figures, a little off as a detector's are, and labels [count]."""
    made = [figure(name, seed, i) for i in range(count)]
    vectors = np.stack([truth(one.figure, objects) for one in made])
    vectors[..., :4] += np.random.default_rng(seed).normal(0, 0.003, vectors[..., :4].shape)
    return torch.from_numpy(vectors), torch.tensor([float(bool(one.label)) for one in made])


def soft(name: str) -> FactsConverter:
    facts = FactsConverter(compiled(name), DIMENSIONS)
    with torch.no_grad():
        for parameter, value in zip(facts.parameters(), SOFT[name], strict=True):
            parameter.fill_(value)
    return facts


@pytest.mark.parametrize("name", SOFT)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    facts = soft(name).double()
    reasoner = compiled(name).reasoner("reference", inputs="neural", outputs="targets", gamma=0.1)
    objects = figures(name, 0, 2, facts.objects)[0].double() * 0.8 + 0.05
    rows, columns = torch.tensor([0, 2, 3]), torch.tensor([0, 3, 5, 10])  # a few entries of the first image
    names = [key for key, _ in facts.named_parameters()]

    def score(some: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        whole = objects.clone()
        whole[0, rows[:, None], columns] = some
        V0 = torch.func.functional_call(facts, dict(zip(names, parameters, strict=True)), (whole,))
        return reasoner(V0)

    inputs = [objects[0, rows[:, None], columns], *(p.detach().clone() for p in facts.parameters())]
    inputs = [value.clone().requires_grad_() for value in inputs]
    assert torch.autograd.gradcheck(score, inputs, eps=1e-6, atol=1e-5)
    gradients = torch.autograd.grad(score(*inputs).sum(), inputs)
    assert all((gradient != 0).any() for gradient in gradients)


@pytest.mark.parametrize("name", SOFT)
def test_the_engine_in_use_gives_the_same_gradients(name: str) -> None:
    objects, _ = figures(name, 0, 6, 5)

    def gradients(engine: str) -> list[torch.Tensor]:
        facts, mine = soft(name), objects.clone().requires_grad_()
        reasoner = compiled(name).reasoner(engine, inputs="neural", outputs="targets")
        return list(torch.autograd.grad(reasoner(facts(mine)).sum(), [mine, *facts.parameters()]))

    for found, wanted in zip(gradients("auto"), gradients("reference"), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)


def accuracy(facts: FactsConverter, reasoner: Reasoner, objects: torch.Tensor, labels: torch.Tensor) -> float:
    with torch.no_grad():
        return ((reasoner(facts(objects))[:, 0] > 0.5) == (labels > 0.5)).float().mean().item()


def test_closeby_is_learnt_from_pattern_labels_alone() -> None:
    rules = compiled("closeby")
    reasoner = rules.reasoner(inputs="neural", outputs="targets")
    (objects, labels), held_out = figures("closeby", 1, 150, 4), figures("closeby", 2, 150, 4)
    facts = FactsConverter(rules, DIMENSIONS)
    concept_trained = accuracy(facts, reasoner, *held_out)
    w, b = facts.parameters()
    with torch.no_grad():
        w.fill_(-1.0)
        b.fill_(0.0)
    assert accuracy(facts, reasoner, *held_out) < 0.8
    optimiser = torch.optim.Adam([{"params": [w], "lr": 5.0}, {"params": [b], "lr": 0.5}])
    for _ in range(60):
        optimiser.zero_grad()
        score = reasoner(facts(objects))[:, 0].clamp(1e-6, 1 - 1e-6)
        torch.nn.functional.binary_cross_entropy(score, labels).backward()
        optimiser.step()
    assert accuracy(facts, reasoner, *held_out) >= concept_trained > 0.99
    assert 0.107 < (-b / w).item() < 0.236  # no label ever said so
