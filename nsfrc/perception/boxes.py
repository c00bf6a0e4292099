"""Boxes x1 y1 x2 y2 in batches: overlap, and which of many detections of one object to keep."""

from __future__ import annotations

import torch


def overlap(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Intersection over union of every pair: [..., N, 4], [..., M, 4] → [..., N, M]; 0 where a box is empty."""
    first, second = one.unsqueeze(-2), other.unsqueeze(-3)
    low = torch.maximum(first[..., :2], second[..., :2])
    high = torch.minimum(first[..., 2:], second[..., 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    union = _area(first) + _area(second) - shared
    return torch.where(union > 0, shared / union.clamp(min=torch.finfo(union.dtype).tiny), 0)


def _area(boxes: torch.Tensor) -> torch.Tensor:
    return (boxes[..., 2:] - boxes[..., :2]).clamp(min=0).prod(-1)


@torch.no_grad()
def best_of_each(boxes: torch.Tensor, threshold: float) -> torch.Tensor:
    """Greedy non-maximum suppression of boxes [B, K, 4] that stand best first → which to keep, bool [B, K].

    A box goes when it overlaps a better one that stays. That defines who stays without an order of work:
    starting from all, one round settles at least the best unsettled box of every example, most often nearly all.
    """
    rivals = (overlap(boxes, boxes) > threshold).triu(1)  # [b, i, j]: i is better than j and too close to it
    keep = torch.ones(boxes.shape[:2], dtype=torch.bool, device=boxes.device)
    while True:
        now = ~(rivals & keep.unsqueeze(2)).any(1)
        if torch.equal(now, keep):
            return keep
        keep = now
