"""What decides which weights a training of perception ends in, and what is usual for each model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from nsfrc.errors import NsfrcError

LAST_RATE = 0.01  # of the learning rate, at the end of the cosine
ALL = 1_000_000
LOOKS = {"plain": "kandinsky", "varied": "varied"}  # of the figures that are drawn, and the data they are called as
LOOK_OF = {data: looks for looks, data in LOOKS.items()}


@dataclass(frozen=True)
class Options:
    """Of every training. data: the name of what is drawn, or a folder of CLEVR scenes; figures: how many, at most."""

    data: str
    figures: int
    epochs: int
    size: int
    batch_size: int
    lr: float
    seed: int

    warm_up: ClassVar[int]  # batches

    @property
    def steps(self) -> int:
        """Batches of the whole run."""
        return self.epochs * math.ceil(self.figures / self.batch_size)

    def rate(self, step: int) -> float:
        """The learning rate of a batch, counted from 0: up a line, then down a cosine."""
        warm = min(self.warm_up, max(1, self.steps // 5))
        if step < warm:
            return self.lr * (step + 1) / warm
        done = (step - warm) / max(1, self.steps - warm)
        return self.lr * (LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * done)) / 2)

    def check(self) -> None:
        """Refuse what makes no sense for any model."""
        if min(self.figures, self.epochs, self.batch_size) < 1:
            raise NsfrcError("figures, epochs and batch size must be above 0")
        if not 0 < self.lr < math.inf:
            raise NsfrcError(f"the learning rate must be above 0, and a number, not {self.lr}")


@dataclass(frozen=True)
class DetectorOptions(Options):
    """data: see LOOKS. variant: the size of YOLOv5; network: all of it, "full", what is needed of it, "light", or that
    with smaller cells, "fine".

    start: the checksum of weights to start from.
    """

    data: str = "kandinsky"
    variant: str = "n"
    network: str = "light"
    start: str = ""
    figures: int = 8000
    epochs: int = 18
    size: int = 192
    batch_size: int = 16
    lr: float = 2e-3
    seed: int = 0

    warm_up = 300


@dataclass(frozen=True)
class SlotOptions(Options):
    """slots: as many things as a scene may have; iterations: of the attention."""

    data: str = ""
    figures: int = ALL
    epochs: int = 200
    size: int = 128
    batch_size: int = 32
    lr: float = 4e-4
    seed: int = 0
    slots: int = 10
    iterations: int = 3

    warm_up = 1000  # attention that is led astray at first seldom finds back

    def check(self) -> None:
        super().check()
        if min(self.slots, self.iterations) < 1:
            raise NsfrcError("slots and iterations must be above 0")
        if self.size < 16:
            raise NsfrcError(f"pictures of {self.size} px are too small to see things in; 128 is usual")


# What is usual for each model. One without `data` learns from a folder, which has no usual place.
MODELS: dict[str, Options] = {
    "yolo": DetectorOptions(network="fine"),
    "yolo_clevr": DetectorOptions(data="", figures=ALL, epochs=32, size=288),
    "slot_attention": SlotOptions(),
}
