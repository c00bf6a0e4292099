"""What the kernels of a program do for a batch, counted while they run: `nsfrc compile P --emit ptx --count`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from nsfrc.engines.ptx.counts import Requests
from nsfrc.engines.ptx.launch import Launch

if TYPE_CHECKING:
    from nsfrc.program import Program

BATCH = 32
# Kinds of instructions, by the beginning of their names; the first that fits counts.
KINDS = (
    ("barriers", ("bar.",)), ("shuffles", ("shfl.", "redux.")), ("special", ("ex2.", "lg2.", "rcp.", "sqrt.", "div.")),
    ("global", ("ld.global", "st.global", "atom.")), ("shared", ("ld.shared", "st.shared", "ldmatrix", "stmatrix")),
    ("moves", ("mov.", "ld.param", "st.param", "selp.", "cvt.", "prmt.")), ("branches", ("bra", "brx", "ret", "call")),
)


@dataclass(frozen=True)
class KernelCounts:
    """Of all launches of a kernel: instructions of warps, in all and by kind; sectors of 32 bytes for each request of
    global memory, and the share of them that was asked for; passes over the banks of shared memory for each that it
    would take without conflicts; branches at which a warp split; barriers that nothing parts from the one
    before; bytes that a cache of 40 MB has to fetch or take in; sectors: all of them."""

    kernel: str
    arch: str
    batch: int
    launches: int
    instructions: int
    floats: int
    integers: int
    special: int
    global_: int
    shared: int
    moves: int
    shuffles: int
    branches: int
    barriers: int
    sectors: int
    sectors_per_load: float
    loaded_used: float
    sectors_per_store: float
    stored_used: float
    bank_passes: float
    splits: int
    doubled: int
    missed_bytes: int


def tally(program: Program, arch: str = "sm_80", batch: int = BATCH, *, gradients: bool = True) -> list[KernelCounts]:
    """Run a batch of random values forwards and, with gradients, backwards, as a card of 108 multiprocessors would."""
    reasoner = program.reasoner("ptx", arch=arch, inputs="neural", outputs="targets")
    reasoner.engine.runner.count = True  # type: ignore[attr-defined]
    generator = torch.Generator().manual_seed(0)
    V0 = torch.from_numpy(program.initial_valuation()).float().repeat(batch, 1)
    neural = torch.from_numpy(program.ground.neural)
    V0[:, neural] = torch.rand(batch, int(neural.sum()), generator=generator)
    with torch.no_grad():
        reasoner(V0)
    if gradients:
        reasoner(V0.requires_grad_()).sum().backward()
    launches: list[Launch] = reasoner.engine.launches  # type: ignore[attr-defined]
    labels = dict.fromkeys(one.kernel for one in launches)
    return [_counts([one for one in launches if one.kernel == label], batch) for label in labels]


def kind_of(op: str) -> str:
    """The kind of an instruction, such as ld.global.v4.b32."""
    found = next((kind for kind, begins in KINDS if op.startswith(begins)), "")
    return found or ("floats" if op.endswith("f32") else "integers")


def _counts(launches: list[Launch], batch: int) -> KernelCounts:
    kinds: Counter[str] = Counter()
    asked: dict[str, Requests] = {}
    missed = 0
    for one in launches:
        for op, times in one.instructions.items():
            kinds[kind_of(op)] += times
        assert one.counts is not None
        missed += one.counts.missed_bytes()
        for name, part in one.counts.by_kind.items():
            total = asked.setdefault(name, Requests())
            total.requests += part.requests
            total.parts += part.parts
            total.needed += part.needed
    loads, stores = (asked.get(f"{way} global", Requests()) for way in ("ld", "st"))
    banks = [asked.get(f"{way} shared", Requests()) for way in ("ld", "st")]
    needed = sum(one.needed for one in banks)
    return KernelCounts(
        launches[0].kernel, launches[0].arch, batch, len(launches), sum(kinds.values()), kinds["floats"],
        kinds["integers"], kinds["special"], kinds["global"], kinds["shared"], kinds["moves"], kinds["shuffles"],
        kinds["branches"], kinds["barriers"], loads.parts + stores.parts,
        loads.parts / max(1, loads.requests), loads.used, stores.parts / max(1, stores.requests), stores.used,
        sum(one.parts for one in banks) / needed if needed else 1.0, sum(one.diverged for one in launches),
        sum(one.doubled for one in launches), missed,
    )


def as_lines(rows: list[KernelCounts]) -> list[str]:
    """A table for a terminal."""
    first = rows[0]
    lines = [f"executed on the CPU for {first.batch} examples, instructions of warps for {first.arch}:",
             f"  {'kernel':34} {'launches':>8} {'instructions':>12} {'special':>8} {'global':>7} {'shared':>7} "
             f"{'shuffles':>8} {'barriers':>8} {'sectors':>7} {'used':>5} {'banks':>5} {'missed':>8}"]
    for one in rows:
        lines.append(
            f"  {one.kernel:34} {one.launches:8} {one.instructions:12,} {one.special:8,} {one.global_:7,} "
            f"{one.shared:7,} {one.shuffles:8,} {one.barriers:8,} {one.sectors_per_load:7.2f} {one.loaded_used:5.0%} "
            f"{one.bank_passes:5.2f} {one.missed_bytes / 1024:6,.0f}kB"
        )
    return lines
