"""Learning what "much larger" means: from labelled pairs, and from nothing but the answers of a rule.

    python -m examples.learn_a_concept [file for what is learnt]

The one who labels calls an object much larger than another if its box has more than three times the area. Nobody tells
the program: its neural predicate is σ(w·log(area ratio) + b), and w and b are learnt. They are kept as JSON.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch.nn.functional import binary_cross_entropy

import nsfrc
from nsfrc.valuation import FactsConverter

PROGRAM = """
:- type(image, [img]).
:- type(object, slots(4)).
:- neural(in(object, image)).
:- neural(much_larger(object, object)).
:- target(giant(img)).

giant(X) :- in(A, X), in(B, X), much_larger(A, B).
"""
DIMENSIONS = ("x1", "y1", "x2", "y2", "objectness")
TIMES = 3.0  # what the labels mean by "much larger"


@nsfrc.neural_predicate("much_larger")
class MuchLarger(torch.nn.Module):
    """A class, so that every facts converter has parameters of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = torch.nn.Parameter(torch.tensor(1.0)), torch.nn.Parameter(torch.tensor(0.0))

    def forward(self, a, b):
        areas = [(o["x2"] - o["x1"]) * (o["y2"] - o["y1"]) for o in (a, b)]  # each [B, N]
        return torch.sigmoid(self.w * (areas[0] / areas[1]).log() + self.b)


def scenes(count: int, seed: int) -> torch.Tensor:
    """Object vectors [count, 4, 5]: boxes whose areas differ little or much."""
    generator = torch.Generator().manual_seed(seed)
    spread = 0.25 + 0.75 * torch.rand(count, 1, generator=generator)
    side = 0.12 * torch.exp(0.7 * spread * torch.randn(count, 4, generator=generator)).clamp(0.3, 3)
    corner = 0.6 * torch.rand(count, 4, 2, generator=generator)
    return torch.cat([corner, corner + side[..., None], torch.ones(count, 4, 1)], dim=2)


def ratios(objects: torch.Tensor) -> torch.Tensor:
    """Area of object i over area of object j: [count, 4, 4]."""
    area = (objects[..., 2] - objects[..., 0]) * (objects[..., 3] - objects[..., 1])
    return area[:, :, None] / area[:, None, :]


def fit(parameters, loss, steps: int) -> None:
    optimiser = torch.optim.Adam(parameters, lr=0.1)
    for _ in range(steps):
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()


def spoken(facts: FactsConverter) -> str:
    w, b = facts.parameters()
    return f"w = {w.item():.2f}, b = {b.item():.2f}: much larger from {torch.exp(-b / w).item():.2f} times the area on"


def main() -> None:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/much_larger.json")
    program = nsfrc.compile(source=PROGRAM, name="giant")
    reasoner = program.reasoner(inputs="neural", outputs="targets")
    objects, held_out = scenes(400, seed=0), scenes(1000, seed=1)
    answers = (ratios(objects).amax(dim=(1, 2)) > TIMES).float()
    held_out_answers = ratios(held_out).amax(dim=(1, 2)) > TIMES

    def accuracy(facts: FactsConverter) -> str:
        with torch.no_grad():
            right = (reasoner(facts(held_out))[:, 0] > 0.5) == held_out_answers
        return f"giant(img) right in {right.float().mean().item():.1%} of {len(held_out)} scenes that were held out"

    facts = FactsConverter(program, DIMENSIONS)
    print(f"before learning      {spoken(facts)}\n                     {accuracy(facts)}")

    # From labelled pairs: the first two objects of every scene, and a label that says whether the first is much larger.
    labels, column = (ratios(objects)[:, 0, 1] > TIMES).float(), program.index("much_larger(obj1,obj2)")
    fit(facts.parameters(), lambda: binary_cross_entropy(facts(objects)[:, column], labels), 300)
    facts.save_concepts(out, made_by={"script": "examples.learn_a_concept", "labelled pairs": len(labels)})
    print(f"from labelled pairs  {spoken(facts)}")
    again = FactsConverter(program, DIMENSIONS, parameters=out)  # as nsfrc.pipeline(…, concepts=out) would read it
    print(f"                     read from {out}: {accuracy(again)}")

    # From answers alone: one label per scene, not saying which objects it is about. Gradients go through the rule.
    facts = FactsConverter(program, DIMENSIONS)
    fit(facts.parameters(), lambda: binary_cross_entropy(0.001 + 0.998 * reasoner(facts(objects))[:, 0], answers), 300)
    print(f"from answers alone   {spoken(facts)}\n                     {accuracy(facts)}")


if __name__ == "__main__":
    main()
