"""The rows of one step of reasoning, on a tile of examples: from V to C before Z.

Every phase, here and in `derive`, reads and writes rows of a workspace; `layout.Rows` says what they hold. `work`
points to the first row at the first example of this tile, and `stride` is the distance of two rows. A phase ends
where another needs all of its results: the whole-program kernel puts a barrier there, the per-clause kernels a
launch, and the scope of Z over a batch a maximum over all lanes.
"""

from __future__ import annotations

import triton
import triton.language as tl

from nsfrc.kernels.maths import (
    LOWEST,
    examples,
    four,
    get,
    get_all,
    get_row,
    log2,
    longest,
    power,
    put,
    put_row,
    rounded,
    two,
)

# What `gradient` says of an atom that starts a passive slot, all of which have one row, and of one that starts none.
PASSIVE = tl.constexpr(-1)
NOTHING = tl.constexpr(-2)

@triton.jit
def starting(V0, floats, atom, ok, example, L: tl.constexpr):
    """Starting values of atoms [n]: [n, lanes], from V0 [B, G] or the program.

    A word a thread, so that a warp reads neighbours: a vector under a mask would be read word by word, each time in
    as many sectors.
    """
    place = tl.multiple_of(V0 + example[None, :] * L.n.atoms + atom[:, None], (4, 4))
    if L.neural_only:
        constant = tl.load(floats + L.of.constant + atom, mask=ok, other=0.0)
        value = tl.load(place, mask=(constant < 0)[:, None], other=0.0)
        value = tl.where((constant >= 0)[:, None], constant[:, None], value)
    else:
        value = tl.load(place, mask=ok[:, None], other=0.0)
    return value


@triton.jit(noinline=True)
def start(V0, indices, floats, work, stride, first_example, batch, L: tl.constexpr):
    """V0 into the rows of V; where only targets are asked for, the largest passive atom stands for all.

    Atoms are read in their order, so that neighbours share a sector; the first atom of a slot is what it starts as.
    """
    example, _ = examples(first_example, batch, L)
    passive = tl.full((L.tall, L.wide), LOWEST, tl.float32)
    for first in range(0, L.n.atoms, L.tall):
        atom = first + tl.arange(0, L.tall)
        slot = tl.load(indices + L.at.gradient + atom, mask=atom < L.n.atoms, other=NOTHING)
        value = starting(V0, floats, atom, slot > NOTHING, example, L)
        put(work, kept_row(slot, L), stride, slot >= 0, value, L)
        if L.n.kept < L.n.slots:
            passive = tl.maximum(passive, tl.where((slot == PASSIVE)[:, None], value, LOWEST))
    put_row(work, L.row.x + L.n.active, stride, tl.full((L.wide,), 1.0, tl.float32), L)
    if L.exact:
        atom = tl.load(indices + L.at.member + L.false)
        put_row(work, L.row.start_false, stride, tl.load(V0 + example * L.n.atoms + atom), L)
    if L.n.kept < L.n.slots:
        put_row(work, L.row.rest, stride, tl.max(passive, axis=0), L)


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
    for p in tl.static_range(len(L.powers)):
        scale = power(true, L.powers[p].n, L.power_bits) * k
        put_row(work, L.row.scale + L.powers[p].place, stride, scale, L)
        if L.gradient:
            slope = L.powers[p].n * power(true, L.powers[p].less, L.power_bits)
            put_row(work, L.row.slope + L.powers[p].place, stride, slope, L)
    for level in range(L.n.levels):
        if level > 0:
            tl.debug_barrier()
        begin, last = two(indices + L.at.level, level, True, 0)
        for first in range(begin, last, L.tall):
            node = first + tl.arange(0, L.tall)
            ok = node < last
            left, right = two(indices + L.at.node, node, ok, 0)
            value = get(work, L.row.x + left, stride, ok, L) * get(work, L.row.x + right, stride, ok, L)
            put(work, L.row.x + L.n.active + 1 + node, stride, ok, value, L)


@triton.jit(noinline=True)
def sum_rows(tile, indices, floats, work, stride, k, BAND: tl.constexpr, L: tl.constexpr):
    """C before Z of a tile of pairs, or of parts of pairs: a running soft-or over their rows."""
    W: tl.constexpr = BAND.width
    P: tl.constexpr = L.tall // W
    place = BAND.first + tile * P
    segment = place + tl.arange(0, P)
    ok = segment < BAND.last
    part, begin, count, padding = four(indices + L.at.part, tl.minimum(segment, BAND.last - 1))
    count = tl.where(ok, count, 0)
    most = tl.full((P, L.wide), LOWEST, tl.float32)
    total = tl.full((P, L.wide), 0.0, tl.float32)
    by_true = tl.full((P, L.wide), 0.0, tl.float32)
    for done in range(0, longest(indices + L.at.part + 4 * place + 2, BAND.entries), W):
        entry = done + tl.arange(0, W)[None, :]
        inside = entry < count[:, None]
        left, right, n, times = four(indices + L.at.row, begin[:, None] + tl.where(inside, entry, 0))
        left, right = tl.where(inside, left, L.n.active), tl.where(inside, right, L.n.active)
        n, times = tl.where(inside, n, 0), tl.where(inside, times, 0)
        product = get_all(work, L.row.x + left, stride, L) * get_all(work, L.row.x + right, stride, L)
        bits = product * get_all(work, L.row.scale + n, stride, L)
        bits = tl.where(inside[:, :, None], bits, LOWEST)
        higher = tl.maximum(most, tl.max(bits, axis=1))
        fade = tl.exp2(most - higher)
        weight = rounded(times.to(tl.float32)[:, :, None] * tl.exp2(bits - higher[:, None, :]))
        total = total * fade + tl.sum(weight, axis=1)
        if L.gradient:
            slope = get_all(work, L.row.slope + n, stride, L)
            by_true = by_true * fade + tl.sum(rounded(weight * product * slope), axis=1)
        most = higher
    if not L.split:
        padding = padding.to(tl.float32)[:, None]
        bottom = get_row(work, L.row.bottom, stride, L)[None, :] * k
        higher = tl.maximum(most, tl.where(padding > 0, bottom, LOWEST))
        fade = tl.exp2(most - higher)
        total = total * fade + padding * tl.exp2(tl.minimum(bottom - higher, 0.0))
        by_true = by_true * fade
        most = higher
    total = tl.where(ok[:, None], total, 1.0)
    put(work, L.row.part + part, stride, ok, most + log2(total), L)
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
        put(work, L.row.pair + pair, stride, ok, most + log2(total), L)


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
