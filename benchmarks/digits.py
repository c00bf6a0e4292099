"""Digits learnt from sums alone: through a program, by exact probability written in torch, and from digit labels.

    python -m benchmarks.digits [--seeds 5] [--out FILE]

From the checkout, since it trains what examples/digits.py trains, with scikit-learn's digits
(`pip install 'nsfrc[examples]'`). Writes results/digits.csv: for sums of two and of three, each γ and each seed the
share of held-out digits that are named correctly, and what a whole training step costs beside one by exact probability,
in turns, on one thread, in processor time, which other processes of a shared machine disturb least.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from examples import digits as example
from nsfrc.benchmarks.measure import RESULTS, Compared, Timing, compared, timing, write_csv

GAMMAS = (0.01, 0.1)
NEAR = 0.01  # what counts as equally accurate
WARMING, TIMED = 30, 400  # steps


@dataclass(frozen=True)
class Row(Compared):
    """One training. Shares of held-out digits that are named correctly; times are processor seconds of a step."""

    digits: int
    gamma: float
    seed: int
    through_program: float
    exact: float
    labels: float

    @property
    def near(self) -> bool:
        return self.through_program >= max(self.exact, self.labels) - NEAR


def step(data: example.Data, loss_of: example.Loss, digits: int) -> Callable[[], None]:
    """One training step on a batch of the example's size."""
    torch.manual_seed(0)
    network = example.network()
    optimiser = torch.optim.Adam(network.parameters(), lr=example.RATE)
    some = torch.randint(len(data.digits), (example.BATCH, digits))
    pictures, labels = data.pictures[some], data.digits[some]

    def once() -> None:
        optimiser.zero_grad()
        loss_of(network(pictures), labels).backward()
        optimiser.step()

    return once


def timed_in_turns(*steps: Callable[[], None]) -> list[Timing]:
    """Processor time of each, one step of each after the other."""
    seconds: list[list[float]] = [[] for _ in steps]
    for _ in range(WARMING + TIMED):
        for once, found in zip(steps, seconds, strict=True):
            before = time.process_time()
            once()
            found.append(time.process_time() - before)
    return [timing(found[WARMING:]) for found in seconds]


def rows(data: example.Data, seeds: int, epochs: int) -> Iterator[Row]:
    for digits in sorted(example.PROGRAMS):
        exactly = example.through(example.exact)

        def right(loss_of: example.Loss, seed: int, digits: int = digits) -> float:
            return example.train(data, loss_of, digits, epochs, seed)

        baselines = [(right(exactly, seed), right(example.labelled, seed)) for seed in range(seeds)]
        for gamma in GAMMAS:
            mine = example.through(example.Sums(digits, gamma))
            times = timed_in_turns(step(data, mine, digits), step(data, exactly, digits))
            for seed, (exact, labels) in enumerate(baselines):
                yield Row(**compared(times[0], "exact probability in torch", times[1]), digits=digits, gamma=gamma,
                          seed=seed, through_program=right(mine, seed), exact=exact, labels=labels)


def tell(found: list[Row]) -> str:
    """A line for each number of digits and γ."""
    lines = ["sums of   γ      program  exact    labels   near both  a step      exact's step"]
    for key in sorted({(row.digits, row.gamma) for row in found}):
        some = [row for row in found if (row.digits, row.gamma) == key]
        means = "  ".join(f"{statistics.mean(getattr(row, name) for row in some):<7.3f}"
                          for name in ("through_program", "exact", "labels"))
        near = f"{sum(row.near for row in some)} of {len(some)}"
        beside = some[0].baseline_median or 0.0
        steps = f"{1e3 * some[0].median:.2f} ms     {1e3 * beside:.2f} ms"
        lines.append(f"{key[0]:<8}  {key[1]:<5}  {means}  {near:<9}  {steps}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=example.EPOCHS)
    parser.add_argument("--out", type=Path, default=RESULTS / "digits.csv")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = list(rows(example.load(), options.seeds, options.epochs))
    write_csv(options.out, found, first=("digits", "gamma", "seed", "through_program", "exact", "labels"))
    print(f"{tell(found)}\n\nwritten: {options.out}")


if __name__ == "__main__":
    main()
