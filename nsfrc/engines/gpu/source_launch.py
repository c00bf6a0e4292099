"""What an emitted file has around its kernels, as templates: how it begins, and how it starts them."""

from __future__ import annotations

from string import Template

BEGINNING = Template('''\
"""$name: soft forward reasoning in fused Triton kernels. Made by nsfrc $version; edit the program, not this file.

    V0 = initial_valuation(8, "cuda")  # [8, $atoms]: one row per example, one column per atom of ATOMS$example
    reasoned = forward(V0)  # [8, $outputs]: one column per $column$differentiable

Needs torch and triton, and a CUDA device. With TRITON_INTERPRET=1 set before Python starts it runs on CPU tensors,
slowly. That is how nsfrc's own tests run such files, besides compiling them for the A100; those who wrote it had no
GPU to run them on.
"""
''')

IMPORTS = '''\
from functools import cache

import torch
import triton
import triton.language as tl
'''
ONCE = "from torch.autograd.function import once_differentiable\n"

STATIC = '''
INTERPRETED = bool(triton.knobs.runtime.interpret)


def static(value):
    """A number that kernels may read: compiled ones as a tl.constexpr, interpreted ones as it is."""
    return value if INTERPRETED else tl.constexpr(value)
'''

TABLES = '''\
@cache
def tables(device):
    """INDICES and FLOATS on a device, moved there once."""
    return (
        torch.tensor(INDICES, dtype=torch.int32, device=device),
        torch.tensor(FLOATS, dtype=torch.float32, device=device),
    )


def instances(V0):
    """Instances of a kernel: as many as run at once, or as there are tiles of examples."""
    multiprocessors = torch.cuda.get_device_properties(V0.device).multi_processor_count if V0.is_cuda else 1
    return max(1, min(INSTANCES_PER_MULTIPROCESSOR * multiprocessors, triton.cdiv(len(V0), int(WIDE))))
'''

RUN_FORWARD = Template('''\
def run_forward(V0$keep_parameter):
    """V0 [B, G] → out [B, outputs]$and_past."""
    batch, grid = len(V0), (instances(V0),)
    indices, floats = tables(V0.device)
    out = V0.new_empty(batch, int(N_OUTPUTS))
$past    work = V0.new_empty(grid[0], int(WORK_END), int(WIDE))
    with torch.cuda.device_of(V0):
        program_forward[grid](
$arguments
        )
    return $result
''')
PAST = '''\
    stride = row_stride(batch)
    past = V0.new_empty((STEPS + 1) * int(N_KEPT) * stride if keep else 1)
    past_z = V0.new_empty(STEPS * stride if keep else 1)
'''

STRIDE = '''\
def row_stride(batch):
    """Distance of two rows of what is kept for gradients: whole lines of 32 examples."""
    return triton.cdiv(batch, 32) * 32
'''

RUN_BACKWARD = Template('''\
def run_backward(V0, g_out, past, past_z):
    """Gradient of V0 [B, G] from that of the outputs [B, outputs] and what the forward pass kept."""
    batch, stride, grid = len(V0), row_stride(len(V0)), (instances(V0),)
    indices, floats = tables(V0.device)
    g_V0 = torch.empty_like(V0)
    work = V0.new_empty(grid[0], int(WORK_END), int(WIDE))
    with torch.cuda.device_of(V0):
        program_backward[grid](
$arguments
        )
    return g_V0


class Reasoned(torch.autograd.Function):
    """The forward pass as torch differentiates it."""

    @staticmethod
    def forward(ctx, V0):
        out, past, past_z = run_forward(V0, keep=True)
        ctx.save_for_backward(V0, past, past_z)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, g_out):
        V0, past, past_z = ctx.saved_tensors
        return run_backward(V0, g_out.contiguous(), past, past_z)
''')

FORWARD = Template('''\
def initial_valuation(batch=1, device=None):
    """V0 [batch, G] as the program has it: 1 for true and the facts, 0 elsewhere. NEURAL atoms are yours to fill."""
    return torch.tensor($start, device=device).clamp(min=0.0).repeat(batch, 1)


def forward(V0: torch.Tensor) -> torch.Tensor:
    """Reason $steps: V0 [B, $atoms], one column per atom of ATOMS → [B, $outputs], one column per $column.

    Only NEURAL atoms are read from V0$gradients_too; all others start as the program says.
    """
    if V0.ndim != 2 or V0.shape[1] != len(ATOMS):
        raise ValueError(f"V0 has shape {list(V0.shape)}; it must be [B, {len(ATOMS)}], one column per atom of ATOMS")
    if V0.dtype != torch.float32:
        raise ValueError(f"V0 is {V0.dtype}; the kernels compute in float32: give them V0.float()")
    if not V0.is_cuda and not INTERPRETED:
        raise ValueError(
            f"V0 is on {V0.device}; the kernels need it on a CUDA device "
            "(or TRITON_INTERPRET=1, set before Python starts, which is slow)"
        )
$choice


if __name__ == "__main__":
    reasoned = forward(initial_valuation(device="cuda" if torch.cuda.is_available() else "cpu"))
    for name, value in zip($names, reasoned[0].tolist(), strict=True):
        print(f"{name}: {value:.6f}")
''')
DIFFERENTIABLE = '''\
    if V0.requires_grad and torch.is_grad_enabled():
        return Reasoned.apply(V0.contiguous())
    return run_forward(V0.contiguous(), keep=False)[0]'''
VALUES_ONLY = '''\
    if V0.requires_grad and torch.is_grad_enabled():
        raise ValueError("this file was made without gradients: give it V0.detach()")
    return run_forward(V0.contiguous())'''
