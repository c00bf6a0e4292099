"""A launch for every group of clauses of like shape, and one for what joins them, step by step.

For batches too small to fill a card with one instance a tile of examples: rows are shared out to instances as
well. And for Z over a batch, where a maximum over all examples stands between the phases of a step. The
workspace is [rows, stride], common to all instances; a launch ends where they must wait for each other.
"""

from __future__ import annotations

from typing import Any

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
from nsfrc.kernels.layout import Band
from nsfrc.kernels.maths import NO_RANK, get_row, put_row
from nsfrc.kernels.step import copy_kept, finish, join_parts, prepare, start, sum_rows

# Pieces of a step between which Z over a batch takes a maximum; with Z of an example they are one launch.
CLAUSES, DERIVED, VALUES, AFTER = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)
# And backwards.
VALUE_CLAIM, DERIVED_CLAIM, CLAUSE_CLAIM, ROWS = tl.constexpr(2), tl.constexpr(3), tl.constexpr(4), tl.constexpr(5)


@triton.jit(do_not_specialize=["batch"])
def clause_start(V0, work, indices, floats, k, batch, stride, L: tl.constexpr):
    """V0 [B, G] into the workspace, and the products of the first step. An instance a tile of examples."""
    lane = tl.program_id(0) * L.wide
    start(V0, indices, floats, work + lane, stride, lane, batch, L)
    tl.debug_barrier()
    prepare(indices, work + lane, stride, k, L)


@triton.jit
def clause_rows(work, indices, floats, k, stride, BAND: tl.constexpr, L: tl.constexpr):
    """C before Z of a band of parts. An instance a tile of examples and a tile of parts."""
    lane = tl.program_id(0) * L.wide
    sum_rows(tl.program_id(1), indices, floats, work + lane, stride, k, BAND, L)


@triton.jit
def to_derived(
    weights, work, indices, floats, k, unit, stride, FIRST: tl.constexpr, LAST: tl.constexpr, L: tl.constexpr
):
    """The pieces CLAUSES and DERIVED: from the rows' sums to R and its Z."""
    if FIRST <= CLAUSES and LAST >= CLAUSES:
        if L.split:
            join_parts(indices, floats, work, stride, k, L)
            tl.debug_barrier()
        clause_maxima(indices, work, stride, k, unit, L)
        tl.debug_barrier()
    if FIRST <= DERIVED and LAST >= DERIVED:
        derive(weights, indices, work, stride, k, unit, L)
        tl.debug_barrier()


@triton.jit(do_not_specialize=["batch", "t", "steps"])
def clause_join(
    weights, out, past, past_z, work, indices, floats, k, unit, batch, stride, t, steps,
    KEEP: tl.constexpr, FIRST: tl.constexpr, LAST: tl.constexpr, L: tl.constexpr,
):
    """What follows the rows: R, V' and the products of the next step, or the outputs after the last.

    To KEEP for gradients, V of every step goes into past [steps + 1, kept, stride] and its Z into past_z.
    """
    lane = tl.program_id(0) * L.wide
    to_derived(weights, work + lane, indices, floats, k, unit, stride, FIRST, LAST, L)
    if FIRST <= VALUES and LAST >= VALUES:
        if KEEP:
            copy_kept(work + lane, stride, past + tl.cast(t, tl.int64) * L.n.kept * stride + lane, stride, True, L)
            tl.debug_barrier()
        update(indices, work + lane, stride, k, unit, L)
        tl.debug_barrier()
    if FIRST <= AFTER and LAST >= AFTER:
        normalise(work + lane, stride, L)
        if KEEP:
            put_row(past_z + lane, t, stride, get_row(work + lane, L.row.value_z, stride, L), L)
        tl.debug_barrier()
        if t + 1 < steps:
            prepare(indices, work + lane, stride, k, L)
        else:
            if KEEP:
                end = past + tl.cast(steps, tl.int64) * L.n.kept * stride + lane
                copy_kept(work + lane, stride, end, stride, True, L)
            finish(out, indices, work + lane, stride, lane, batch, L)


@triton.jit
def load_step(past, past_z, work, indices, stride, k, t, L: tl.constexpr):
    """V at the start of step t, the Z at its end, and the products; pointers are to this tile's first example."""
    copy_kept(work, stride, past + tl.cast(t, tl.int64) * L.n.kept * stride, stride, False, L)
    put_row(work, L.row.value_z, stride, get_row(past_z, t, stride, L), L)
    tl.debug_barrier()
    prepare(indices, work, stride, k, L)


@triton.jit(do_not_specialize=["batch", "steps"])
def clause_start_back(
    g_out, past, past_z, partial, work, indices, k, batch, stride, steps, L: tl.constexpr
):
    """Gradient of the outputs into that of V_T, and the last step's products."""
    lane = tl.program_id(0) * L.wide
    if not L.hard:
        clear_partial(partial + tl.program_id(0).to(tl.int64) * L.n.mixtures * (L.n.pairs + L.n.clauses), L)
    first_gradient(g_out, indices, work + lane, stride, lane, batch, L)
    put_row(work + lane, L.row.x + L.n.active, stride, tl.full((L.wide,), 1.0, tl.float32), L)
    if L.exact:
        put_row(work + lane, L.row.start_false, stride, get_row(past + lane, L.false, stride, L), L)
    load_step(past + lane, past_z + lane, work + lane, indices, stride, k, steps - 1, L)


