"""The rows of one step of reasoning, on a tile of examples: from V to C before Z.

Every phase, here and in `derive`, reads and writes rows of a workspace; `layout.Rows` says what they hold. `work`
points to the first row at the first example of this tile, and `stride` is the distance of two rows. A phase ends
where another needs all of its results: the whole-program kernel puts a barrier there, the per-clause kernels a
launch, and the scope of Z over a batch a maximum over all lanes.
"""

from __future__ import annotations

import triton
import triton.language as tl

from nsfrc.kernels.maths import LOWEST, examples, get, get_all, get_row, power, put, put_row, rounded


@triton.jit
def starting(V0, indices, floats, slot, ok, example, L: tl.constexpr):
    """Starting values of slots [n]: [n, lanes], from V0 [B, G] or the program."""
    atom = tl.load(indices + L.at.member + slot, mask=ok, other=0)
    value = tl.load(V0 + example[None, :] * L.n.atoms + atom[:, None], mask=ok[:, None], other=0.0)
    if L.neural_only:
        constant = tl.load(floats + L.of.constant + atom)
        value = tl.where((constant >= 0)[:, None], constant[:, None], value)
    return value


@triton.jit(noinline=True)
def start(V0, indices, floats, work, stride, first_example, batch, L: tl.constexpr):
    """V0 into the rows of V; where only targets are asked for, the largest passive atom stands for all."""
    example, _ = examples(first_example, batch, L)
    for first in range(0, L.n.active, L.tall):
        slot = first + tl.arange(0, L.tall)
        ok = slot < L.n.active
        put(work, L.row.x + slot, stride, ok, starting(V0, indices, floats, slot, ok, example, L), L)
    put_row(work, L.row.x + L.n.active, stride, tl.full((L.wide,), 1.0, tl.float32), L)
    if L.n.kept == L.n.slots:
        for first in range(L.n.active, L.n.slots, L.tall):
            slot = first + tl.arange(0, L.tall)
            ok = slot < L.n.slots
            value = starting(V0, indices, floats, slot, ok, example, L)
            put(work, L.row.rest - L.n.active + slot, stride, ok, value, L)
    else:
        put_row(work, L.row.rest, stride, largest_passive(V0, indices, floats, example, L), L)


@triton.jit
def largest_passive(V0, indices, floats, example, L: tl.constexpr):
    most = tl.full((L.tall, L.wide), LOWEST, tl.float32)
    for first in range(L.n.active, L.n.slots, L.tall):
        slot = first + tl.arange(0, L.tall)
        ok = slot < L.n.slots
        value = starting(V0, indices, floats, slot, ok, example, L)
        most = tl.maximum(most, tl.where(ok[:, None], value, LOWEST))
    return tl.max(most, axis=0)


@triton.jit
def kept_row(slot, L: tl.constexpr):
    """Row of the workspace that holds V of a kept slot."""
    return tl.where(slot < L.n.active, L.row.x + slot, L.row.rest - L.n.active + slot)


@triton.jit(noinline=True)
def prepare(indices, work, stride, k, L: tl.constexpr):
    """Powers of true and false, and the products that rows share."""
    true = get_row(work, L.row.x + L.true, stride, L)
    false = get_row(work, L.row.x + L.false, stride, L)
    put_row(work, L.row.bottom, stride, power(false, L.length, L.power_bits), L)
    for p in range(L.n.powers):
        n = tl.load(indices + L.at.power + p)
        put_row(work, L.row.scale + p, stride, power(true, n, L.power_bits) * k, L)
        if L.gradient:
            slope = n.to(tl.float32) * power(true, tl.maximum(n, 1) - 1, L.power_bits)
            put_row(work, L.row.slope + p, stride, slope, L)
    for level in range(L.n.levels):
        last = tl.load(indices + L.at.level + level + 1)
        for first in range(tl.load(indices + L.at.level + level), last, L.tall):
            node = first + tl.arange(0, L.tall)
            ok = node < last
            left = tl.load(indices + L.at.node_left + node, mask=ok, other=0)
            right = tl.load(indices + L.at.node_right + node, mask=ok, other=0)
            value = get(work, L.row.x + left, stride, ok, L) * get(work, L.row.x + right, stride, ok, L)
            put(work, L.row.x + L.n.active + 1 + node, stride, ok, value, L)
        tl.debug_barrier()


