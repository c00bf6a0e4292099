"""`nsfrc train perception`: YOLOv5 on figures or scenes of no class, from scratch or from weights, resumable.

The loss and the network are those of the ultralytics package; the loop is here, so that a run on one machine is decided
by its options and the number of threads, and one that was interrupted ends in the same weights as one that was not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from nsfrc.distributed import share, together, world
from nsfrc.errors import NsfrcError
from nsfrc.perception import weights as files
from nsfrc.perception import yolo_network
from nsfrc.perception.yolo import Yolo, settings_of
from nsfrc.perception.yolo_network import COARSEST
from nsfrc.training import run as shared
from nsfrc.training.checkpoint import check_place, checkpoint_of
from nsfrc.training.detector_data import Batch, Examples, Source, batches, collect, open_source
from nsfrc.training.detector_score import calibrate, score
from nsfrc.training.options import LOOKS
from nsfrc.training.options import DetectorOptions as Options
from nsfrc.training.run import Bar, Log, no_bar, no_log
from nsfrc.training.spread import own, part_of_whole, synchronise

__all__ = ["Options", "Run", "checkpoint_of", "train"]

GAINS = SimpleNamespace(box=7.5, cls=0.5, dfl=1.5)  # weights of the parts of the loss, ultralytics' own
DECAY = 5e-4
BETAS = (0.937, 0.999)
VALIDATION = 1000  # pictures, at most: with fewer, chance decides which epoch is best
LARGE = 1000.0  # a variance of what is normalised; half precision ends at 65,504
FOUND = 16  # objects to look for while validating; figures have at most 12 and scenes 10


def train(
    options: Options, out: Path, *, device: str = "cpu", resume: bool = False, made_by: str = "",
    log: Log = no_log, bar: Bar = no_bar, start: Path | None = None,
) -> Yolo:
    """Train a detector, write it to `out` (safetensors, fp16) and return it as `Yolo.build` reads it.

    After every epoch everything needed to go on is in `out`.checkpoint; it is removed at the end. `made_by`: the
    command, which is noted in the file. log, bar: where progress goes to. start: weights to start from.
    """
    checkpoint = checkpoint_of(out)
    source = open_source(options.data)
    _check(options, source)
    if source.available is not None:
        options = replace(options, figures=min(options.figures, source.available))
    check_place(out, resume)
    if start is not None:
        options = replace(options, start=files.checksum(files.load(start)[1]))
    run = Run(options, source, device, start)
    if resume:
        run.restore(checkpoint)
        log(f"continuing after epoch {run.epoch} of {options.epochs}")
    figures, held_out = (
        collect(source, held_out, options.seed, source.size(options.size), at_most, bar)
        for held_out, at_most in ((False, options.figures), (True, VALIDATION))
    )
    model = run.finish(figures, held_out, checkpoint, log, bar)
    model.calibration = _calibration(model, held_out, device)
    run.write(model, out, made_by)
    checkpoint.unlink(missing_ok=True)
    return source.model.build(FOUND, out)


def _check(options: Options, source: Source) -> None:
    options.check()
    height, width = source.size(options.size)
    if options.size <= 0 or height % COARSEST or width % COARSEST:
        step = next(across for across in count(COARSEST, COARSEST) if source.size(across)[0] % COARSEST == 0)
        raise NsfrcError(f"each side of the pictures must be a multiple of {COARSEST}, not {width} × {height}: give "
                         f"--size a multiple of {step}; {source.model.usual_size[1]} is usual")


class Run(shared.Run[Yolo]):
    """A training of the kind of detector that a source has examples for."""

    clip = 10.0
    measure = "validation_all_right"

    def __init__(self, options: Options, source: Source, device: str, start: Path | None = None) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            model = source.model(
                FOUND, variant=options.variant, size=source.size(options.size), attributes=source.attributes,
                looks="varied" if options.data == LOOKS["varied"] else "plain", network=options.network,
            )
        if start is not None:
            begin_with(model, start)
        super().__init__(options, model, device)
        self.parts = _loss(self.model)
        synchronise(self.model.network, self.parts)
        self.network = together(self.model.network)

    def new_optimiser(self) -> torch.optim.Optimizer:
        """AdamW; only the weights of convolutions decay, not offsets and scales."""
        decaying = [p for p in self.parameters.values() if p.ndim > 1]
        others = [p for p in self.parameters.values() if p.ndim <= 1]
        groups = [{"params": decaying, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=self.options.lr, betas=BETAS, fused=True)

    def batches(self, examples: Examples) -> Iterator[Batch]:
        return batches(examples, self.options.batch_size, self.options.seed, self.epoch, self.device)

    def loss(self, batch: Batch) -> torch.Tensor:
        mine = batch if world() == 1 else own(batch, share(len(batch.images)))
        labels = {"batch_idx": mine.owner, "cls": mine.classes, "bboxes": mine.boxes}
        found = self.network(mine.images)
        sizes = yolo_network.map_sizes(self.model.network, mine.images)
        found["feats"] = [mine.images.new_empty(1, 1, *size) for size in sizes]  # all that the loss asks of maps
        parts, _ = self.parts(found, labels)
        return part_of_whole(parts.sum(), self.parts, len(mine.images), len(batch.images))

    def write(self, model: Yolo, out: Path, made_by: str) -> None:
        even(model.network)
        super().write(model, out, made_by)

    def judge(self, held_out: Examples) -> tuple[float, str]:
        right = score(self.average, held_out, self.device).all_right
        return right, f"all objects right {right:.2%}"


@torch.no_grad()
def even(network: torch.nn.Module) -> None:
    """Make less of what a normalisation takes in where that has grown large: the same outputs, fit for half precision.

    Nothing else keeps it from growing, as the normalisation takes its scale out again.
    """
    for part in network.modules():
        bn = getattr(part, "bn", None)
        if isinstance(bn, torch.nn.BatchNorm2d) and bn.running_mean is not None and bn.running_var is not None:
            spread = bn.running_var + bn.eps
            scale = (spread / LARGE).sqrt().clamp(min=1)
            part.get_parameter("conv.weight").div_(scale[:, None, None, None])
            bn.running_mean.div_(scale)
            bn.running_var.copy_(spread / scale**2 - bn.eps)


def begin_with(model: Yolo, start: Path) -> None:
    """Fill a model from a file of weights; or, as far as they fit, from those of a network with more in it."""
    header, tensors = files.load(start)
    models = [*(_of_kind(model, kind) for kind in _kinds_before(model, header, start)), model]
    files.fill(models[0], tensors, start)
    for known, begun in pairwise(models):
        yolo_network.start(begun.network, begun.kind, known.network)


def _kinds_before(model: Yolo, header: dict[str, Any], start: Path) -> tuple[str, ...]:
    """The kinds of network from that of a file to the model's, without it; refuses what the model cannot begin with."""
    settings = settings_of(header, start, type(model))
    if settings["variant"] != model.variant:
        raise NsfrcError(f"{start} is of --variant {settings['variant']}, not {model.variant}: give that")
    if settings["attributes"] != model.attributes:
        raise NsfrcError(f"{start} tells other attributes apart ({', '.join(settings['attributes'].values)}) than "
                         f"{model.name} is to learn: leave out --weights")
    given = settings["network"]
    first, last = (yolo_network.KINDS.index(kind) for kind in (given, model.kind))
    if first > last:
        raise NsfrcError(f"{start} is a {given} network, from which a {model.kind} one cannot begin: give --network "
                         f"{given}, or leave out --weights")
    return yolo_network.KINDS[first:last]


def _of_kind(model: Yolo, kind: str) -> Yolo:
    return type(model)(FOUND, variant=model.variant, attributes=model.attributes, network=kind)


def _loss(model: Yolo) -> Any:
    from ultralytics.utils.loss import v8DetectionLoss

    model.network.args = GAINS
    return v8DetectionLoss(model.network)


def _calibration(model: Yolo, held_out: Examples, device: str) -> tuple[float, float]:
    """Fitted on all detections, also those that are too weak to count: they show what no object looks like."""
    floor, model.floor = model.floor, 0.0
    found = score(model, held_out, device)
    model.floor = floor
    return calibrate(found.logits, found.there if model.judges_place else found.hits)
