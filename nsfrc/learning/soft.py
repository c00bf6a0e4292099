"""The soft step: candidates scored with the compiled reasoner on the values that perception gave.

The search sees what is above or below one half. Where values lie in between, clauses that tie there need not tie here:
weights are trained over the candidates alone, the background being as it is, until labels held out are told no better.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from nsfrc.distributed import backward, copies, leads, mean_of, share, together, total
from nsfrc.learning.evidence import Evidence, FromObjects
from nsfrc.program import Program

if TYPE_CHECKING:
    from nsfrc.valuation import FactsConverter

STEPS, PATIENCE = 120, 15
RATE, CONCEPT_RATE = 0.2, 0.01
INSIDE = 1e-3  # how far scores are moved inside 0 … 1 before a logarithm


def losses(scores: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """The loss of each."""
    inside = INSIDE + (1 - 2 * INSIDE) * scores.clamp(0, 1)
    return torch.nn.functional.binary_cross_entropy(inside, label, reduction="none")


def loss(scores: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    return losses(scores, label).mean()


def bits_told(scores: torch.Tensor, label: torch.Tensor, noise: float) -> float:
    """Bits to tell labels, of which a share is wrong, by scores."""
    chance = noise + (1 - 2 * noise) * scores.clamp(0, 1)
    return float(torch.nn.functional.binary_cross_entropy(chance, label, reduction="sum")) / log(2)


@dataclass(frozen=True)
class Weighed:
    """weights: of each candidate, those of all together 1. bits: to tell all labels with each candidate alone."""

    weights: tuple[float, ...]
    bits: tuple[float, ...]


class Mixture:
    """Weights of the candidates of one head, which labels train; several processes share the examples.

    program, head, column: as in `weigh`. V0: [B, G]; truth: [B], 0 or 1.
    """

    def __init__(self, program: Program, head: str, column: int, V0: torch.Tensor, truth: torch.Tensor) -> None:
        self.reasoner = program.reasoner("cpu", outputs="targets", inputs="neural", candidates=head)
        self.scores, self.column = together(self.reasoner), column
        self.optimiser = torch.optim.Adam(self.reasoner.parameters(), lr=RATE)
        self.own, self.times = share(len(V0)), copies(len(V0))
        self.V0, self.truth = V0[self.own], truth[self.own]

    def step(self, seen: torch.Tensor, checked: torch.Tensor) -> tuple[float, float]:
        """One step by the examples that are seen; the loss of these and of those checked, [B] each, before it."""
        self.optimiser.zero_grad()
        scores = self.scores(self.V0)[:, self.column]
        parts = [mean_of(losses(scores[some[self.own]], self.truth[some[self.own]]), int(some.sum()), self.times)
                 for some in (seen, checked)]
        backward(parts[0])
        self.optimiser.step()
        return float(total(parts[0].detach())), float(total(parts[1].detach()))


def weigh(
    program: Program, alone: Program, head: str, column: int, evidence: Evidence, label: np.ndarray, train: np.ndarray,
    held_out: np.ndarray, noise: float,
) -> Weighed:
    """Train one mixture over the clauses of `head`, and score each by itself.

    program: all candidates as clauses of one head, whose target is output `column`; alone: each with a head and target
    of its own. label [B]: 0 or 1 where `train` or `held_out` say so. noise: the share of labels that may be wrong.
    """
    truth = torch.from_numpy(np.nan_to_num(label)).float()
    seen, checked = torch.from_numpy(train), torch.from_numpy(held_out if held_out.any() else train)
    with torch.no_grad():
        each = alone.reasoner("cpu", outputs="targets", inputs="neural")(evidence.valuation(alone).float())
        known = torch.from_numpy(train | held_out)
        told = [bits_told(each[known, i], truth[known], noise) for i in range(each.shape[1])]
    V0 = evidence.valuation(program).float()
    mixture = Mixture(program, head, column, V0, truth)
    reasoner = mixture.reasoner
    best, kept, idle = float("inf"), reasoner.clause_weights.detach().clone(), 0
    for _ in range(STEPS):
        _, now = mixture.step(seen, checked)
        if now < best - 1e-5:
            best, kept, idle = now, reasoner.clause_weights.detach().clone(), 0
        else:
            idle += 1
            if idle >= PATIENCE:
                break
    assert reasoner.candidates is not None
    mixed = torch.softmax(reasoner.candidates.rows(kept), dim=1)[0, list(reasoner.candidates.columns[0])]
    return Weighed(tuple(mixed.tolist()), tuple(told))


def threshold(scores: np.ndarray, label: np.ndarray) -> float:
    """From where on a score means true: the best cut of some labelled examples, 0.5 where that is as good."""
    cuts = np.unique(np.concatenate([[0.5], (np.sort(scores)[1:] + np.sort(scores)[:-1]) / 2]))
    right = np.array([((scores >= cut) == (label > 0.5)).sum() for cut in cuts])
    if right[cuts == 0.5][0] == right.max():
        return 0.5
    good = cuts[right == right.max()]
    return float(round(float(good[len(good) // 2]), 4))


def train_concepts(
    program: Program, evidence: FromObjects, labels: Sequence[np.ndarray], train: np.ndarray, held_out: np.ndarray,
    out: Path, made_by: dict[str, object],
) -> tuple[float, float]:
    """Adjust concepts and temperatures to the labels through the learnt rules, and write them; the loss on labels held
    out before and after. Early stopping keeps the best; where nothing helps, they stay as they were."""
    facts = evidence.converter(program)
    reasoner = program.reasoner("cpu", outputs="targets", inputs="neural")
    truth = torch.from_numpy(np.nan_to_num(np.stack(labels, axis=1))).float()
    seen, checked = torch.from_numpy(train), torch.from_numpy(held_out if held_out.any() else train)
    parameters = [p for p in facts.parameters() if p.requires_grad]
    optimiser = torch.optim.Adam(parameters, lr=CONCEPT_RATE)
    scores = together(torch.nn.Sequential(facts, reasoner), some_unused=True)
    objects, wanted = evidence.objects[seen], truth[seen]
    own, times = share(len(wanted)), copies(len(wanted))
    start = best = _loss_of(facts, reasoner, evidence, truth, checked)
    kept, idle = copy.deepcopy(facts.state_dict()), 0
    for _ in range(STEPS):
        optimiser.zero_grad()
        backward(mean_of(losses(scores(objects[own]), wanted[own]), wanted.numel(), times))
        optimiser.step()
        now = _loss_of(facts, reasoner, evidence, truth, checked)
        if now < best - 1e-6:
            best, kept, idle = now, copy.deepcopy(facts.state_dict()), 0
        else:
            idle += 1
            if idle >= PATIENCE:
                break
    facts.load_state_dict(kept)
    if leads():
        facts.save_concepts(out, dict(made_by))
    return start, best


@torch.no_grad()
def _loss_of(facts: FactsConverter, reasoner: torch.nn.Module, evidence: FromObjects, truth: torch.Tensor,
             some: torch.Tensor) -> float:
    return float(loss(reasoner(facts(evidence.objects[some])), truth[some]))