@triton.jit(noinline=True)
def sum_rows(tile, indices, floats, work, stride, k, BAND: tl.constexpr, L: tl.constexpr):
    """C before Z of a tile of pairs, or of parts of pairs: a running soft-or over their rows."""
    W: tl.constexpr = BAND.width
    P: tl.constexpr = L.tall // W
    place = BAND.first + tile * P
    segment = place + tl.arange(0, P)
    ok = segment < BAND.last
    part = tl.load(indices + L.at.part + segment, mask=ok, other=0)
    begin = tl.load(indices + L.at.part_start + segment, mask=ok, other=0)
    count = tl.load(indices + L.at.part_count + segment, mask=ok, other=0)
    most = tl.full((P, L.wide), LOWEST, tl.float32)
    total = tl.full((P, L.wide), 0.0, tl.float32)
    by_true = tl.full((P, L.wide), 0.0, tl.float32)
    for done in range(0, tl.load(indices + L.at.part_count + place), W):
        entry = done + tl.arange(0, W)[None, :]
        inside = entry < count[:, None]
        row = begin[:, None] + entry
        left = tl.load(indices + L.at.row_left + row, mask=inside, other=L.n.active)
        right = tl.load(indices + L.at.row_right + row, mask=inside, other=L.n.active)
        n = tl.load(indices + L.at.row_power + row, mask=inside, other=0)
        times = tl.load(floats + L.of.row_times + row, mask=inside, other=0.0)
        product = get_all(work, L.row.x + left, stride, L) * get_all(work, L.row.x + right, stride, L)
        bits = product * get_all(work, L.row.scale + n, stride, L)
        bits = tl.where(inside[:, :, None], bits, LOWEST)
        higher = tl.maximum(most, tl.max(bits, axis=1))
        fade = tl.exp2(most - higher)
        weight = rounded(times[:, :, None] * tl.exp2(bits - higher[:, None, :]))
        total = total * fade + tl.sum(weight, axis=1)
        if L.gradient:
            slope = get_all(work, L.row.slope + n, stride, L)
            by_true = by_true * fade + tl.sum(rounded(weight * product * slope), axis=1)
        most = higher
    if not L.split:
        padding = tl.load(floats + L.of.padding + part, mask=ok, other=1.0)[:, None]
        bottom = get_row(work, L.row.bottom, stride, L)[None, :] * k
        higher = tl.maximum(most, tl.where(padding > 0, bottom, LOWEST))
        fade = tl.exp2(most - higher)
        total = total * fade + padding * tl.exp2(tl.minimum(bottom - higher, 0.0))
        by_true = by_true * fade
        most = higher
    total = tl.where(ok[:, None], total, 1.0)
    put(work, L.row.part + part, stride, ok, most + tl.log2(total), L)
    if L.gradient:
        put(work, L.row.by_true + part, stride, ok, by_true / total, L)


@triton.jit(noinline=True)
def join_parts(indices, floats, work, stride, k, L: tl.constexpr):
    """C before Z of every pair whose rows were shared out: the soft-or of its parts and its padding."""
    bottom = get_row(work, L.row.bottom, stride, L)[None, :] * k
    for first in range(0, L.n.pairs, L.tall):
        pair = first + tl.arange(0, L.tall)
        ok = pair < L.n.pairs
        begin = tl.load(indices + L.at.pair_parts + pair, mask=ok, other=0)
        count = tl.load(indices + L.at.pair_parts + pair + 1, mask=ok, other=0) - begin
        padding = tl.load(floats + L.of.padding + pair, mask=ok, other=1.0)[:, None]
        most = tl.where(padding > 0, bottom, LOWEST)
        total = tl.where(padding > 0, padding, 0.0) + tl.full((L.tall, L.wide), 0.0, tl.float32)
        for j in range(tl.max(count, axis=0)):
            inside = j < count
            bits = get(work, L.row.part + begin + j, stride, inside, L)
            bits = tl.where(inside[:, None], bits, LOWEST)
            higher = tl.maximum(most, bits)
            total = total * tl.exp2(most - higher) + tl.where(inside[:, None], tl.exp2(bits - higher), 0.0)
            most = higher
        put(work, L.row.pair + pair, stride, ok, most + tl.log2(total), L)


@triton.jit(noinline=True)
def copy_kept(work, stride, past, past_stride, SAVE: tl.constexpr, L: tl.constexpr):
    """V of all kept slots into past [kept, B], or back."""
    for first in range(0, L.n.kept, L.tall):
        slot = first + tl.arange(0, L.tall)
        ok = slot < L.n.kept
        row, past_row = kept_row(slot, L), slot.to(tl.int64)
        if SAVE:
            put(past, past_row, past_stride, ok, get(work, row, stride, ok, L), L)
        else:
            put(work, row, stride, ok, get(past, past_row, past_stride, ok, L), L)


@triton.jit(noinline=True)
def finish(out, indices, work, stride, first_example, batch, L: tl.constexpr):
    """Values of the output atoms into out [B, outputs]."""
    example, inside = examples(first_example, batch, L)
    for first in range(0, L.n.outputs, L.tall):
        output = first + tl.arange(0, L.tall)
        ok = output < L.n.outputs
        slot = tl.load(indices + L.at.output + output, mask=ok, other=0)
        value = get(work, kept_row(slot, L), stride, ok, L)
        place = out + example[None, :] * L.n.outputs + output[:, None]
        tl.store(place, value, mask=ok[:, None] & inside[None, :])
