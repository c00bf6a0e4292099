"""Clauses to choose from: soft rows over the candidates of a head, and each other clause as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from nsfrc.compiler.syntax import quoted_functor
from nsfrc.errors import NsfrcError, did_you_mean

if TYPE_CHECKING:
    from nsfrc.program import Program

BREAK_TIES = 0.01  # mixtures that start equal would stay so


@dataclass(frozen=True, eq=False)
class Candidates:
    """names: heads such as "kp/1". columns: the clauses of each, [C] as numbers of columns; mixtures: rows of each."""

    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    clauses: int
    mixtures: int

    def start(self) -> torch.Tensor:
        """W [M, C] of mixtures that have not decided; several of one head differ a little."""
        weights = torch.zeros(len(self.names) * self.mixtures, self.clauses)
        if self.mixtures > 1:
            noise = torch.Generator().manual_seed(0)
            weights += BREAK_TIES * torch.randn(weights.shape, generator=noise)
        return weights

    def rows(self, weights: torch.Tensor) -> torch.Tensor:
        """W [M + others, C] of all clauses: -inf where a row does not look."""
        allowed = torch.full_like(weights, -torch.inf)
        for head, columns in enumerate(self.columns):
            for row in range(head * self.mixtures, (head + 1) * self.mixtures):
                allowed[row, list(columns)] = 0.0
        chosen = {column for columns in self.columns for column in columns}
        others = [column for column in range(self.clauses) if column not in chosen]
        hard = weights.new_full((len(others), self.clauses), -torch.inf)
        hard[torch.arange(len(others)), others] = 0.0
        return torch.cat([torch.where(allowed == 0, weights, allowed), hard])


def find_candidates(program: Program, given: str | Sequence[str], mixtures: int) -> Candidates:
    """The clauses of heads that are called as in "kp/1"; raises NsfrcError for one that has none."""
    names = (given,) if isinstance(given, str) else tuple(given)
    heads: dict[str, list[int]] = {}
    for column, clause in enumerate(program.source.clauses):
        name, arity = clause.head.key
        heads.setdefault(f"{quoted_functor(name)}/{arity}", []).append(column)
    for name in names:
        if name not in heads:
            hint = did_you_mean(str(name), heads) or f"there are clauses of {', '.join(list(heads)[:5])}"
            raise NsfrcError(f"candidates names {name!r}, which heads no clause of {program.name}; {hint}")
    if not names or len(set(names)) < len(names):
        raise NsfrcError("candidates are heads, each once, such as \"kp/1\"")
    if isinstance(mixtures, bool) or not isinstance(mixtures, int) or mixtures < 1:
        raise NsfrcError(f"mixtures is a whole number, 1 or more, not {mixtures!r}")
    return Candidates(names, tuple(tuple(heads[name]) for name in names), len(program.source.clauses), mixtures)
