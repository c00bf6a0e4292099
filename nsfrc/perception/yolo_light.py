"""Light and fine YOLOv5: what figures and scenes need of it, at half the work.

At the sizes that nsfrc looks at, every object is found in the finest of YOLOv5's three scales: trained, the other two
say nothing of any picture. So a light network has the finest scale alone. Where most of the remaining work is, a
convolution

    64 channels ──3×3──▶ 64 channels                       36,864 products a cell

becomes one to fewer channels and one from these to as many as before, of which it can be made by splitting its matrix:

    64 channels ──3×3──▶ 16 channels ──1×1──▶ 64 channels   10,240 products a cell

Its cells are eight pixels wide, and of two small shapes whose middles are in one cell it sees one. A fine network is a
light one whose head cuts every cell in four before the last of its larger convolutions, which has no more products on
four times as many cells with a quarter of the channels:

    24 × 24 cells, 64 channels ──▶ 48 × 48 cells, 16 channels ──3×3──▶ 16 channels
"""

from __future__ import annotations

import re
from typing import Any

import torch

from nsfrc.errors import NsfrcError

FINEST = 17  # the layer whose map the finest scale looks at
CUT = 2  # cells of a fine network for one of a light one, each way
NARROWED = re.compile(r"model\.(5|7|(6|8|13)\.m\.\d+\.cv2|18\.cv[23]\.0\.[01])")  # 18 is the head

ENDS = re.compile(r"model\.18\.cv[23]\.0\.[12]\.")  # of the head: what a fine network has in its own way


def outline(full: dict[str, Any]) -> dict[str, Any]:
    """ultralytics' description of a YOLOv5 → that of one with the finest scale alone."""
    layers = len(full["backbone"])
    return full | {"head": [*full["head"][: FINEST + 1 - layers], [[FINEST], 1, "Detect", ["nc"]]]}


def rank(channels: int) -> int:
    """Between how many channels a convolution to so many is split: a quarter, in whole vectors of 16."""
    return max(16, channels // 64 * 16)


def narrow(network: Any) -> None:
    """Split the convolutions of a network of the finest scale; new ones have new weights."""
    for name, conv in _narrowed(network):
        parent, _, place = name.rpartition(".")
        parts = _parts(conv)
        for note in ("i", "f", "type", "np"):  # where ultralytics notes what a layer of the model reads
            if hasattr(conv, note):
                setattr(parts, note, getattr(conv, note))
        setattr(network.get_submodule(parent), place, parts)


def _narrowed(network: Any) -> list[tuple[str, Any]]:
    return [(name, part) for name, part in network.named_modules() if NARROWED.fullmatch(name)]


def _parts(conv: Any) -> torch.nn.Sequential:
    """Two convolutions in place of one of ultralytics' (with its normalisation and activation)."""
    given = conv.conv
    between = rank(given.out_channels)
    first = torch.nn.Conv2d(given.in_channels, between, given.kernel_size, given.stride, given.padding, bias=False)
    second = type(conv)(between, given.out_channels, 1)
    second.bn.eps, second.bn.momentum = conv.bn.eps, conv.bn.momentum
    return torch.nn.Sequential(first, second)


def refine(network: Any) -> None:
    """Cut the cells of a light network; new convolutions have new weights."""
    head = network.model[-1]
    for branch in (*head.cv2, *head.cv3):
        before, last = branch[1][1], branch[2]
        given = branch[0][1].conv.out_channels
        if given % CUT**2:
            raise NsfrcError(f"a fine network cannot have {last.out_channels} classes, as its head cuts {given} "
                             f"channels in {CUT**2}: use --network light")
        channels = given // CUT**2
        conv = type(before)(channels, channels, 3)
        conv.bn.eps, conv.bn.momentum = before.bn.eps, before.bn.momentum
        branch[1] = torch.nn.Sequential(torch.nn.PixelShuffle(CUT), conv)
        branch[2] = torch.nn.Conv2d(channels, last.out_channels, 1)
    head.stride = network.stride = head.stride / CUT
    head.bias_init()


@torch.no_grad()
def start_fine(fine: Any, light: Any) -> None:
    """Give a fine network what a light one with the same classes has learnt, all but the ends of its head."""
    known = light.state_dict()
    for name, place in fine.state_dict().items():
        if not ENDS.match(name):
            place.copy_(known[name])


@torch.no_grad()
def start_from(light: Any, full: Any) -> None:
    """Give a light network what a full one with the same classes has learnt, as far as it fits."""
    head = len(full.model) - 1
    known = {_light_name(name, head): tensor for name, tensor in full.state_dict().items()}
    for name, place in light.state_dict().items():
        if name in known:
            place.copy_(known[name])
    for name, (first, second) in _narrowed(light):
        parts = _split(known[f"{name}.conv.weight"], first.out_channels)
        for conv, part in zip((first, second.conv), parts, strict=True):
            conv.weight.copy_(part)
        for note, tensor in second.bn.state_dict().items():
            tensor.copy_(known[f"{name}.bn.{note}"])


def _light_name(name: str, head: int) -> str:
    """What a tensor of a full network is called in a light one, whose head is the layer after FINEST."""
    return re.sub(rf"^model\.{head}\.", f"model.{FINEST + 1}.", name)


def _split(weight: torch.Tensor, between: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights [out, in, k, k] → [between, in, k, k] and [out, between, 1, 1] whose product is nearest to them."""
    left, sizes, right = torch.linalg.svd(weight.flatten(1).double(), full_matrices=False)
    root = sizes[:between].sqrt()
    first = (root[:, None] * right[:between]).reshape(between, *weight.shape[1:])
    second = (left[:, :between] * root).reshape(len(weight), between, 1, 1)
    return first.to(weight), second.to(weight)
