"""What an emitted file of an `anchored` program has around its kernels, as templates."""

from __future__ import annotations

from string import Template

IMPORTS = '''\
import torch
import triton
import triton.language as tl
'''
ONCE = "from torch.autograd.function import once_differentiable\n"
INTERPRETED = "\nINTERPRETED = bool(triton.knobs.runtime.interpret)\n"

WRITTEN_FORWARD = Template('''\
# No multiplication is fused with an addition: a reason must be rounded as it was when it was the largest.
OPTIONS = {"num_warps": 1, "enable_fp_fusion": False}


def launch(kernel, V0, *arguments):
    """An instance is a warp of $lanes examples."""
    if len(V0):
        with torch.cuda.device_of(V0):
            kernel[(triton.cdiv(len(V0), $lanes),)](V0, *arguments, K, UNIT, len(V0), **OPTIONS)


def run_forward(V0):
    """V0 [B, G] → out [B, outputs]."""
    out = V0.new_empty(len(V0), $outputs)
    launch(written_forward, V0, out)
    return out
''')
WRITTEN_BACKWARD = '''\
class Reasoned(torch.autograd.Function):
    """The forward pass as torch differentiates it."""

    @staticmethod
    def forward(ctx, V0):
        ctx.save_for_backward(V0)
        return run_forward(V0)

    @staticmethod
    @once_differentiable
    def backward(ctx, g_out):
        (V0,) = ctx.saved_tensors
        g_V0 = torch.empty_like(V0)
        launch(written_backward, V0, g_out.contiguous(), g_V0)
        return g_V0
'''
WRITTEN_DIFFERENTIABLE = '''\
    if V0.requires_grad and torch.is_grad_enabled():
        return Reasoned.apply(V0.contiguous())
    return run_forward(V0.contiguous())'''

TABLES = Template('''\
# Launching. An instance takes one tile of examples after the other; so many run at once.
# No multiplication is fused with an addition: a reason must be rounded as it was when it was the largest.
OPTIONS = {"num_warps": $warps, "maxnreg": $registers, "enable_fp_fusion": False}
INSTANCES_PER_MULTIPROCESSOR = $instances
$kept

@cache
def tables(device):
    """INTS and FLOATS on a device, moved there once."""
    return (
        torch.tensor(INTS, dtype=torch.int32, device=device),
        torch.tensor(FLOATS, dtype=torch.float32, device=device),
    )


def instances(V0):
    """As many as run at once, or as there are tiles of examples."""
    multiprocessors = torch.cuda.get_device_properties(V0.device).multi_processor_count if V0.is_cuda else 1
    return max(1, min(INSTANCES_PER_MULTIPROCESSOR * multiprocessors, triton.cdiv(len(V0), int(WIDE))))
''')
TABLES_FORWARD = Template('''\
def run_forward(V0$keep_parameter):
    """V0 [B, G] → out [B, outputs]$and_past."""
    batch, grid = len(V0), (instances(V0),)
    ints, floats = tables(V0.device)
    out = V0.new_empty(batch, int(N_OUTPUTS))
$room    with torch.cuda.device_of(V0):
        anchored_forward[grid](
$arguments
        )
    return $result
''')
ROOM = "    x = V0.new_empty(grid[0] * int(WORK_TOP) * int(WIDE))\n"
ROOM_TO_KEEP = '''\
    stride = triton.cdiv(batch, 32) * 32
    x = V0.new_empty(ROWS * stride if keep else grid[0] * int(WORK_TOP) * int(WIDE))
'''
TABLES_BACKWARD = Template('''\
def run_backward(V0, g_out, x):
    """Gradient of V0 [B, G] from that of the outputs [B, outputs] and what the forward pass kept."""
    batch, stride, grid = len(V0), triton.cdiv(len(V0), 32) * 32, (instances(V0),)
    ints, floats = tables(V0.device)
    g_V0 = torch.empty_like(V0)
    g = V0.new_empty(grid[0] * int(WORK_CHOSEN) * int(WIDE))
    with torch.cuda.device_of(V0):
        anchored_backward[grid](
$arguments
        )
    return g_V0


class Reasoned(torch.autograd.Function):
    """The forward pass as torch differentiates it."""

    @staticmethod
    def forward(ctx, V0):
        out, x = run_forward(V0, keep=True)
        ctx.save_for_backward(V0, x)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, g_out):
        V0, x = ctx.saved_tensors
        return run_backward(V0, g_out.contiguous(), x)
''')
