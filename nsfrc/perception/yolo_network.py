"""YOLOv5 from the ultralytics package as a plain network: images → box and class logits of every grid cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from nsfrc.perception import yolo_light
from nsfrc.perception.attributes import Attributes
from nsfrc.perception.offline import load_ultralytics

VARIANTS = ("n", "s")
KINDS = ("full", "light", "fine")  # each can begin with what the one before it has learnt
BINS = 16  # a box side is the mean of a distribution over 0 … 15 cells
COARSEST = 32  # pixels of the cells that are largest on the way, of which images have a whole number


@dataclass(frozen=True)
class Cells:
    """What the network says of N grid cells, all scales after each other.

    sides: [B, 4 * BINS, N] logits of the distances to left, top, right, bottom; classes: [B, classes, N] logits;
    centres: [N, 2] x y in pixels; strides: [N] pixels a cell.
    """

    sides: torch.Tensor
    classes: torch.Tensor
    centres: torch.Tensor
    strides: torch.Tensor


def build(variant: str, classes: int, kind: str = "full") -> Any:
    """An untrained YOLOv5 (ultralytics' DetectionModel) of a variant and kind, from torch's random numbers."""
    load_ultralytics()
    from ultralytics.nn.tasks import DetectionModel, yaml_model_load

    outline = yaml_model_load(f"yolov5{variant}.yaml")
    if kind == "full":
        return DetectionModel(outline, ch=3, nc=classes, verbose=False)
    network = DetectionModel(yolo_light.outline(outline), ch=3, nc=classes, verbose=False)
    yolo_light.narrow(network)
    if kind == "fine":
        yolo_light.refine(network)
    return network


def start(network: Any, kind: str, given: Any) -> None:
    """Give a network of a kind what one of the kind before it has learnt."""
    (yolo_light.start_fine if kind == "fine" else yolo_light.start_from)(network, given)


class Combined(torch.nn.Module):
    """Logits of the values of all attributes [B, values, H, W] → of the classes [B, classes, H, W]: their sums.

    A class is one value of every attribute, so what is learnt about a colour serves every shape of that colour.
    """

    def __init__(self, attributes: Attributes) -> None:
        super().__init__()
        self.register_buffer("members", attributes.members(), persistent=False)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return torch.einsum("cv,bvhw->bchw", self.members, values)


def share_values(network: Any, attributes: Attributes) -> None:
    """Let a network of these classes learn the values of their attributes, and the classes from them."""
    values = len(attributes.values)
    for branch in network.model[-1].cv3:
        last = branch[-1]
        learnt = torch.nn.Conv2d(last.in_channels, values, 1)
        torch.nn.init.constant_(learnt.get_parameter("bias"), last.bias[0].item() / len(attributes.groups))
        branch[-1] = torch.nn.Sequential(learnt, Combined(attributes))


def cells(network: Any, images: torch.Tensor) -> Cells:
    """Run the network on images [B, 3, H, W], without the decoding that its own forward adds in eval mode."""
    return placed(*logits(network, images), map_sizes(network, images), images)


def logits(network: Any, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What the head says of all cells: of their sides [B, 4 * BINS, N] and of their classes [B, classes, N]."""
    seen, parts = maps(network, images), network.model[-1].one2many
    sides, classes = ([head(one) for head, one in zip(parts[name], seen, strict=True)]
                      for name in ("box_head", "cls_head"))
    return _joined(sides), _joined(classes)


def _joined(maps: Sequence[torch.Tensor]) -> torch.Tensor:
    """Maps [B, channels, rows, columns] → all their cells [B, channels, N]; of one alone, the same numbers in place."""
    every = [one.flatten(2) for one in maps]
    return every[0] if len(every) == 1 else torch.cat(every, 2)


def maps(network: Any, images: torch.Tensor) -> list[torch.Tensor]:
    """The maps that the head looks at, one for each scale."""
    *layers, head = network.model
    outputs: list[torch.Tensor | None] = []
    x: Any = images
    for layer in layers:
        x = layer(_inputs(layer.f, x, outputs))
        outputs.append(x if layer.i in network.save else None)
    found: list[torch.Tensor] = _inputs(head.f, x, outputs)
    return found


def placed(
    sides: torch.Tensor, classes: torch.Tensor, maps: Sequence[tuple[int, int]], images: torch.Tensor
) -> Cells:
    """Logits of cells in so many rows and columns, with where the cells are in the images."""
    return Cells(sides, classes, *_grid(maps, images.shape[-2], sides))


def map_sizes(network: Any, images: torch.Tensor) -> list[tuple[int, int]]:
    """Rows and columns of the cells that the head speaks of, for images of that size; one pair for each scale."""
    height, width = images.shape[-2:]
    return [(height // int(stride), width // int(stride)) for stride in network.stride]


def _inputs(source: int | list[int], last: Any, outputs: list[torch.Tensor | None]) -> Any:
    """What a layer reads: the layer before it (-1), an earlier one, or several."""
    if isinstance(source, int):
        return last if source == -1 else outputs[source]
    return [last if i == -1 else outputs[i] for i in source]


def _grid(maps: Sequence[tuple[int, int]], height: int, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    centres, strides = [], []
    for rows, columns in maps:
        stride = height / rows
        y = (torch.arange(rows, device=like.device, dtype=like.dtype) + 0.5) * stride
        x = (torch.arange(columns, device=like.device, dtype=like.dtype) + 0.5) * stride
        centres.append(torch.cartesian_prod(y, x).flip(-1))
        strides.append(torch.full((rows * columns,), stride, device=like.device, dtype=like.dtype))
    return torch.cat(centres), torch.cat(strides)


def boxes(found: Cells, which: torch.Tensor) -> torch.Tensor:
    """The boxes of chosen cells [B, K] → x1 y1 x2 y2 in pixels, [B, K, 4]."""
    sides = found.sides.gather(2, which.unsqueeze(1).expand(-1, 4 * BINS, -1))
    likely = sides.unflatten(1, (4, BINS)).softmax(2)
    steps = torch.arange(BINS, device=sides.device, dtype=sides.dtype)
    away = torch.einsum("bsnk,n->bks", likely, steps) * found.strides[which].unsqueeze(-1)
    centres = found.centres[which]
    return torch.cat([centres - away[..., :2], centres + away[..., 2:]], -1)
