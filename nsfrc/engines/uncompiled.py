"""Engines that torch.compile cannot follow, called outside its graph.

Imported when torch.compile first meets such an engine, never before: it loads torch._dynamo, which takes seconds.
"""

from __future__ import annotations

import torch

from nsfrc.engines import Engine, Run


@torch.compiler.disable(reason="the CPU engine's kernels are not torch operators; leave out fullgraph=True")
def outside(engine: Engine, V0: torch.Tensor, weights: torch.Tensor | None, run: Run) -> torch.Tensor:
    """What the engine gives; the graph ends before it, and another begins behind it."""
    return engine(V0, weights, run)