@triton.jit(do_not_specialize=["t"])
def clause_join_back(
    weights, past, partial, work, indices, floats, k, unit, stride, t,
    FIRST: tl.constexpr, LAST: tl.constexpr, L: tl.constexpr,
):
    """From the rows of a recomputed step to the gradients of every pair."""
    lane = tl.program_id(0) * L.wide
    to_derived(weights, work + lane, indices, floats, k, unit, stride, FIRST, LAST, L)
    if FIRST <= VALUE_CLAIM and LAST >= VALUE_CLAIM:
        after = past + tl.cast(t + 1, tl.int64) * L.n.kept * stride + lane
        value_claim(after, stride, indices, work + lane, stride, L)
        tl.debug_barrier()
    if FIRST <= DERIVED_CLAIM and LAST >= DERIVED_CLAIM:
        through_values(indices, work + lane, stride, k, unit, L)
        tl.debug_barrier()
        derived_claim(work + lane, stride, unit, L)
        tl.debug_barrier()
    if FIRST <= CLAUSE_CLAIM and LAST >= CLAUSE_CLAIM:
        through_derived_z(work + lane, stride, L)
        tl.debug_barrier()
        if L.hard:
            through_hard(indices, work + lane, stride, k, L)
        else:
            mine = partial + tl.program_id(0).to(tl.int64) * L.n.mixtures * (L.n.pairs + L.n.clauses)
            through_soft(weights, mine, indices, work + lane, stride, k, unit, L)
        tl.debug_barrier()
        through_clauses(weights, indices, work + lane, stride, k, unit, L)
        tl.debug_barrier()
    if FIRST <= ROWS and LAST >= ROWS:
        through_clause_z(indices, floats, work + lane, stride, k, L)


@triton.jit
def clause_uses(work, indices, floats, unit, stride, BAND: tl.constexpr, L: tl.constexpr):
    """Gradients of a band of factors. An instance a tile of examples and a tile of factors."""
    lane = tl.program_id(0) * L.wide
    sum_uses(tl.program_id(1), indices, floats, work + lane, stride, unit, BAND, L)


@triton.jit(do_not_specialize=["batch", "t"])
def clause_end_back(
    V0, g_V0, past, past_z, work, indices, floats, k, batch, stride, t, L: tl.constexpr
):
    """Gradient of V at the start of step t, then the products of the step before, or the gradient of V0."""
    lane = tl.program_id(0) * L.wide
    through_nodes(indices, work + lane, stride, L)
    tl.debug_barrier()
    if t > 0:
        load_step(past + lane, past_z + lane, work + lane, indices, stride, k, t - 1, L)
    else:
        last_gradient(g_V0, V0, indices, floats, work + lane, stride, lane, batch, L)


@triton.jit(do_not_specialize=["tiles"])
def clause_weights(partial, g_weights, indices, tiles, L: tl.constexpr):
    """Gradient of the weights; one instance."""
    sum_partials(partial, tiles, g_weights, indices, L)


@triton.jit(do_not_specialize=["used"])
def spread_largest(work, used, stride, ROW: tl.constexpr, WIDTH: tl.constexpr, L: tl.constexpr):
    """Z over the batch: the largest of a row, in all its lanes. An instance a row."""
    row = work + (ROW + tl.program_id(0)) * stride
    most = tl.full((WIDTH,), 1.0, tl.float32)
    for first in range(0, used, WIDTH):
        lanes = first + tl.arange(0, WIDTH)
        most = tl.maximum(most, tl.load(row + lanes, mask=lanes < used, other=1.0))
    largest = tl.max(most, axis=0)
    tl.debug_barrier()
    for first in range(0, used, WIDTH):
        lanes = first + tl.arange(0, WIDTH)
        tl.store(row + lanes, tl.full((WIDTH,), 1.0, tl.float32) * largest, mask=lanes < used)


@triton.jit(do_not_specialize=["used"])
def spread_claim(work, used, stride, G_Z: tl.constexpr, CLAIM: tl.constexpr, WIDTH: tl.constexpr, L: tl.constexpr):
    """Gradient of a Z over the batch: all of it to the lane of lowest rank, the first of equals. An instance a row."""
    given, claim = work + (G_Z + tl.program_id(0)) * stride, work + (CLAIM + tl.program_id(0)) * stride
    total = tl.full((WIDTH,), 0.0, tl.float32)
    least = tl.full((WIDTH,), NO_RANK, tl.float32)
    for first in range(0, used, WIDTH):
        lanes = first + tl.arange(0, WIDTH)
        total += tl.load(given + lanes, mask=lanes < used, other=0.0)
        rank = tl.load(claim + lanes, mask=lanes < used, other=-1.0)
        least = tl.minimum(least, tl.where(rank >= 0, rank, NO_RANK))
    whole, best = tl.sum(total, axis=0), tl.min(least, axis=0)
    winner = tl.full((WIDTH,), 2147483647, tl.int32)
    for first in range(0, used, WIDTH):
        lanes = first + tl.arange(0, WIDTH)
        rank = tl.load(claim + lanes, mask=lanes < used, other=-1.0)
        winner = tl.minimum(winner, tl.where(rank == best, lanes, 2147483647))
    first_lane = tl.min(winner, axis=0)
    tl.debug_barrier()
    for first in range(0, used, WIDTH):
        lanes = first + tl.arange(0, WIDTH)
        tl.store(given + lanes, tl.where(lanes == first_lane, whole, 0.0), mask=lanes < used)


