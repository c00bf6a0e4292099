"""`nsfrc train perception`: YOLOv5 from scratch on figures of no pattern, resumable after every epoch.

The loss and the network are those of the ultralytics package; the loop is here, so that a run on one machine is decided
by its options and the number of threads, and one that was interrupted ends in the same weights as one that was not.
"""

from __future__ import annotations

import copy
import math
import os
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from nsfrc.errors import NsfrcError
from nsfrc.perception import weights as files
from nsfrc.perception.yolo import Yolo
from nsfrc.training.detector_checkpoint import load_checkpoint, save_checkpoint
from nsfrc.training.detector_data import SOURCES, Batch, Examples, batches, collect
from nsfrc.training.detector_score import calibrate, score

GAINS = SimpleNamespace(box=7.5, cls=0.5, dfl=1.5)  # weights of the parts of the loss, ultralytics' own
WARM_UP = 300  # batches
LAST_RATE = 0.01  # of the learning rate, at the end of the cosine
DECAY = 5e-4
BETAS = (0.937, 0.999)
CLIP = 10.0
AVERAGE, AVERAGE_RAMP = 0.999, 2000  # the moving average of weights, and the batches it takes to get that slow
VALIDATION = 400  # figures
VALIDATION_SEED = 1_000_000  # plus the seed: figures that no run trains on
FOUND = 16  # objects to look for while validating; figures have at most 10

Bar = Callable[[Iterable[Any], str, int], AbstractContextManager[Iterable[Any]]]


@dataclass(frozen=True)
class Options:
    """All that decides which weights come out."""

    data: str = "kandinsky"
    variant: str = "n"
    figures: int = 8000
    epochs: int = 18
    size: int = 160
    batch_size: int = 16
    lr: float = 2e-3
    seed: int = 0

    @property
    def steps(self) -> int:
        """Batches of the whole run."""
        return self.epochs * math.ceil(self.figures / self.batch_size)

    def rate(self, step: int) -> float:
        """The learning rate of a batch, counted from 0: up a line, then down a cosine."""
        warm = min(WARM_UP, max(1, self.steps // 5))
        if step < warm:
            return self.lr * (step + 1) / warm
        done = (step - warm) / max(1, self.steps - warm)
        return self.lr * (LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * done)) / 2)


def _no_bar(items: Iterable[Any], label: str, length: int) -> AbstractContextManager[Iterable[Any]]:
    return nullcontext(items)


def _no_log(line: str) -> None:
    pass


def train(
    options: Options, out: Path, *, device: str = "cpu", resume: bool = False, made_by: str = "",
    log: Callable[[str], None] = _no_log, bar: Bar = _no_bar,
) -> Yolo:
    """Train a detector, write it to `out` (safetensors, fp16) and return it as `Yolo.build` reads it.

    After every epoch everything needed to go on is in `out`.checkpoint; it is removed at the end. `made_by`: the
    command, which is noted in the file. log, bar: where progress goes to.
    """
    checkpoint = checkpoint_of(out)
    _check(options)
    _check_place(out, checkpoint, resume)
    torch.set_flush_denormal(True)  # weights that have decayed to almost nothing are slow to multiply with
    run = Run(options, device)
    if resume:
        run.restore(checkpoint)
        log(f"going on after epoch {run.epoch} of {options.epochs}")
    figures = _figures(options, options.seed, options.figures, "figures", bar)
    held_out = _figures(options, VALIDATION_SEED + options.seed, VALIDATION, "validation figures", bar)
    while run.epoch < options.epochs:
        started = time.perf_counter()
        loss = run.one_epoch(figures, bar)
        run.validate(held_out)
        save_checkpoint(checkpoint, run.state(), {"options": asdict(options), **run.progress()})
        log(f"epoch {run.epoch}/{options.epochs}  loss {loss:.4f}  all objects right {run.right:.2%} "
            f"(best {run.best_right:.2%})  {time.perf_counter() - started:.0f} s")
    model = run.best_model()
    model.calibration = _calibration(model, held_out, device)
    _write(model, run, out, made_by)
    checkpoint.unlink(missing_ok=True)
    return Yolo.build(FOUND, out)


def checkpoint_of(out: Path) -> Path:
    """Where a run that writes `out` keeps its state."""
    return out.with_name(out.name + ".checkpoint")


def _check(options: Options) -> None:
    if options.size % 32 or options.size <= 0:
        raise NsfrcError(f"the size must be a multiple of 32, not {options.size}; 160 is usual")
    if min(options.figures, options.epochs, options.batch_size) < 1 or not 0 < options.lr < math.inf:
        raise NsfrcError("figures, epochs, batch size and learning rate must be above 0")


def _check_place(out: Path, checkpoint: Path, resume: bool) -> None:
    """Say before the work, not after it, that a file cannot be written, or that work would be lost."""
    if checkpoint.exists() and not resume:
        raise NsfrcError(f"{checkpoint} is left from a training that was interrupted: "
                         f"go on with --resume, or delete it to start again")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NsfrcError(f"cannot write {out}: {error.strerror}") from None
    if out.is_dir() or not os.access(out.parent, os.W_OK):
        raise NsfrcError(f"cannot write {out}: choose a file in a folder of yours")


def _figures(options: Options, seed: int, count: int, label: str, bar: Bar) -> Examples:
    with bar(range(count), f"drawing {label}", count) as numbers:
        return collect(SOURCES[options.data], seed, numbers, options.size, count)


