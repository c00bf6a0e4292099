"""A detector in several processes: what in it depends on a whole batch, computed over all of them.

That is the mean and variance of batch norms, and by what ultralytics' loss divides: the sum of the scores that objects
should have. With both, the shares of a batch add up to the loss of one process.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed

from nsfrc.distributed import total, world
from nsfrc.training.detector_data import Batch


class _Normalised(torch.autograd.Function):
    """A batch norm with the mean and variance of all processes; each direction takes one message."""

    @staticmethod
    def forward(
        ctx: Any, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """input [B, C, H, W] → the same normalised, mean [C], variance [C] and the number of pixels they are of."""
        values = input.detach().double()
        count = values.new_full((1,), input.numel() // input.shape[1])
        told = _summed(torch.cat([values.sum((0, 2, 3)), values.square().sum((0, 2, 3)), count]))
        channels = input.shape[1]
        count = told[-1]
        mean = told[:channels] / count
        variance = (told[channels : 2 * channels] / count - mean.square()).clamp(min=0)
        scale = (variance + eps).rsqrt()
        mean, scale, variance = (one.to(input.dtype) for one in (mean, scale, variance))
        ctx.save_for_backward(input, weight, mean, scale, count)
        ctx.mark_non_differentiable(mean, variance, count)
        shown = (input - mean[:, None, None]) * (scale * weight)[:, None, None] + bias[:, None, None]
        return shown, mean, variance, count

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, None]:  # type: ignore[override]
        input, weight, mean, scale, count = ctx.saved_tensors
        given = grads[0]
        plain = (input - mean[:, None, None]) * scale[:, None, None]
        mine = torch.stack([given.double().sum((0, 2, 3)), (given * plain).double().sum((0, 2, 3))])
        both = (_summed(mine.clone()) / count).to(input.dtype)
        inner = given - both[0][:, None, None] - plain * both[1][:, None, None]
        offset, slope = mine.to(weight.dtype)
        return inner * (scale * weight)[:, None, None], slope, offset, None


def _summed(values: torch.Tensor) -> torch.Tensor:
    distributed.all_reduce(values, group=_group())
    return values


class SyncedBatchNorm(torch.nn.BatchNorm2d):
    """A batch norm over the images of all processes; torch's own works on CUDA alone."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if not self.training or world() == 1:
            return super().forward(input)
        shown, mean, variance, count = _Normalised.apply(input, self.weight, self.bias, self.eps)  # type: ignore[no-untyped-call]
        self._remember(mean, variance * (count / (count - 1).clamp(min=1)))
        return torch.as_tensor(shown)

    @torch.no_grad()
    def _remember(self, mean: torch.Tensor, variance: torch.Tensor) -> None:
        assert self.num_batches_tracked is not None and self.momentum is not None
        assert self.running_mean is not None and self.running_var is not None
        self.num_batches_tracked += 1
        self.running_mean.lerp_(mean.to(self.running_mean), self.momentum)
        self.running_var.lerp_(variance.to(self.running_var), self.momentum)


_groups: list[Any] = []


def _group() -> Any:
    """Of its own, so that these sums never come in between those of gradients."""
    if not _groups or _groups[0] is not distributed.group.WORLD:
        _groups[:] = [distributed.group.WORLD, distributed.new_group()]
    return _groups[1]


class Counted(torch.nn.Module):
    """ultralytics' assigner of objects to cells, which keeps the sum of the scores that it last gave."""

    def __init__(self, assigner: torch.nn.Module) -> None:
        super().__init__()
        self.assigner = assigner
        self.sum = torch.zeros(())

    def forward(self, *given: Any) -> Any:
        found = self.assigner(*given)
        self.sum = found[2].detach().sum()
        return found


def synchronise(network: torch.nn.Module, loss: Any) -> None:
    """Make a network and its loss ready for several processes; alone, both stay as they are."""
    if world() == 1:
        return
    for part in network.modules():
        if type(part) is torch.nn.BatchNorm2d:
            part.__class__ = SyncedBatchNorm
    loss.assigner = Counted(loss.assigner)
    _group()


def own(batch: Batch, which: slice) -> Batch:
    """Some images of a batch, with their boxes."""
    owner = batch.owner.long()
    places = torch.arange(len(batch.images), device=owner.device)[which]
    order = torch.full((len(batch.images),), -1, device=owner.device)  # where each of the chosen stands among them
    order[places] = torch.arange(len(places), device=owner.device)
    kept = order[owner] >= 0
    return Batch(batch.images[which], order[owner][kept].to(batch.owner), batch.classes[kept], batch.boxes[kept])


def part_of_whole(value: torch.Tensor, loss: Any, images: int, whole: int) -> torch.Tensor:
    """A share's loss as a part of the batch's: it was divided by the share's sum of scores, and multiplied by its
    images, where the whole batch has others.
    """
    if world() == 1:
        return value
    mine = loss.assigner.sum
    return value * (mine.clamp(min=1) / total(mine).clamp(min=1)) * (whole / images)
