"""Published figures of the A100, by which counted work becomes time. Nothing here is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """Bytes, hertz, and units or bytes a clock; by multiprocessor where the name ends in _each."""

    name: str = "A100-SXM4-40GB"
    multiprocessors: int = 108  # NVIDIA A100 whitepaper
    clock: float = 1.41e9  # boost; NVIDIA A100 whitepaper
    issued_each: int = 4  # instructions of warps, one for each scheduler; NVIDIA A100 whitepaper
    special_each: int = 16  # exponentials or reciprocals; CUDA programming guide, throughput of instructions for 8.0
    memory: float = 40e9  # NVIDIA A100 whitepaper
    memory_rate: float = 1555e9  # bytes per second; NVIDIA A100 whitepaper
    l2: int = 40 * 2**20  # NVIDIA A100 whitepaper
    l2_clock: int = 5120  # read; NVIDIA A100 whitepaper

    def rate(self, each: float) -> float:
        return each * self.multiprocessors * self.clock


A100 = Card()