class Run:
    """The state of a training: the model, its moving average, the optimiser, and how far it is."""

    def __init__(self, options: Options, device: str) -> None:
        self.options, self.device = options, device
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            self.model = Yolo(FOUND, options.variant, options.size, SOURCES[options.data].attributes)
        self.model.to(torch.device(device), memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.average = copy.deepcopy(self.model).eval().requires_grad_(False)
        self.parameters = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        self.optimiser = _optimiser(self.parameters, options.lr)
        self.loss = _loss(self.model)
        self.epoch = self.step = self.best_epoch = 0
        self.right = self.best_right = 0.0
        self.best: dict[str, torch.Tensor] = {}

    def one_epoch(self, figures: Examples, bar: Bar) -> float:
        """Train on every figure once; returns the mean loss."""
        options = self.options
        self.model.train()
        total = torch.zeros((), device=self.device)
        made = batches(figures, options.batch_size, options.seed, self.epoch, self.device)
        count = math.ceil(len(figures) / options.batch_size)
        with bar(made, f"epoch {self.epoch + 1}/{options.epochs}", count) as shown:
            for batch in shown:
                total += self.one_step(batch)
        self.epoch += 1
        loss = float(total) / len(figures)
        if not math.isfinite(loss):
            raise NsfrcError(f"the loss of epoch {self.epoch} is not a number: try a lower --lr than {options.lr}")
        return loss

    def one_step(self, batch: Batch) -> torch.Tensor:
        """One step of the optimiser and of the moving average; returns the loss, summed over the batch."""
        for group in self.optimiser.param_groups:
            group["lr"] = self.options.rate(self.step)
        labels = {"batch_idx": batch.owner, "cls": batch.classes, "bboxes": batch.boxes}
        parts, _ = self.loss(self.model.network(batch.images), labels)
        loss = parts.sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), CLIP)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.step += 1
        self._move_average()
        return loss.detach()

    @torch.no_grad()
    def _move_average(self) -> None:
        # A ramp as in ultralytics: the first averages must forget the random start quickly.
        keep = AVERAGE * (1 - math.exp(-self.step / AVERAGE_RAMP))
        pairs = list(zip(self.average.state_dict().values(), self.model.state_dict().values(), strict=True))
        real = [(slow, fast) for slow, fast in pairs if slow.is_floating_point()]
        torch._foreach_lerp_([slow for slow, _ in real], [fast for _, fast in real], 1 - keep)
        for slow, fast in pairs:
            if not slow.is_floating_point():
                slow.copy_(fast)

    def validate(self, held_out: Examples) -> None:
        """Note how good the moving average is, and keep it if nothing was better."""
        self.right = score(self.average, held_out, self.device).all_right
        if self.right >= self.best_right:
            self.best_right, self.best_epoch = self.right, self.epoch
            self.best = {name: tensor.clone() for name, tensor in self.average.state_dict().items()}

    def best_model(self) -> Yolo:
        self.average.load_state_dict(self.best)
        return self.average

    def progress(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "step": self.step, "right": self.right,
                "best_right": self.best_right, "best_epoch": self.best_epoch}

    def state(self) -> dict[str, torch.Tensor]:
        """Every tensor of the run by name."""
        tensors = {f"model.{n}": t for n, t in self.model.state_dict().items()}
        tensors |= {f"average.{n}": t for n, t in self.average.state_dict().items()}
        tensors |= {f"best.{n}": t for n, t in self.best.items()}
        for name, parameter in self.parameters.items():
            tensors |= {f"optimiser.{name}.{part}": t for part, t in self.optimiser.state[parameter].items()}
        return tensors

    def restore(self, path: Path) -> None:
        """Go back to what `state` and `progress` said; refuses a checkpoint of other options."""
        header, tensors = load_checkpoint(path, asdict(self.options))
        files.fill(self.model, _part(tensors, "model."), path)
        files.fill(self.average, _part(tensors, "average."), path)
        self.best = {n: t.to(self.device) for n, t in _part(tensors, "best.").items()}
        for name, parameter in self.parameters.items():
            moments = _part(tensors, f"optimiser.{name}.")
            self.optimiser.state[parameter] = {
                part: t.to(self.device).reshape(t.shape) if t.ndim == 0 else torch.empty_like(parameter).copy_(t)
                for part, t in moments.items()
            }
        self.epoch, self.step, self.best_epoch = (int(header[k]) for k in ("epoch", "step", "best_epoch"))
        self.right, self.best_right = float(header["right"]), float(header["best_right"])


def _part(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


def _optimiser(parameters: dict[str, torch.nn.Parameter], lr: float) -> torch.optim.Optimizer:
    """AdamW; only the weights of convolutions decay, not offsets and scales."""
    decaying = [p for p in parameters.values() if p.ndim > 1]
    others = [p for p in parameters.values() if p.ndim <= 1]
    groups = [{"params": decaying, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=BETAS, fused=True)


def _loss(model: Yolo) -> Any:
    from ultralytics.utils.loss import v8DetectionLoss

    model.network.args = GAINS
    return v8DetectionLoss(model.network)


def _calibration(model: Yolo, held_out: Examples, device: str) -> tuple[float, float]:
    """Fitted on all detections, also those that are too weak to count: they show what no object looks like."""
    floor, model.floor = model.floor, 0.0
    found = score(model, held_out, device)
    model.floor = floor
    return calibrate(found.logits, found.hits)


def _write(model: Yolo, run: Run, out: Path, made_by: str) -> None:
    half = {n: t.half() if t.is_floating_point() else t for n, t in model.state_dict().items()}
    header = {
        **model.header(),
        "made_by": {"command": made_by, **asdict(run.options), "best_epoch": run.best_epoch,
                    "validation_all_right": run.best_right},
    }
    files.save(out, half, header)
