"""Handwritten digits learnt from their sums: no picture is ever labelled, only what two of them add up to.

    python -m examples.digits [--digits 3] [--gamma 0.1] [--baseline]

The pictures are scikit-learn's, 8 × 8 pixels (`pip install 'nsfrc[examples]'`). A small network says how likely each of
the ten digits is; a program of one clause adds them; the loss is the negative logarithm of the right sum's share of all
scores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

import nsfrc

PROGRAM = """
:- type(picture, [a, b]).
:- type(digit, 0..9).
:- type(total, 0..18).
:- neural(digit(picture, digit)).
:- pred(sum(picture, picture, total)).
:- target(sum(a, b, _)).

sum(A, B, N) :- digit(A, X), digit(B, Y), N is X + Y.
"""
PROGRAM_OF_THREE = """
:- type(picture, [a, b, c]).
:- type(digit, 0..9).
:- type(total, 0..27).
:- neural(digit(picture, digit)).
:- pred(sum(picture, picture, picture, total)).
:- target(sum(a, b, c, _)).

sum(A, B, C, N) :- digit(A, X), digit(B, Y), digit(C, Z), N is X + Y + Z.
"""
PROGRAMS = {2: PROGRAM, 3: PROGRAM_OF_THREE}
BATCH, EPOCHS, RATE, SMALL = 32, 16, 0.003, 1e-6
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # of outputs [B, pictures, 10] and digits [B, pictures]


@dataclass(frozen=True)
class Data:
    """Pictures [N, 64] from 0 to 1 and their digits [N], which sums are made of and the final test is about."""

    pictures: torch.Tensor
    digits: torch.Tensor

    def some(self, which: torch.Tensor) -> Data:
        return Data(self.pictures[which], self.digits[which])


def load() -> Data:
    """scikit-learn's 1,797 digits."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        sys.exit("this example needs the digits of scikit-learn: pip install 'nsfrc[examples]'")
    found = load_digits()
    return Data(torch.tensor(found.data / 16, dtype=torch.float32), torch.tensor(found.target))


class Sums(nn.Module):
    """How likely each digit is in each picture [B, pictures, 10] → the score of every sum [B, sums]."""

    start: torch.Tensor

    def __init__(self, digits: int, gamma: float) -> None:
        super().__init__()
        program = nsfrc.compile(source=PROGRAMS[digits], name="digits")
        self.reasoner = program.reasoner(inputs="neural", outputs="targets", gamma=gamma)
        # digit(a,0) … digit(a,9), then those of b: the order of the network's outputs.
        self.columns = [column for picture in "abc"[:digits] for column in program.columns(f"digit({picture}, X)")]
        self.register_buffer("start", program.valuation({}))

    def forward(self, likely: torch.Tensor) -> torch.Tensor:
        V0 = self.start.repeat(len(likely), 1)
        V0[:, self.columns] = likely.flatten(1)
        return self.reasoner(V0)


def exact(likely: torch.Tensor) -> torch.Tensor:
    """As `Sums`, but the exact probability of every sum, in torch, one picture after the other."""
    total = likely[:, 0]
    for one in likely.unbind(1)[1:]:
        rows, sums = total.shape[1], total.shape[1] + 9
        both = nn.functional.pad(total[:, :, None] * one[:, None], (0, rows))  # [B, rows, sums + 1]
        total = both.flatten(1)[:, :-rows].reshape(-1, rows, sums).sum(1)  # each row is one further right: x + y
    return total


def sum_loss(scores: torch.Tensor, totals: torch.Tensor) -> torch.Tensor:
    """Scores [B, sums] and the right sums [B]: one of the sums holds, so the right one should have all of the score."""
    scores = scores + SMALL  # and not clamp, which has no gradient below its end
    return -(scores.gather(1, totals[:, None])[:, 0] / scores.sum(1)).log().mean()


def through(layer: Callable[[torch.Tensor], torch.Tensor]) -> Loss:
    """A loss that looks at the sums of the digits alone."""
    return lambda outputs, digits: sum_loss(layer(outputs.softmax(-1)), digits.sum(1))


def labelled(outputs: torch.Tensor, digits: torch.Tensor) -> torch.Tensor:
    """The loss of one who is told every digit."""
    return nn.functional.cross_entropy(outputs.flatten(0, 1), digits.flatten())


def network() -> nn.Module:
    """Pictures [..., 64] → outputs [..., 10], of which a soft-max is taken."""
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def train(data: Data, loss_of: Loss, digits: int, epochs: int, seed: int) -> float:
    """The share of held-out pictures that are named correctly after training on groups of this many others."""
    torch.manual_seed(seed)
    order = torch.randperm(len(data.digits))
    count = len(order) * 3 // 4
    known, held_out = data.some(order[:count]), data.some(order[count:])
    model = network()
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    for _ in range(epochs):
        groups = torch.cat([torch.randperm(count) for _ in range(4)])  # every picture in four groups
        for some in groups[: len(groups) // digits * digits].view(-1, digits).split(BATCH):
            optimiser.zero_grad()
            loss_of(model(known.pictures[some]), known.digits[some]).backward()
            optimiser.step()
    with torch.no_grad():
        return (model(held_out.pictures).argmax(-1) == held_out.digits).float().mean().item()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--digits", type=int, choices=sorted(PROGRAMS), default=2, help="how many are added (2)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gamma", type=float, default=0.01, help="how soft a soft-or is (0.01)")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--baseline", action="store_true", help="also train by exact probability and on labels")
    options = parser.parse_args(arguments)
    data = load()
    try:
        ways = {"sums alone, through the program": through(Sums(options.digits, options.gamma))}
    except nsfrc.NsfrcError as error:
        sys.exit(str(error))
    if options.baseline:
        ways |= {"sums alone, exact probability": through(exact), "a label for every digit": labelled}
    print(f"Held-out digits that are recognised correctly, learnt from sums of {options.digits}:")
    for way, loss_of in ways.items():
        right = train(data, loss_of, options.digits, options.epochs, options.seed)
        print(f"  {right:.1%}  {way}")


if __name__ == "__main__":
    main()
