"""The whole program in one launch: all clauses and all steps, an instance owning a tile of examples.

An instance has a workspace of its own and goes from tile to tile, so that work is done in memory that stays in
cache however large the batch is. Nothing passes between instances but the gradient of the weights, which the
last one to end adds up.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from nsfrc.kernels.derive import clause_maxima, derive, normalise, update
from nsfrc.kernels.factors import clear_partial, last_gradient, sum_partials, sum_uses, through_clause_z, through_nodes
from nsfrc.kernels.gradients import (
    derived_claim,
    first_gradient,
    through_clauses,
    through_derived_z,
    through_hard,
    through_soft,
    through_values,
    value_claim,
)
from nsfrc.kernels.launch import Job, Past, stride
from nsfrc.kernels.maths import get_row, put_row
from nsfrc.kernels.step import copy_kept, finish, prepare, start, sum_rows


@triton.jit
def all_rows(indices, floats, work, k, L: tl.constexpr):
    """C before Z of every pair."""
    tl.debug_barrier()
    for band in tl.static_range(len(L.sums)):
        tiles = tl.cdiv(L.sums[band].last - L.sums[band].first, L.tall // L.sums[band].width)
        # The first tile apart: before a call in a loop stands a barrier of the compiler's, and one was just passed.
        sum_rows(tl.cast(0, tl.int32), indices, floats, work, L.wide, k, L.sums[band], L)
        for tile in range(1, tiles):
            sum_rows(tile, indices, floats, work, L.wide, k, L.sums[band], L)


@triton.jit
def reason(weights, indices, floats, work, k, unit, L: tl.constexpr):
    """R of every head and its Z, from V in the workspace."""
    prepare(indices, work, L.wide, k, L)
    all_rows(indices, floats, work, k, L)
    tl.debug_barrier()
    clause_maxima(indices, work, L.wide, k, unit, L)
    tl.debug_barrier()
    derive(weights, indices, work, L.wide, k, unit, L)
    tl.debug_barrier()


@triton.jit(do_not_specialize=["batch", "steps"])
def program_forward(
    V0, weights, out, past, past_z, ticket, work, indices, floats, k, unit, batch, stride, steps,
    KEEP: tl.constexpr, L: tl.constexpr,
):
    """V0 [B, G] → out [B, outputs]. To KEEP for gradients, V of every step into past [steps + 1, kept, stride] and its
    Z into past_z [steps, stride], and for those of the weights 0 into ticket."""
    work += tl.program_id(0).to(tl.int64) * L.row.end * L.wide
    if KEEP and not L.hard:
        tl.store(ticket, 0)
    for tile in range(tl.program_id(0), tl.cdiv(batch, L.wide), tl.num_programs(0)):
        first = tile * L.wide
        start(V0, indices, floats, work, L.wide, first, batch, L)
        tl.debug_barrier()
        for t in range(steps):
            if KEEP:
                copy_kept(work, L.wide, past + tl.cast(t, tl.int64) * L.n.kept * stride + first, stride, True, L)
            reason(weights, indices, floats, work, k, unit, L)
            update(indices, work, L.wide, k, unit, L)
            tl.debug_barrier()
            normalise(work, L.wide, L)
            if KEEP:
                put_row(past_z + first, t, stride, get_row(work, L.row.value_z, L.wide, L), L)
            tl.debug_barrier()
        if KEEP:
            copy_kept(work, L.wide, past + tl.cast(steps, tl.int64) * L.n.kept * stride + first, stride, True, L)
        finish(out, indices, work, L.wide, first, batch, L)
        tl.debug_barrier()


@triton.jit(do_not_specialize=["batch", "steps"])
def program_backward(
    V0, weights, g_out, g_V0, g_weights, past, past_z, ticket, partial, work, indices, floats, k, unit, batch, stride,
    steps, L: tl.constexpr,
):
    """g_out [B, outputs] → g_V0 [B, G] and, unless hard, g_weights [M, C]."""
    instance, instances = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    work += instance * L.row.end * L.wide
    mine = partial + instance * L.n.mixtures * (L.n.pairs + L.n.clauses)
    if not L.hard:
        clear_partial(mine, L)
        tl.debug_barrier()  # an instance without a tile comes to the ticket at once
    for tile in range(tl.program_id(0), tl.cdiv(batch, L.wide), instances):
        first = tile * L.wide
        first_gradient(g_out, indices, work, L.wide, first, batch, L)
        put_row(work, L.row.x + L.n.active, L.wide, tl.full((L.wide,), 1.0, tl.float32), L)
        if L.exact:
            put_row(work, L.row.start_false, L.wide, get_row(past + first, L.false, stride, L), L)
        for back in range(steps):
            t = steps - 1 - back
            before = past + tl.cast(t, tl.int64) * L.n.kept * stride + first
            copy_kept(work, L.wide, before, stride, False, L)
            put_row(work, L.row.value_z, L.wide, get_row(past_z + first, t, stride, L), L)
            tl.debug_barrier()
            reason(weights, indices, floats, work, k, unit, L)
            after = past + tl.cast(t + 1, tl.int64) * L.n.kept * stride + first
            value_claim(after, stride, indices, work, L.wide, L)
            tl.debug_barrier()
            through_values(indices, work, L.wide, k, unit, L)
            tl.debug_barrier()
            derived_claim(work, L.wide, unit, L)
            tl.debug_barrier()
            through_derived_z(work, L.wide, L)
            tl.debug_barrier()
            if L.hard:
                through_hard(indices, work, L.wide, k, L)
            else:
                through_soft(weights, mine, indices, work, L.wide, k, unit, L)
            tl.debug_barrier()
            through_clauses(weights, indices, work, L.wide, k, unit, L)
            tl.debug_barrier()
            through_clause_z(indices, floats, work, L.wide, k, L)
            tl.debug_barrier()
            for band in tl.static_range(len(L.uses)):
                tiles = tl.cdiv(L.uses[band].last - L.uses[band].first, L.tall // L.uses[band].width)
                sum_uses(tl.cast(0, tl.int32), indices, floats, work, L.wide, unit, L.uses[band], L)
                for use in range(1, tiles):
                    sum_uses(use, indices, floats, work, L.wide, unit, L.uses[band], L)
            tl.debug_barrier()
            through_nodes(indices, work, L.wide, L)
            tl.debug_barrier()
        last_gradient(g_V0, V0, indices, floats, work, L.wide, first, batch, L)
        tl.debug_barrier()
    if not L.hard:
        ended = tl.atomic_add(ticket, 1)
        if ended == instances - 1:
            tl.debug_barrier()  # `ended` came by way of shared memory, which the sum uses again
            sum_partials(partial, instances, g_weights, indices, L)
            tl.store(ticket, 0)  # as it was, for another backward pass


def forward(job: Job, V0: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, Past]:
    """V0 [B, G], weights [M, C] (any when hard) → outputs [B, outputs] and what `backward` needs."""
    batch, layout = len(V0), job.layout
    instances = min(job.instances, job.tiles(batch))
    out, past = job.empty(batch, layout.n.outputs), Past.new(job, batch)
    work = job.empty(instances, layout.row.end, layout.wide)
    job.launch(
        program_forward, (instances,), V0, weights, out, past.values, past.z, past.ticket, work,
        job.indices, job.floats, job.k, job.unit, batch, stride(batch), job.steps, KEEP=job.keep,
    )
    return out, past


def backward(
    job: Job, V0: torch.Tensor, weights: torch.Tensor, g_out: torch.Tensor, past: Past
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of V0 [B, G] and of weights [M, C] (undefined when hard)."""
    batch, layout = len(V0), job.layout
    instances = min(job.instances, job.tiles(batch))
    g_V0, g_weights, partial = job.empty(*V0.shape), job.empty(*weights.shape), job.partial(instances)
    work = job.empty(instances, layout.row.end, layout.wide)
    job.launch(
        program_backward, (instances,), V0, weights, g_out, g_V0, g_weights, past.values, past.z, past.ticket,
        partial, work, job.indices, job.floats, job.k, job.unit, batch, stride(batch), job.steps,
    )
    return g_V0, g_weights
