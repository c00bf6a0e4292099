"""A network that learns to see from the answers of rules alone: no object is ever labelled.

    python -m examples.train_through_rules

Scenes are three little pictures of squares, circles and triangles. Two rules ask something of a scene, and their
answers are all that is known of it. A small network is trained through the rules, from its random start. Then a rule
itself: which of four clauses the answers follow is learnt, with a weight for each.
"""

from __future__ import annotations

import torch
from torch import nn

import nsfrc

SIDE, SHAPES = 12, ("square", "circle", "triangle")
VOCABULARY = """
:- type(object, slots(3)).
:- type(shape, [square, circle, triangle]).
:- neural(shape(object, shape)).
:- target(pair).
"""
RULES = """
pair :- shape(A, circle), shape(B, circle).

:- target(mixed).
mixed :- shape(A, square), shape(B, circle).
"""
CANDIDATES = """
pair :- shape(A, square), shape(B, square).
pair :- shape(A, circle), shape(B, circle).
pair :- shape(A, square), shape(B, triangle).
pair :- shape(A, circle), shape(B, circle), shape(C, circle).
"""


def pictures(shapes: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A noisy drawing of each shape [B, 3], of some size and somewhere: [B, 3, SIDE, SIDE]."""
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    middle = SIDE / 2 - 0.5 + 2 * torch.rand(2, *shapes.shape, 1, 1, generator=generator) - 1
    half = 3.2 + 1.3 * torch.rand(*shapes.shape, 1, 1, generator=generator)
    x, y = (x - middle[0]) / half, (y - middle[1]) / half
    drawn = torch.stack([torch.maximum(x.abs(), y.abs()) < 0.9, x**2 + y**2 < 1, (y < 0.9) & (2 * x.abs() - y < 0.9)])
    chosen = drawn.float().gather(0, shapes[None, ..., None, None].expand(1, *x.shape))[0]
    return chosen + 0.1 * torch.randn(chosen.shape, generator=generator)


def scenes(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pictures [count, 3, SIDE, SIDE], answers [count, 2], and shapes [count, 3], which are for the final test only."""
    generator = torch.Generator().manual_seed(seed)
    shapes = torch.randint(3, (count, 3), generator=generator)
    squares, circles = ((shapes == k).sum(dim=1) for k in (0, 1))
    answers = torch.stack([circles >= 2, (squares >= 1) & (circles >= 1)], dim=1).float()
    return pictures(shapes, generator), answers, shapes


def compiled(text: str) -> nsfrc.Program:
    return nsfrc.compile(source=VOCABULARY + text, name="shapes")


class Facts(nn.Module):
    """Pictures [B, 3, SIDE, SIDE] → V0 [B, G]: a network's soft-max becomes the values of shape(obj1,square), …"""

    start: torch.Tensor

    def __init__(self, program: nsfrc.Program, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.columns = [program.index(f"shape(obj{i},{shape})") for i in (1, 2, 3) for shape in SHAPES]
        self.register_buffer("start", program.valuation({}))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        V0 = self.start.repeat(len(images), 1)
        V0[:, self.columns] = self.network(images.reshape(-1, 1, SIDE, SIDE)).softmax(dim=1).reshape(len(images), -1)
        return V0


def train(model: nn.Module, images: torch.Tensor, answers: torch.Tensor, epochs: int, rate: float) -> None:
    """An ordinary training loop, in which the program is a layer like any other."""
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=rate)
    for epoch in range(1, epochs + 1):
        losses = []
        for some in torch.randperm(len(images)).split(50):
            optimiser.zero_grad()
            loss = nn.functional.binary_cross_entropy(0.001 + 0.998 * model(images[some]), answers[some])
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        if epoch % 2 == 0:
            print(f"  epoch {epoch:>2}  loss {sum(losses) / len(losses):.3f}")


def main() -> None:
    torch.manual_seed(0)
    (images, answers, _), (new_images, new_answers, new_shapes) = scenes(2000, seed=1), scenes(1000, seed=2)

    print(f"A network trained on {len(images)} scenes through two rules, from their answers:")
    network = nn.Sequential(nn.Conv2d(1, 8, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(),
                            nn.Flatten(), nn.Linear(16 * 2 * 2, len(SHAPES)))
    program = compiled(RULES)
    model = nn.Sequential(Facts(program, network), program.reasoner(inputs="neural", outputs="targets"))
    train(model, images, answers, epochs=10, rate=0.005)
    with torch.no_grad():
        right = (model(new_images) > 0.5) == (new_answers > 0.5)
        seen = network(new_images.reshape(-1, 1, SIDE, SIDE)).argmax(dim=1) == new_shapes.flatten()
    for target, share in zip(program.targets, right.float().mean(dim=0).tolist(), strict=True):
        print(f"  {target} is right in {share:.1%} of {len(right)} new scenes")
    print(f"  of their {len(seen)} shapes, which nobody labelled, {seen.float().mean().item():.1%} are named correctly")

    print("\nWhich of four clauses the answers to pair follow, with what the network sees now:")
    program = compiled(CANDIDATES)
    weights = nn.Parameter(torch.zeros(1, len(program.clauses)))  # a soft-max over the clauses is taken of it
    reasoner = program.reasoner(inputs="neural", outputs="targets", clause_weights=weights)
    train(nn.Sequential(Facts(program, network.requires_grad_(False)), reasoner), images, answers[:, :1], 4, rate=0.1)
    for clause, weight in zip(program.clauses, weights.softmax(dim=1)[0].tolist(), strict=True):
        print(f"  {weight:.3f}  {clause}")


if __name__ == "__main__":
    main()
