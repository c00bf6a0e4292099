"""`nsfrc train perception --model slot_attention`: slots from scratch on CLEVR scenes, resumable after every epoch.

Slots predict a set: each is matched with a thing, or with none, such that they agree best, and learns to say that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from nsfrc.distributed import copies, share, together
from nsfrc.perception.slot_attention import SlotAttention
from nsfrc.training import run as shared
from nsfrc.training.checkpoint import check_place, checkpoint_of
from nsfrc.training.options import SlotOptions as Options
from nsfrc.training.pictures import as_images
from nsfrc.training.run import Bar, Log, no_bar, no_log
from nsfrc.training.scenes import scenes
from nsfrc.training.slots_data import Batch, Examples, batches, collect
from nsfrc.training.slots_loss import set_loss
from nsfrc.training.slots_score import NEAR, Score, score

__all__ = ["Options", "Run", "checkpoint_of", "train"]

VALIDATION = 500  # scenes, at most
AT_ONCE = 32  # of them
CLIP = 10.0  # an example


def train(
    options: Options, out: Path, *, device: str = "cpu", resume: bool = False, made_by: str = "",
    log: Log = no_log, bar: Bar = no_bar,
) -> SlotAttention:
    """Train slots, write them to `out` (safetensors, fp16) and return them as `SlotAttention.build` reads them.

    After every epoch everything needed to go on is in `out`.checkpoint; it is removed at the end. `made_by`: the
    command, which is noted in the file. log, bar: where progress goes to.
    """
    checkpoint = checkpoint_of(out)
    options.check()
    learnt, held_out = scenes(options.data)
    options = replace(options, figures=min(options.figures, len(learnt)))
    check_place(out, resume)
    run = Run(options, device)
    if resume:
        run.restore(checkpoint)
        log(f"continuing after epoch {run.epoch} of {options.epochs}")
    examples = collect(learnt[: options.figures], options.size, options.slots, "pictures", bar)
    checked = collect(held_out[:VALIDATION], options.size, options.slots, "validation pictures", bar)
    run.write(run.finish(examples, checked, checkpoint, log, bar), out, made_by)
    checkpoint.unlink(missing_ok=True)
    return SlotAttention.build(options.slots, out)


class Run(shared.Run[SlotAttention]):
    """A training of slots."""

    measure = "validation_average_precision"

    def __init__(self, options: Options, device: str) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            model = SlotAttention(options.slots, options.size, options.iterations)
            begin(model)
        self.clip = CLIP * options.batch_size
        super().__init__(options, model, device)
        self.network = together(self.model.network)

    def new_optimiser(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters.values(), lr=self.options.lr, fused=True)

    def batches(self, examples: Examples) -> Iterator[Batch]:
        return batches(examples, self.options.batch_size, self.model.width, self.options.seed, self.epoch, self.device)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Slots start from other noise every time, so that none of them gets used to its own."""
        mine = share(len(batch.images))
        said = self.network(batch.images[mine], batch.noise[mine])
        return set_loss(said, batch.truth[mine]).sum() / copies(len(batch.images))

    def judge(self, held_out: Examples) -> tuple[float, str]:
        """By average precision, for which it does not matter how sure slots are, only which are surer."""
        found = compared(self.average, held_out, self.device)
        precision = found.precision[NEAR]
        return precision, f"objects right {found.found:.2%}  average precision {precision:.2%}"


def begin(model: SlotAttention) -> None:
    """Random weights for which a picture is as lively after the encoder as before.

    With torch's own it fades with every layer, and slots take longer to see more than the mean of all scenes.
    """
    for part in model.modules():
        if isinstance(part, torch.nn.Conv2d):
            torch.nn.init.kaiming_uniform_(part.weight, nonlinearity="relu")
        elif isinstance(part, torch.nn.Linear):
            torch.nn.init.xavier_uniform_(part.weight)
        if isinstance(part, torch.nn.Conv2d | torch.nn.Linear) and part.bias is not None:
            torch.nn.init.zeros_(part.bias)


@torch.no_grad()
def compared(model: SlotAttention, examples: Examples, device: str) -> Score:
    """What a model says of examples, beside what is there."""
    numbers = np.arange(len(examples))
    parts = [numbers[start : start + AT_ONCE] for start in range(0, len(numbers), AT_ONCE)]
    said = [model(as_images(examples.pixels, part, device)).cpu().numpy() for part in parts]
    return score(np.concatenate(said), examples.truth.numpy())
