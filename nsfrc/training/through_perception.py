"""A detector's attributes learnt through rules: labels of whole images say which colours and shapes its objects have.

Where objects are and how sure they are stays as it was. Only the last layers of the attributes are trained, so the
detector looks once, and what these layers see of each object is kept. Rules are taken as `anchored`, whose gradients
teach (docs/training.md), whatever semantics the program has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nsfrc.compiler import ir
from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import Item, Listing
from nsfrc.inference.images import to_tensor
from nsfrc.inference.predictor import decode
from nsfrc.inference.session import Session
from nsfrc.perception import weights as files
from nsfrc.perception import yolo_network
from nsfrc.perception.yolo import Yolo
from nsfrc.program import Program, compile
from nsfrc.training.through_rules import held_out, labelled_items, right_answers
from nsfrc.valuation import FactsConverter

EPOCHS, BATCH, RATE = 60, 25, 0.02
WARM, WARM_SHARE = 4.0, 0.5  # logits are divided by that at first, so that a sure mistake has a gradient
SAMPLED = 20  # cells of each image that are watched for objects where none were
NOTHING_NEW, STILL_THERE = 20.0, 0.05  # weights of: no objects elsewhere, and those found stay as sure
INSIDE = 1e-3


@dataclass(frozen=True, eq=False)
class Views:
    """What the last layers see, of N images: objects [N, E, …], and some other cells [N, SAMPLED, …].

    features: [..., C], scale: which layer [...], logits: of the classes, as they were [..., classes]; boxes, sure: of
    the objects, 0 where there is none. truth: [N, targets], NaN where it is not known.
    """

    features: torch.Tensor
    scale: torch.Tensor
    logits: torch.Tensor
    boxes: torch.Tensor
    sure: torch.Tensor
    other_features: torch.Tensor
    other_scale: torch.Tensor
    other_logits: torch.Tensor
    truth: torch.Tensor

    def __len__(self) -> int:
        return len(self.truth)

    def at(self, places: torch.Tensor) -> Views:
        return Views(*(getattr(self, name)[places] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Taught:
    """What came of it. before, after: the share of answers that are right, of images held out and of the others."""

    images: int
    held_out: int
    epochs: int
    before: tuple[float, float]
    after: tuple[float, float]


def last_layers(model: Yolo) -> list[torch.nn.Conv2d]:
    """The layers that tell attributes, one for each scale."""
    found: list[Any] = []
    for branch in model.network.model[-1].cv3:
        found.append(branch[-1][0] if isinstance(branch[-1], torch.nn.Sequential) else branch[-1])
    return found


def detector_of(session: Session) -> Yolo:
    model = session.pipe.perception
    if not isinstance(model, Yolo):
        raise NsfrcError(f"{session.perception} has no attributes that could be learnt through rules: yolo and "
                         f"yolo_clevr have")
    return model


def views(session: Session, listing: Listing, seed: int = 0) -> Views:
    """Look at all images that have a label. Raises NsfrcError where there are too few of them."""
    model = detector_of(session)
    items = labelled_items(session, listing)
    truth = right_answers(session, items)
    rng = torch.Generator().manual_seed(seed)
    parts = [_seen(model, images, rng) for images in _images(model, items)]
    whole: list[torch.Tensor] = [*(torch.cat(several) for several in zip(*parts, strict=True)), truth]
    return Views(*whole)


def _images(model: Yolo, items: Sequence[Item]) -> Iterator[torch.Tensor]:
    for first in range(0, len(items), model.piece):
        pixels = []
        for item in items[first : first + model.piece]:
            decoded = decode(item, model.size, model.fit, False)
            if decoded.picture is None:
                raise NsfrcError(f"{item.name}: {decoded.error}; take it out, or replace it")
            pixels.append(decoded.picture.pixels)
        yield to_tensor(pixels)


@torch.no_grad()
def _seen(model: Yolo, images: torch.Tensor, rng: torch.Generator) -> tuple[torch.Tensor, ...]:
    """The parts of `Views` without labels."""
    found, features, scale = _cells(model, images)
    chosen, cells, keep = model.choose(found, images.shape[2:])
    boxes, sure = chosen[..., :4], chosen[..., -1]
    others = torch.randint(features.shape[1], (len(images), SAMPLED), generator=rng)
    classes = found.classes.transpose(1, 2)
    return (_taken(features, cells), scale[cells], _taken(classes, cells), boxes * keep.unsqueeze(-1), sure * keep,
            _taken(features, others), scale[others], _taken(classes, others))


def _taken(values: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
    """values [B, cells, D] at cells [B, K]."""
    return values.gather(1, cells.unsqueeze(-1).expand(-1, -1, values.shape[-1]))


def _cells(model: Yolo, images: torch.Tensor) -> tuple[yolo_network.Cells, torch.Tensor, torch.Tensor]:
    """The cells, what the last layers see of them [B, cells, C], and which of these layers does [cells]."""
    kept: list[torch.Tensor] = []
    hooks = [layer.register_forward_pre_hook(lambda module, given: kept.append(given[0]))
             for layer in last_layers(model)]
    try:
        found = yolo_network.cells(model.network, images)
    finally:
        for hook in hooks:
            hook.remove()
    features = torch.cat([one.flatten(2).transpose(1, 2) for one in kept], 1)
    scale = torch.cat([torch.full((one.shape[2] * one.shape[3],), i) for i, one in enumerate(kept)])
    return found, features, scale


def anchored(program: Program) -> Program:
    """The same rules under `anchored`."""
    source = program.source
    return program if program.anchored else compile(
        replace(source, settings=replace(source.settings, semantics=ir.ANCHORED)))


class Heads(torch.nn.Module):
    """What is added to the values of attributes, by scale: U [scales, values, C] · features + b [scales, values].

    A class is one value of every attribute, so what is learnt of a colour serves every shape of that colour.
    """

    members: torch.Tensor

    def __init__(self, model: Yolo, program: Program) -> None:
        super().__init__()
        layers = last_layers(model)
        self.U = torch.nn.Parameter(torch.zeros(len(layers), len(model.attributes.values), layers[0].in_channels))
        self.b = torch.nn.Parameter(torch.zeros(len(layers), len(model.attributes.values)))
        self.register_buffer("members", model.attributes.members())
        self.attributes = model.attributes
        self.facts = FactsConverter(program, model.dimensions).requires_grad_(False)
        self.reasoner = program.reasoner(outputs="targets", inputs="neural")
        self.of_classes = [one.of_classes for one in program.questions for _ in one.atoms]

    def logits(self, features: torch.Tensor, scale: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        values = torch.einsum("...vk,...k->...v", self.U[scale], features) + self.b[scale]
        return before + torch.einsum("cv,...v->...c", self.members, values)

    def scores(self, seen: Views, warmth: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        """What the program says of each image [N, targets], and the logits of its objects."""
        logits = self.logits(seen.features, seen.scale, seen.logits)
        likely = (logits / warmth).sigmoid()
        likely = likely / likely.sum(-1, keepdim=True)
        there = (seen.sure > 0).unsqueeze(-1)
        objects = torch.cat([seen.boxes, self.attributes.marginals(likely) * there, seen.sure.unsqueeze(-1)], -1)
        return self.reasoner(self.facts(objects)), logits

    def loss(self, seen: Views, warmth: float = 1.0) -> torch.Tensor:
        scores, logits = self.scores(seen, warmth)
        known = seen.truth.isfinite()
        told = torch.nn.functional.binary_cross_entropy(INSIDE + (1 - 2 * INSIDE) * scores[known].clamp(0, 1),
                                                        seen.truth[known])
        elsewhere = self.logits(seen.other_features, seen.other_scale, seen.other_logits).amax(-1).sigmoid()
        new = ((elsewhere - seen.other_logits.amax(-1).sigmoid()) ** 2).mean()
        lost = ((logits.amax(-1) - seen.logits.amax(-1)).clamp(max=0) ** 2 * (seen.sure > 0)).mean()
        return told + NOTHING_NEW * new + STILL_THERE * lost

    @torch.no_grad()
    def right(self, seen: Views) -> float:
        """The share of known answers that are right: above one half, or the highest of the classes."""
        scores, _ = self.scores(seen)
        several = torch.tensor(self.of_classes)
        known = seen.truth.isfinite()
        good = ((scores > 0.5) == (seen.truth > 0.5))[:, ~several][known[:, ~several]].float()
        if bool(several.any()):
            whole = known[:, several].all(1)
            best = scores[whole][:, several].argmax(1) == seen.truth[whole][:, several].argmax(1)
            good = torch.cat([good, best.float()])
        return float(good.mean())


def teach(model: Yolo, program: Program, seen: Views, seed: int = 0, epochs: int = EPOCHS) -> tuple[Heads, Taught]:
    """Learn what is added; the best on images held out is kept."""
    heads = Heads(model, anchored(program))
    held = torch.from_numpy(held_out(seen.truth, seed))
    train, checked = seen.at(~held), seen.at(held)
    before = heads.right(checked), heads.right(train)
    optimiser = torch.optim.Adam([heads.U, heads.b], lr=RATE)
    rng = torch.Generator().manual_seed(seed)
    best, kept = _checked(heads, checked), (heads.U.detach().clone(), heads.b.detach().clone())
    for epoch in range(epochs):
        warmth = 1 + (WARM - 1) * max(0.0, 1 - epoch / (epochs * WARM_SHARE))
        for some in torch.randperm(len(train), generator=rng).split(BATCH):
            optimiser.zero_grad()
            heads.loss(train.at(some), warmth).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        if (now := _checked(heads, checked)) < best:
            best, kept = now, (heads.U.detach().clone(), heads.b.detach().clone())
    with torch.no_grad():
        heads.U.copy_(kept[0])
        heads.b.copy_(kept[1])
    after = heads.right(checked), heads.right(train)
    return heads, Taught(len(seen), int(held.sum()), epochs, before, after)


@torch.no_grad()
def _checked(heads: Heads, seen: Views) -> float:
    return float(heads.loss(seen))


def write(model: Yolo, base: Path, heads: Heads, taught: Taught, out: Path, command: str) -> None:
    """The weights of `base` with what was learnt, as `--weights` takes them."""
    header, tensors = files.load(base)
    start = files.checksum(tensors)
    names = {id(tensor): name for name, tensor in model.named_parameters()}
    for layer, U, b in zip(last_layers(model), heads.U.detach(), heads.b.detach(), strict=True):
        mixed = layer.out_channels == len(model.attributes.classes)
        for tensor, more in ((layer.weight, U[:, :, None, None]), (layer.bias, b)):
            assert tensor is not None
            added = torch.einsum("cv,v...->c...", heads.members, more) if mixed else more
            name = names[id(tensor)]
            tensors[name] = (tensors[name].float() + added).to(tensors[name].dtype)
    if wrong := [name for name, tensor in tensors.items() if not bool(np.isfinite(tensor.float().numpy()).all())]:
        raise NsfrcError(f"the learnt weights are not numbers or are too large ({wrong[0]}), and are not written")
    header.pop("crc32", None)
    made_by = {"command": command, "from": start, "images": taught.images,
               "held_out": taught.held_out, "accuracy_before": taught.before[0], "accuracy": taught.after[0]}
    files.save(out, tensors, {**header, "made_by": made_by})
