"""Kernels written by hand, and run on numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from nsfrc.engines.ptx.counts import Counts
from nsfrc.engines.ptx.machine import Loaded, Machine
from nsfrc.engines.ptx.memory import Device
from nsfrc.engines.ptx.parse import parse

# Every thread has its number in %r0, the address of its word of argument i in %rd<i>, and of its first in %rd<20 + i>.
KERNEL = """
.version 8.7
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 global_smem[];
.visible .entry k({parameters}
)
.reqntid {threads}
{{
	.reg .pred 	%p<16>;
	.reg .b16 	%h<16>;
	.reg .b32 	%r<64>;
	.reg .b64 	%rd<40>;
{loads}
	mov.u32 	%r0, %tid.x;
{addresses}
{body}
	ret;
}}
"""


def text(body: str, arguments: int, threads: int = 32) -> str:
    return KERNEL.format(
        parameters=",".join(f"\n\t.param .u64 k_param_{i}" for i in range(arguments)), threads=threads, body=body,
        loads="\n".join(f"\tld.param.b64 	%rd{20 + i}, [k_param_{i}];" for i in range(arguments)),
        addresses="\n".join(f"\tmad.wide.u32 	%rd{i}, %r0, 4, %rd{20 + i};" for i in range(arguments)),
    )


def loaded(ptx: str, threads: int = 32, shared: int = 0) -> Loaded:
    return Loaded(parse(ptx), shared, threads // 32, "k", "sm_80")


def run(
    body: str, *arrays: np.ndarray, threads: int = 32, grid: tuple[int, ...] = (1,), shared: int = 0,
    counted: bool = False, **options: Any,
) -> Machine:
    """Arrays of 4-byte elements are the arguments, and written in place."""
    machine = Machine(
        loaded(text(body, len(arrays), threads), threads, shared), grid, counts=Counts() if counted else None, **options
    )
    device = Device(machine, [(f"argument{i}", one.view(np.uint32), 0) for i, one in enumerate(arrays)])
    machine.run(device, [device.address(i) for i in range(len(arrays))])
    device.finish()
    return machine


def found(machine: Machine) -> list[str]:
    return sorted({one.kind for one in machine.findings})
