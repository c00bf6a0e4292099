"""The reference engine of `anchored`: the definition, on the dense index tensor, with torch's own gradients.

    softor⁰(x) = γ·log(1 + Σ_k (exp(x_k/γ) − 1))
    C_i[b,g]   = softor⁰ over the rows of clause i for g of Π_l V[b, row_l]
    V'[b,g]    = min(1, softor⁰(V0[b,g], H_1[b,g], …, H_M[b,g]))         H = W·C, or C where W is hard

An atom that counts others has the probability that a wanted number of them holds, each on its own:

    d_j ← d_j·(1−x) + d_{j−1}·x        for every x that is counted, from d_0 = 1 on
    V'[b,g] = Σ of d_j over the wanted j

Atoms are taken in the order of their dependencies; those that depend on each other are computed again and again, from
V0 on. It is the oracle of the other engines, so it shares no code with them: what depends on what is found by squaring
a matrix. float32 or float64, whatever V0 is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from nsfrc.engines import Run

if TYPE_CHECKING:
    from nsfrc.program import Program

FALSE, TRUE = 0, 1


class AnchoredReference:
    """Dense evaluation over I [C, G, S, L]; the padding rows of I are false and add nothing."""

    def __init__(self, program: Program) -> None:
        self.index = torch.from_numpy(program.index_tensor().astype("int64"))
        self.targets = torch.from_numpy(program.ground.targets.astype("int64"))
        self.neural = torch.from_numpy(program.ground.neural)
        self.initial = torch.from_numpy(program.ground.initial)
        self.counts = {head: (torch.from_numpy(sources.astype("int64")), wanted.tolist())
                       for head, sources, wanted in program.ground.counts}
        self.components = self._components()

    def _components(self) -> list[tuple[torch.Tensor, bool]]:
        """Atoms that depend on each other, in the order of dependencies, and whether they really do."""
        _, atoms, _, _ = self.index.shape
        holds = (self.index != FALSE).all(dim=3)  # [C, G, S]: rows that are not padding and may hold
        uses = torch.zeros(atoms, atoms, dtype=torch.bool)
        clause, head, row = holds.nonzero(as_tuple=True)
        uses[head[:, None], self.index[clause, head, row]] = True
        for counting, (sources, _) in self.counts.items():
            uses[counting, sources] = True
        reach = uses.clone()
        while True:  # the transitive closure: paths of twice the length at every turn
            further = reach | (reach.float() @ reach.float() > 0)
            if bool((further == reach).all()):
                break
            reach = further
        together = (reach & reach.T) | torch.eye(atoms, dtype=torch.bool)
        heads = uses.any(dim=1)
        heads[list(self.counts)] = True
        seen = torch.zeros(atoms, dtype=torch.bool)
        found = []
        # What depends on an atom reaches all that it reaches, and the atom.
        for atom in (reach | together).sum(dim=1).argsort(stable=True).tolist():
            if heads[atom] and not seen[atom]:
                members = together[atom].nonzero().flatten()
                seen[members] = True
                found.append((members, bool(reach[atom, atom])))
        return found

    def __call__(self, V0: torch.Tensor, weights: torch.Tensor | None, run: Run) -> torch.Tensor:
        with torch.autocast(V0.device.type, enabled=False):  # what others are measured by keeps its digits
            return self._levels(V0, weights, run)

    def _levels(self, V0: torch.Tensor, weights: torch.Tensor | None, run: Run) -> torch.Tensor:
        if run.inputs == "neural":
            V0 = torch.where(self.neural, V0, self.initial.to(V0))
        constants = torch.zeros_like(V0[:, :2]) + torch.tensor([0.0, 1.0]).to(V0)
        V0 = torch.cat([constants, V0[:, 2:]], dim=1)
        V = V0 if weights is None else V0 + 0 * weights.sum().to(V0)  # in the graph of the weights, whatever is asked
        for members, recursive in self.components:
            if int(members[0]) in self.counts:
                V = V.index_copy(1, members, self._counted(V, int(members[0])))
                continue
            steps = len(members) if run.steps is None else run.steps
            for _ in range(steps if recursive else 1):
                V = V.index_copy(1, members, self._derived(V, V0, members, weights, run.gamma))
        return V[:, self.targets] if run.outputs == "targets" else V

    def _counted(self, V: torch.Tensor, atom: int) -> torch.Tensor:
        """The value of an atom that counts others: [B, 1]."""
        sources, wanted = self.counts[atom]
        x = V[:, sources]
        x = x - (x - 1).clamp(min=0).detach()
        d = [torch.ones_like(V[:, 0])] + [torch.zeros_like(V[:, 0])] * len(sources)
        for i in range(len(sources)):
            d = [d[j] * (1 - x[:, i]) + (d[j - 1] * x[:, i] if j else 0) for j in range(len(d))]
        held = [d[j] for j in range(len(d)) if wanted[min(j, len(wanted) - 1)]]
        return sum(held, torch.zeros_like(V[:, 0]))[:, None]

    def _derived(
        self, V: torch.Tensor, V0: torch.Tensor, members: torch.Tensor, weights: torch.Tensor | None, gamma: float
    ) -> torch.Tensor:
        """V' of some atoms: [B, members]."""
        C = torch.stack([softor(V[:, rows[members]].prod(dim=-1), 2, gamma) for rows in self.index])
        H = C if weights is None else torch.einsum("mc,cbg->mbg", weights.to(C), C)
        V_new = softor(torch.cat([V0[None, :, members], H]), 0, gamma)
        return V_new - (V_new - 1).clamp(min=0).detach()  # at most 1, with the gradient of what it was before


def softor(x: torch.Tensor, dim: int, gamma: float) -> torch.Tensor:
    """softor⁰ along a dimension; of a single reason it is that reason, to the bit.

    All is divided by exp(m/γ), m the largest: exp(x/γ) − 1 becomes exp((x−m)/γ)·(1 − exp(−x/γ)), which does not
    overflow where γ is small, nor cancel where it is large.
    """
    top = x.detach().amax(dim, keepdim=True)
    gains = torch.exp((x - top) / gamma) * -torch.expm1(-x / gamma)
    others = gains.sum(dim, keepdim=True) + torch.expm1(-top / gamma)
    return (top + gamma * torch.log1p(others)).squeeze(dim)
