"""What a launch asks of memory: sectors of 32 bytes, conflicts between the banks of shared memory, and what a cache of
40 MB does not have."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from nsfrc.engines.ptx.memory import Space

WARP, SECTOR, BANKS, WORD = 32, 32, 32, 4
L2_BYTES = 40 * 2**20  # of an A100


@dataclass(slots=True)
class Requests:
    """Of one kind: requests of warps; the parts that they take, and the fewest that such requests can."""

    requests: int = 0
    parts: int = 0  # sectors, or for shared memory passes over its banks
    needed: float = 0.0

    @property
    def used(self) -> float:
        return self.needed / self.parts if self.parts else 1.0


@dataclass(slots=True)
class Counts:
    """By kind: "ld global", "st global", "ld shared", "st shared"."""

    by_kind: dict[str, Requests] = field(default_factory=dict)
    _sectors: list[np.ndarray] = field(default_factory=list)

    def request(self, space: Space, way: str, at: np.ndarray, wide: int, lanes: np.ndarray) -> None:
        """Threads access `wide` bytes each. at: int64 offsets."""
        from nsfrc.engines.ptx.memory import Device

        device = isinstance(space, Device)
        kind = self.by_kind.setdefault(f"{way} {'global' if device else 'shared'}", Requests())
        warps: np.ndarray = lanes // WARP
        kind.requests += len(np.unique(warps))
        if device:
            sectors = np.unique(warps << 44 | at // SECTOR)
            pieces = np.unique(warps << 44 | at // wide)
            kind.parts += len(sectors)
            kind.needed += len(pieces) * wide / SECTOR
            self._sectors.append(np.unique(sectors & ((1 << 44) - 1)))
        else:
            passes, groups = bank_passes(at, wide, lanes)
            kind.parts += passes
            kind.needed += groups

    def missed_bytes(self, cache: int = L2_BYTES) -> int:
        """Bytes that a cache of such a size (the A100's, if not told) has to fetch, or to take in, the least recently
        used leaving first."""
        if not self._sectors:
            return 0
        different = len(np.unique(np.concatenate(self._sectors)))
        if different <= cache // SECTOR:
            return different * SECTOR
        return _misses(self._sectors, cache // SECTOR) * SECTOR


def bank_passes(at: np.ndarray, wide: int, lanes: np.ndarray) -> tuple[int, int]:
    """Passes over the banks that an access of shared memory takes, and how many it would without conflicts. Accesses
    wider than a word are made by halves or quarters of a warp."""
    words = at[:, None] // WORD + np.arange(max(1, wide // WORD))
    group: np.ndarray = lanes * max(WORD, wide) // (WARP * WORD)
    different = np.unique(np.broadcast_to(group[:, None], words.shape).ravel() << 32 | words.ravel())
    banks, times = np.unique((different >> 32) * BANKS + (different & (BANKS - 1)), return_counts=True)
    groups, begin = np.unique(banks // BANKS, return_index=True)
    return int(np.maximum.reduceat(times, begin).sum()), len(groups)


def _misses(requests: list[np.ndarray], most: int) -> int:
    held: OrderedDict[int, None] = OrderedDict()
    missed = 0
    for sector in np.concatenate(requests).tolist():
        if sector in held:
            held.move_to_end(sector)
            continue
        missed += 1
        held[sector] = None
        if len(held) > most:
            held.popitem(last=False)
    return missed
