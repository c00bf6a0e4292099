"""What the checks of a run find: what, where in the PTX, and which Python line of the kernel it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nsfrc.errors import NsfrcError

MOST_TOLD = 8

OUTSIDE = "access outside every argument"
OUTSIDE_SHARED = "access outside shared memory"
MISALIGNED = "misaligned access"
UNWRITTEN = "read of a word that nothing wrote"
UNDEFINED = "use of a register that nothing wrote"
READ_AFTER_WRITE = "race: read of what another thread writes, without a barrier between"
WRITE_AFTER_READ = "race: write to what another thread reads, without a barrier between"
WRITE_AFTER_WRITE = "race: write of another value than another thread writes, without a barrier between"
DIFFERENT_VALUES = "one store writes different values to one place"
BETWEEN_BLOCKS = "race: two blocks use a word, at least one writes it, and nothing orders them"
DIVERGED_BARRIER = "barrier that only some threads of a block reach"
DIVERGED_WARP = "instruction for a whole warp that only some of its threads reach"
OVERLAP = "two arguments overlap, and one is written"
ENDLESS = "the kernel does not end"


@dataclass(frozen=True)
class Finding:
    """kind: one of the sentences above. function: of the kernel, as Triton names it; source: Python lines, innermost
    first, or "" where line information has none. times: how often it was seen; detail: the first of these."""

    kind: str
    kernel: str
    arch: str
    function: str
    line: int
    op: str
    source: str
    detail: str
    times: int

    def __str__(self) -> str:
        place = f", {self.source}" if self.source else ""
        more = f" ({self.times} times)" if self.times > 1 else ""
        return (f"{self.kernel} for {self.arch}, line {self.line} of its PTX ({self.op}{place}): {self.kind}{more}"
                + (f"; {self.detail}" if self.detail else ""))


class KernelFault(NsfrcError):
    """A kernel did what no card promises to do as meant. `findings` has all of it."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        told = "\n".join(f"  {one}" for one in self.findings[:MOST_TOLD])
        rest = len(self.findings) - MOST_TOLD
        more = f"\n  and {rest} more" if rest > 0 else ""
        super().__init__(f"engine \"ptx\" found {len(self.findings)} fault(s) in the machine code:\n{told}{more}")
