"""The loss of a set prediction: every slot is given the thing it comes nearest to, or none, and learns to say that."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from nsfrc.data.clevr.scenes import DIMENSIONS
from nsfrc.perception.camera import SPAN

# Of places, which would weigh less than an attribute that is a little unsure, and be learnt last. With it, two units of
# the world off are about as bad as an entry that is wrong.
SCALE = SPAN / 2


def set_loss(said: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """How far slots [B, S, 19] are from things [B, S, 19], matched as well as can be: [B], summed over slots.

    A row of zeros in `truth` is a slot that should find nothing. The order of rows of neither matters.
    """
    apart = costs(said, truth)
    return apart.gather(2, matching(apart).unsqueeze(2)).sum((1, 2))


def costs(said: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Huber's loss of every slot for every thing, summed over entries: [B, S, S]."""
    scale = said.new_tensor([SCALE if name in ("x", "y", "z") else 1.0 for name in DIMENSIONS])
    one, other = torch.broadcast_tensors((said * scale).unsqueeze(2), (truth * scale).unsqueeze(1))
    return torch.nn.functional.smooth_l1_loss(one, other, reduction="none").sum(3)


@torch.no_grad()
def matching(apart: torch.Tensor) -> torch.Tensor:
    """The thing of each slot, such that the sum of costs [B, S, S] is the least: [B, S]."""
    tables = apart.detach().cpu().double().numpy()
    if not np.isfinite(tables).all():  # the caller sees it in the loss
        tables = np.nan_to_num(tables)
    chosen = [linear_sum_assignment(table)[1] for table in tables]
    return torch.from_numpy(np.stack(chosen)).to(apart.device)