# Lanes that a maximum over the batch reads at a time.
SPREAD = 256


def forward(job: Job, V0: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, Past]:
    """V0 [B, G], weights [M, C] (any when hard) → outputs [B, outputs] and what `backward` needs."""
    batch, layout, tables = len(V0), job.layout, (job.indices, job.floats)
    tiles, row_stride = job.tiles(batch), stride(batch)
    out, past, work = job.empty(batch, layout.n.outputs), Past.new(job, batch), job.empty(layout.row.end, row_stride)
    job.launch(clause_start, (tiles,), V0, work, *tables, job.k, batch, row_stride)
    for t in range(job.steps):
        _over_bands(job, clause_rows, layout.sums, tiles, work, *tables, job.k, row_stride)
        for first, last in _pieces(job, AFTER.value):
            job.launch(
                clause_join, (tiles,), weights, out, past.values, past.z, work, *tables, job.k, job.unit,
                batch, row_stride, t, job.steps, KEEP=job.keep and last >= VALUES.value, FIRST=first, LAST=last,
            )
            if job.whole_batch and last < AFTER.value:
                _spread_largest(job, work, tiles * layout.wide, row_stride, last)
    return out, past


def backward(
    job: Job, V0: torch.Tensor, weights: torch.Tensor, g_out: torch.Tensor, past: Past
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of V0 [B, G] and of weights [M, C] (undefined when hard)."""
    batch, layout, tables = len(V0), job.layout, (job.indices, job.floats)
    tiles, row_stride = job.tiles(batch), stride(batch)
    g_V0, g_weights, partial = job.empty(*V0.shape), job.empty(*weights.shape), job.partial(tiles)
    work = job.empty(layout.row.end, row_stride)
    job.launch(
        clause_start_back, (tiles,), g_out, past.values, past.z, partial, work, job.indices, job.k,
        batch, row_stride, job.steps,
    )
    for t in reversed(range(job.steps)):
        _over_bands(job, clause_rows, layout.sums, tiles, work, *tables, job.k, row_stride)
        for first, last in _pieces(job, ROWS.value):
            job.launch(
                clause_join_back, (tiles,), weights, past.values, partial, work, *tables, job.k, job.unit,
                row_stride, t, FIRST=first, LAST=last,
            )
            if job.whole_batch and last < VALUE_CLAIM.value:
                _spread_largest(job, work, tiles * layout.wide, row_stride, last)
            elif job.whole_batch and last < ROWS.value:
                rows = layout.n.clauses if last == CLAUSE_CLAIM.value else 1
                kernel_rows = {"G_Z": layout.row.g_z, "CLAIM": layout.row.claim}
                job.launch(spread_claim, (rows,), work, tiles * layout.wide, row_stride, WIDTH=SPREAD, **kernel_rows)
        _over_bands(job, clause_uses, layout.uses, tiles, work, *tables, job.unit, row_stride)
        job.launch(
            clause_end_back, (tiles,), V0, g_V0, past.values, past.z, work, *tables, job.k, batch, row_stride, t
        )
    if not layout.hard:
        job.launch(clause_weights, (1,), partial, g_weights, job.indices, tiles)
    return g_V0, g_weights


def _over_bands(job: Job, kernel: Any, bands: tuple[Band, ...], tiles: int, *arguments: Any) -> None:
    for band in bands:
        segments = job.layout.tall // band.width
        # Examples come first: that axis of a grid may have 2^31 - 1 instances, the second only 65,535.
        job.launch(kernel, (tiles, -(-(band.last - band.first) // segments)), *arguments, BAND=band)


def _pieces(job: Job, last: int) -> list[tuple[int, int]]:
    """First and last piece of every launch: all in one, unless the batch must wait after each."""
    return [(i, i) for i in range(last + 1)] if job.whole_batch else [(0, last)]


def _spread_largest(job: Job, work: torch.Tensor, used: int, row_stride: int, piece: int) -> None:
    row, n = job.layout.row, job.layout.n
    first, rows = {
        CLAUSES.value: (row.clause_z, n.clauses), DERIVED.value: (row.derived_z, 1), VALUES.value: (row.value_z, 1),
    }[piece]
    job.launch(spread_largest, (rows,), work, used, row_stride, ROW=first, WIDTH=SPREAD)
