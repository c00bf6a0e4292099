"""The reference engine: the definition, on the dense index tensor, with torch's own gradients.

It is the oracle of every other engine, so it shares no code with them and is written to be read
beside the definition; float32 or float64, whatever V0 is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from nsfrc.engines import Run

if TYPE_CHECKING:
    from nsfrc.program import Program


class ReferenceEngine:
    """Dense soft forward chaining over I [C, G, S, L]."""

    def __init__(self, program: Program) -> None:
        self.index = torch.from_numpy(program.index_tensor().astype("int64"))
        self.targets = torch.from_numpy(program.plan.targets.astype("int64"))
        self.constant = torch.from_numpy(program.plan.constant)

    def __call__(self, V0: torch.Tensor, weights: torch.Tensor | None, run: Run) -> torch.Tensor:
        with torch.autocast(V0.device.type, enabled=False):  # what others are measured by keeps its digits
            return self._steps(V0, weights, run)

    def _steps(self, V0: torch.Tensor, weights: torch.Tensor | None, run: Run) -> torch.Tensor:
        V = V0
        if run.inputs == "neural":
            V = torch.where(self.constant.isnan(), V0, self.constant.to(V0))
        for _ in range(run.T):
            C = torch.stack([self._clause(V, c, run) for c in range(len(self.index))])
            H = C if weights is None else torch.einsum("mc,cbg->mbg", weights.to(C), C)
            R = softor(H, 0, run)
            V = softor(torch.stack([V, R]), 0, run)
        return V[:, self.targets] if run.outputs == "targets" else V

    def _clause(self, V: torch.Tensor, c: int, run: Run) -> torch.Tensor:
        """C_c [B, G]: soft-or over substitutions of the product of the body."""
        return softor(V[:, self.index[c]].prod(dim=-1), 2, run)


def softor(x: torch.Tensor, dim: int, run: Run) -> torch.Tensor:
    """γ·log Σ exp(x/γ) along a dimension, which leaves [B, G], divided by Z."""
    y = run.gamma * torch.logsumexp(x / run.gamma, dim)
    largest = _largest(y, run)
    return y / torch.where(largest > 1, largest, 1.0)


def _largest(y: torch.Tensor, run: Run) -> torch.Tensor:
    """The maximum of [B, G] per example or over the batch; of equal ones the first atom's counts."""
    if run.normalise == "batch":
        by_atom = y.T.reshape(-1)
        return by_atom[by_atom.argmax()]
    return y.gather(1, y.argmax(dim=1, keepdim=True))
