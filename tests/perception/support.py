"""A small detector whose random weights find something, a place to keep it, and trainings that are interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from nsfrc.perception import weights, yolo_network
from nsfrc.perception.yolo import Yolo
from nsfrc.perception.yolo_network import BINS
from nsfrc.training.run import Run


def random_yolo(objects: int = 6, size: int = 64, floor: float = 0.1, seed: int = 0) -> Yolo:
    """An untrained network made lively: its last layers say something else everywhere."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Yolo(objects, size=(size, size), floor=floor).eval()
        for name, buffer in model.named_buffers():
            if name.endswith("running_var"):
                buffer.fill_(0.02)  # an untrained network lets almost nothing through
        with torch.no_grad():
            said = yolo_network.cells(model.network, torch.rand(4, 3, size, size))
            head = model.network.model[-1]
            for sides, classes in zip(head.cv2, head.cv3, strict=True):
                classes[-1].weight.mul_(2 / said.classes.std())
                classes[-1].bias.fill_(0)
                sides[-1].weight.mul_(1 / said.sides.std())
                sides[-1].bias.copy_(-torch.arange(BINS).repeat(4) * 0.6)  # boxes of a few cells, within the image
    return model


def said_by_ultralytics(network: Any, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What the head says of all cells, put together by ultralytics' own code."""
    head = network.model[-1]
    said = head.forward_head(yolo_network.maps(network, images), **head.one2many)
    return said["boxes"], said["scores"]


def stored(detector: Yolo, path: Path, **changes: object) -> Path:
    """The file that a training would write for a model."""
    return weights.save(path, detector.state_dict(), {**detector.header(), **changes})


@contextmanager
def interrupted_after_an_epoch() -> Iterator[None]:
    """Every training that begins here is stopped, as by Ctrl-C, when its second epoch begins."""
    epoch, done = Run.one_epoch, []

    def interrupted(self: Run[Any], *rest: Any) -> float:
        if done:
            raise KeyboardInterrupt
        done.append(True)
        return epoch(self, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "one_epoch", interrupted)
        yield
