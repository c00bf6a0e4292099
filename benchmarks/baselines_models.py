"""The networks that the paper compares with, and one training for both: examples [N, …] → a logit [N]."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import click
import torch
from torch import nn

from nsfrc.errors import NsfrcError
from nsfrc.perception.offline import load_ultralytics

HIDDEN, WIDTH = 5, 256  # of the MLP
# ResNet50: width, stride and number of the blocks of every stage; a block gives four times its width.
STAGES = ((64, 1, 3), (128, 2, 4), (256, 2, 6), (512, 2, 3))
EXPANSION = 4


@dataclass(frozen=True)
class Training:
    """AdamW with a rate that falls to nothing in half a cosine, for a fixed number of epochs; no choice among them."""

    epochs: int
    batch: int
    rate: float
    decay: float

    def __str__(self) -> str:
        return f"AdamW, rate {self.rate}, decay {self.decay}, batches of {self.batch}"


@dataclass(frozen=True, eq=False)
class Examples:
    """inputs: [N, …] as a network takes them, or uint8 pixels [N, 3, H, W]; labels: [N], 0 or 1."""

    inputs: torch.Tensor
    labels: torch.Tensor

    def __len__(self) -> int:
        return len(self.labels)


def mlp(entries: int) -> nn.Module:
    """Object vectors, flattened [N, entries] → logits [N, 1]."""
    layers: list[nn.Module] = []
    for inputs in (entries, *[WIDTH] * (HIDDEN - 1)):
        layers += [nn.Linear(inputs, WIDTH), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(WIDTH, 1))


def resnet50() -> nn.Module:
    """Pixels [N, 3, H, W] → logits [N, 1], untrained."""
    load_ultralytics()
    from ultralytics.nn.modules.block import ResNetLayer

    layers: list[nn.Module] = [ResNetLayer(3, 64, is_first=True)]
    channels = 64
    for width, stride, blocks in STAGES:
        layers.append(ResNetLayer(channels, width, s=stride, n=blocks, e=EXPANSION))
        channels = EXPANSION * width
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1))
    for module in net.modules():
        if isinstance(getattr(module, "act", None), nn.SiLU):  # what that package has in place of ReLU
            module.act = nn.ReLU()
    return net


def parameters(net: nn.Module) -> int:
    return sum(one.numel() for one in net.parameters())


def train(build: Callable[[], nn.Module], examples: Examples, training: Training, seed: int, label: str) -> nn.Module:
    """Build a network and train it on shuffled batches; the seed decides weights and order."""
    torch.manual_seed(seed)
    net = build().train()
    batches = math.ceil(len(examples) / training.batch)
    optimiser = torch.optim.AdamW(net.parameters(), training.rate, weight_decay=training.decay, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, training.epochs * batches)
    with click.progressbar(length=training.epochs * batches, label=label, file=sys.stderr) as bar:
        for epoch in range(training.epochs):
            total = 0.0
            for chosen in torch.randperm(len(examples)).split(training.batch):
                logits = net(_numbers(examples.inputs[chosen])).squeeze(1)
                loss = nn.functional.binary_cross_entropy_with_logits(logits, examples.labels[chosen])
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
                schedule.step()
                total += float(loss.detach())
                bar.update(1)
            if not math.isfinite(total):
                raise NsfrcError(f"{label}: the loss of epoch {epoch + 1} is not a number: lower Training.rate")
    return net.eval()


@torch.no_grad()
def accuracy(net: nn.Module, examples: Examples, batch: int = 100) -> float:
    """The share in per cent that a trained network answers correctly."""
    right = 0
    for start in range(0, len(examples), batch):
        logits = net(_numbers(examples.inputs[start:start + batch])).squeeze(1)
        right += int(((logits >= 0) == (examples.labels[start:start + batch] >= 0.5)).sum())
    return 100 * right / len(examples)


def _numbers(inputs: torch.Tensor) -> torch.Tensor:
    """Pixels 0 … 255 → −1 … 1; anything else stays as it is."""
    return inputs.float().div(127.5).sub(1) if inputs.dtype == torch.uint8 else inputs
