"""Boxes x1 y1 x2 y2 in batches: overlap, and which of many detections of one object to keep."""

from __future__ import annotations

import torch


def overlap(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Intersection over union of every pair: [..., N, 4], [..., M, 4] → [..., N, M]; 0 where a box is empty."""
    # Coordinate by coordinate: tensors whose last dimension is a pair are several times slower to work on.
    ax1, ay1, ax2, ay2 = one.unsqueeze(-2).unbind(-1)
    bx1, by1, bx2, by2 = other.unsqueeze(-3).unbind(-1)
    across = (torch.minimum(ax2, bx2) - torch.maximum(ax1, bx1)).clamp(min=0)
    down = (torch.minimum(ay2, by2) - torch.maximum(ay1, by1)).clamp(min=0)
    shared = across * down
    areas = [(x2 - x1).clamp(min=0) * (y2 - y1).clamp(min=0)
             for x1, y1, x2, y2 in ((ax1, ay1, ax2, ay2), (bx1, by1, bx2, by2))]
    union = areas[0] + areas[1] - shared
    return torch.where(union > 0, shared / union.clamp(min=torch.finfo(union.dtype).tiny), 0)


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
