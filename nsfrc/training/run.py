"""What every training of a perception has: a run that goes on to the same bits after a break, and its progress."""

from __future__ import annotations

import copy
import math
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch

from nsfrc.contexts import flushed_denormals
from nsfrc.distributed import backward, leads, total, wait
from nsfrc.errors import NsfrcError
from nsfrc.perception import weights as files
from nsfrc.perception.slot_attention import SlotAttention
from nsfrc.perception.yolo import Yolo
from nsfrc.training.checkpoint import checkpoint_of, load_checkpoint, save_checkpoint
from nsfrc.training.options import Options

AVERAGE, AVERAGE_RAMP = 0.999, 2000  # the moving average of weights, and the batches it takes to get that slow

Bar = Callable[[Iterable[Any], str, int], AbstractContextManager[Iterable[Any]]]
Log = Callable[[str], None]
Model = TypeVar("Model", bound=Yolo | SlotAttention)


class Pictures(Protocol):
    """Examples with pixels: uint8 [N, H, W, 3], and arrays with what is in them."""

    @property
    def pixels(self) -> torch.Tensor: ...

    @property
    def answers(self) -> list[np.ndarray]: ...

    def __len__(self) -> int: ...


def no_bar(items: Iterable[Any], label: str, length: int) -> AbstractContextManager[Iterable[Any]]:
    return nullcontext(items)


def no_log(line: str) -> None:
    pass


class Run(ABC, Generic[Model]):
    """The state of a training: the model, its moving average, the optimiser, and how far it is.

    What a kind of model does in its own way is left to methods without a body.
    """

    clip: float  # the norm of gradients from which on they are shortened
    measure: str  # what a file of weights calls the best that `judge` said

    def __init__(self, options: Options, model: Model, device: str) -> None:
        self.options, self.device, self.model = options, device, model
        self.model.to(torch.device(device), memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.average: Model = copy.deepcopy(self.model)
        self.average.eval().requires_grad_(False)
        self.parameters = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        self.optimiser = self.new_optimiser()
        self.epoch = self.step = self.best_epoch = 0
        self.right = self.best_right = 0.0
        self.best: dict[str, torch.Tensor] = {}
        self.examples: str | None = None  # their checksum

    @abstractmethod
    def new_optimiser(self) -> torch.optim.Optimizer:
        """An optimiser of `parameters`; its rate is set before every step."""

    @abstractmethod
    def batches(self, examples: Any) -> Iterator[Any]:
        """The batches of this epoch, which follow from the options and its number alone."""

    @abstractmethod
    def loss(self, batch: Any) -> torch.Tensor:
        """The loss, summed over the examples of a batch: of several processes each computes its share of the sum."""

    @abstractmethod
    def judge(self, held_out: Any) -> tuple[float, str]:
        """How good the moving average is, the best being the largest, and that in words."""

    def one_epoch(self, examples: Pictures, bar: Bar) -> float:
        """Train on every example once; returns the mean loss."""
        options = self.options
        self.model.train()
        summed = torch.zeros((), device=self.device)
        count = math.ceil(len(examples) / options.batch_size)
        with bar(self.batches(examples), f"epoch {self.epoch + 1}/{options.epochs}", count) as shown:
            for batch in shown:
                summed += self.one_step(batch)
        self.epoch += 1
        loss = float(summed) / len(examples)
        if not math.isfinite(loss):
            raise NsfrcError(f"the loss of epoch {self.epoch} is not a number: try a lower --lr than {options.lr}")
        return loss

    def one_step(self, batch: Any) -> torch.Tensor:
        """One step of the optimiser and of the moving average; returns the loss, summed over the batch."""
        for group in self.optimiser.param_groups:
            group["lr"] = self.options.rate(self.step)
        loss = self.loss(batch)
        backward(loss)
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.clip)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.step += 1
        self._move_average()
        return total(loss.detach())

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

    def validate(self, held_out: Any) -> str:
        """Note how good the moving average is, and keep it if nothing was better; returns that in words."""
        self.right, words = self.judge(held_out)
        if self.right >= self.best_right:
            self.best_right, self.best_epoch = self.right, self.epoch
            self.best = {name: tensor.clone() for name, tensor in self.average.state_dict().items()}
        return words

    def finish(self, examples: Pictures, held_out: Any, checkpoint: Path, log: Log, bar: Bar) -> Model:
        """All epochs that are left, each of them kept in the checkpoint; returns the best model."""
        self._same_examples(examples, checkpoint)
        epochs = self.options.epochs
        while self.epoch < epochs:
            started = time.perf_counter()
            with flushed_denormals():  # weights that have decayed to almost nothing
                loss = self.one_epoch(examples, bar)
                words = self.validate(held_out)
            if leads():
                save_checkpoint(checkpoint, self.state(), self.progress())
            wait()
            log(f"epoch {self.epoch}/{epochs}  loss {loss:.4f}  {words} (best {self.best_right:.2%})  "
                f"{time.perf_counter() - started:.0f} s")
        self.average.load_state_dict(self.best)
        return self.average

    def _same_examples(self, examples: Pictures, checkpoint: Path) -> None:
        """A run that learnt from others at first would end in weights that nobody can make again."""
        code = zlib.crc32(examples.pixels.numpy().data)
        for answer in examples.answers:
            code = zlib.crc32(answer.tobytes(), zlib.crc32(str(answer.shape).encode(), code))
        now = f"{code:08x}"
        if self.examples not in (None, now):
            raise NsfrcError(f"the run of {checkpoint} started with other pictures or scenes than --data "
                             f"{self.options.data} has now: restore them, or delete it and start again")
        self.examples = now

    def progress(self) -> dict[str, Any]:
        """What it is that is trained, and how far that is."""
        return {"model": self.model.header()["model"], "options": asdict(self.options), "examples": self.examples,
                "epoch": self.epoch, "step": self.step, "right": self.right,
                "best_right": self.best_right, "best_epoch": self.best_epoch}

    def state(self) -> dict[str, torch.Tensor]:
        """Every tensor of the run by name."""
        tensors = {f"model.{n}": t for n, t in self.model.state_dict().items()}
        tensors |= {f"average.{n}": t for n, t in self.average.state_dict().items()}
        tensors |= {f"best.{n}": t for n, t in self.best.items()}
        for name, parameter in self.parameters.items():
            tensors |= {f"optimiser.{name}.{part}": t for part, t in self.optimiser.state[parameter].items()}
        return tensors

    def _places(self) -> dict[str, torch.Tensor]:
        """Tensors with the names and shapes of those that `state` has after an epoch."""
        whole = {f"{part}.{n}": t for part in ("model", "average", "best") for n, t in self.model.state_dict().items()}
        for name, parameter in self.parameters.items():
            moments = {"step": torch.zeros(()), "exp_avg": parameter, "exp_avg_sq": parameter}
            whole |= {f"optimiser.{name}.{part}": t for part, t in moments.items()}
        return whole

    def restore(self, path: Path) -> None:
        """Go back to what `state` and `progress` said; refuses a checkpoint of other options or parts."""
        header, tensors = load_checkpoint(path, self.model.header()["model"], asdict(self.options))
        try:
            files.check(tensors, self._places(), path)
        except NsfrcError as error:
            raise NsfrcError(f"{error}: delete it and start without --resume") from None
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
        self.examples = header.get("examples")

    def write(self, model: Model, out: Path, made_by: str) -> None:
        """The finished model, in fp16, with all that made it."""
        half = {n: t.half() if t.is_floating_point() else t for n, t in model.state_dict().items()}
        if wrong := [n for n, t in half.items() if not bool(t.isfinite().all())]:
            raise NsfrcError(f"the learnt weights are not numbers or are too large ({wrong[0]}), and are "
                             f"not written: delete {checkpoint_of(out)} and try a lower --lr than {self.options.lr}")
        if not leads():
            wait()
            return
        told = {"command": made_by, **asdict(self.options), "best_epoch": self.best_epoch}
        files.save(out, half, {**model.header(), "made_by": {**told, self.measure: self.best_right}})
        wait()


def _part(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
