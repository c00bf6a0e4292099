"""One step backwards, continued: from C through the rows to V, to V0, and to the clause weights."""

from __future__ import annotations

import triton
import triton.language as tl

from nsfrc.kernels.maths import examples, four, get, get_all, get_row, longest, power, put, put_row, rounded, two
from nsfrc.kernels.step import NOTHING, PASSIVE, starting


@triton.jit(noinline=True)
def through_clause_z(indices, floats, work, stride, k, L: tl.constexpr):
    """From the gradient of normalised C to that of C, in place, and to those of true and false."""
    by_bottom = tl.full((L.tall, L.wide), 0.0, tl.float32)
    by_true = tl.full((L.tall, L.wide), 0.0, tl.float32)
    bottom = get_row(work, L.row.bottom, stride, L)
    for first in range(0, L.n.clauses, L.tall):
        clause = first + tl.arange(0, L.tall)
        ok = clause < L.n.clauses
        z = tl.where(ok[:, None], get(work, L.row.clause_z + clause, stride, ok, L), 1.0)
        g = get(work, L.row.g_absent + clause, stride, ok, L) / z
        claimed = ok[:, None] & (get(work, L.row.claim + clause, stride, ok, L) == 0.0)
        by_bottom += g + tl.where(claimed, get(work, L.row.g_z + clause, stride, ok, L), 0.0)
    for first in range(0, L.n.pairs, L.tall):
        pair = first + tl.arange(0, L.tall)
        ok = pair < L.n.pairs
        clause, _ = two(indices + L.at.pair, pair, ok, 0)
        rank = tl.load(indices + L.at.pair_rank + pair, mask=ok, other=0).to(tl.float32)[:, None]
        z = tl.where(ok[:, None], get(work, L.row.clause_z + clause, stride, ok, L), 1.0)
        claimed = ok[:, None] & (get(work, L.row.claim + clause, stride, ok, L) == rank)
        g = get(work, L.row.g_pair + pair, stride, ok, L) / z
        g += tl.where(claimed, get(work, L.row.g_z + clause, stride, ok, L), 0.0)
        put(work, L.row.g_pair + pair, stride, ok, g, L)
        bits = get(work, L.row.pair + pair, stride, ok, L)
        padding = tl.load(floats + L.of.padding + pair, mask=ok, other=0.0)[:, None]
        by_bottom += g * padding * tl.exp2(tl.minimum(bottom[None, :] * k - bits, 0.0))
        if not L.split:
            by_true += g * get(work, L.row.by_true + pair, stride, ok, L)
    if L.split:
        tl.debug_barrier()
        by_true += through_parts(indices, work, stride, L)
    put_row(work, L.row.g_true, stride, tl.sum(by_true, axis=0), L)
    slope = L.length * power(get_row(work, L.row.x + L.false, stride, L), L.length - 1, L.power_bits)
    put_row(work, L.row.g_false, stride, tl.sum(by_bottom, axis=0) * slope, L)
    for first in range(0, L.n.active + 1 + L.n.nodes, L.tall):
        x = first + tl.arange(0, L.tall)
        ok = x < L.n.active + 1 + L.n.nodes
        put(work, L.row.g_x + x, stride, ok, tl.full((L.tall, L.wide), 0.0, tl.float32), L)


@triton.jit
def through_parts(indices, work, stride, L: tl.constexpr):
    """Gradient of true where the rows of a pair were shared out: [tall, lanes], still to be summed."""
    total = tl.full((L.tall, L.wide), 0.0, tl.float32)
    for first in range(0, L.n.parts, L.tall):
        part = first + tl.arange(0, L.tall)
        ok = part < L.n.parts
        pair = tl.load(indices + L.at.part_pair + part, mask=ok, other=0)
        bits = get(work, L.row.part + part, stride, ok, L) - get(work, L.row.pair + pair, stride, ok, L)
        g = get(work, L.row.g_pair + pair, stride, ok, L) * tl.exp2(tl.minimum(bits, 0.0))
        total += g * get(work, L.row.by_true + part, stride, ok, L)
    return total


@triton.jit(noinline=True)
def sum_uses(tile, indices, floats, work, stride, unit, BAND: tl.constexpr, L: tl.constexpr):
    """Gradient of a tile of factors from the rows they are in, whose weights are recomputed."""
    W: tl.constexpr = BAND.width
    P: tl.constexpr = L.tall // W
    place = BAND.first + tile * P
    segment = place + tl.arange(0, P)
    ok = segment < BAND.last
    x, begin, count, _ = four(indices + L.at.use, tl.minimum(segment, BAND.last - 1))
    count = tl.where(ok, count, 0)
    own = get(work, L.row.x + x, stride, ok, L)
    total = tl.full((P, W, L.wide), 0.0, tl.float32)
    for done in range(0, longest(indices + L.at.use + 4 * place + 2, BAND.entries), W):
        entry = done + tl.arange(0, W)[None, :]
        inside = entry < count[:, None]
        other, pair, n, times = four(indices + L.at.use_of, begin[:, None] + tl.where(inside, entry, 0))
        times = tl.where(inside, times, 0)
        slope = get_all(work, L.row.x + other, stride, L) * get_all(work, L.row.scale + n, stride, L)
        bits = own[:, None, :] * slope - get_all(work, L.row.pair + pair, stride, L)
        # A weight is at most 1/times, but for rounding; entries that are not inside are those of the first one.
        weight = times.to(tl.float32)[:, :, None] * tl.exp2(tl.minimum(bits, 1.0))
        g = get_all(work, L.row.g_pair + pair, stride, L)
        total += weight * g * slope
    put(work, L.row.g_x + x, stride, ok, tl.sum(rounded(total), axis=1) * unit, L)


@triton.jit(noinline=True)
def through_nodes(indices, work, stride, L: tl.constexpr):
    """Gradient of the factors of nodes, the highest level first, and all of it into that of V."""
    for level in range(L.n.levels):
        begin, last = two(indices + L.at.fed_level, level, True, 0)
        for first in range(begin, last, L.tall):
            place = first + tl.arange(0, L.tall)
            ok = place < last
            x, start, count, _ = four(indices + L.at.fed, tl.minimum(place, last - 1))
            count = tl.where(ok, count, 0)
            total = get(work, L.row.g_x + x, stride, ok, L)
            for j in range(tl.load(indices + L.at.fed + 4 * first + 2)):
                inside = j < count
                node, other = two(indices + L.at.fed_by, start + j, inside, 0)
                g = get(work, L.row.g_x + node, stride, inside, L)
                total += g * get(work, L.row.x + other, stride, inside, L)
            put(work, L.row.g_x + x, stride, ok, total, L)
        tl.debug_barrier()
    g_true = get_row(work, L.row.g_true, stride, L)[None, :]
    g_false = get_row(work, L.row.g_false, stride, L)[None, :]
    for first in range(0, L.n.active, L.tall):
        slot = first + tl.arange(0, L.tall)
        ok = slot < L.n.active
        g = get(work, L.row.g_value + slot, stride, ok, L) + get(work, L.row.g_x + slot, stride, ok, L)
        g += tl.where((slot == L.true)[:, None], g_true, 0.0) + tl.where((slot == L.false)[:, None], g_false, 0.0)
        put(work, L.row.g_value + slot, stride, ok, g, L)


@triton.jit(noinline=True)
def last_gradient(g_V0, V0, indices, floats, work, stride, first_example, batch, L: tl.constexpr):
    """Gradient of V into that of V0 [B, G]: a slot's to its first atom, the largest passive atom's to that atom."""
    example, inside = examples(first_example, batch, L)
    for first in range(0, L.n.atoms, L.tall):
        atom = first + tl.arange(0, L.tall)
        ok = atom < L.n.atoms
        slot = tl.load(indices + L.at.gradient + atom, mask=ok, other=-1)
        mine = slot >= 0
        if L.neural_only:
            mine = mine & (tl.load(floats + L.of.constant + atom, mask=ok, other=0.0) < 0)
        g = get(work, L.row.g_value + slot, stride, mine, L)
        place = g_V0 + example[None, :] * L.n.atoms + atom[:, None]
        tl.store(place, g, mask=ok[:, None] & inside[None, :])
    if L.n.kept < L.n.slots:
        tl.debug_barrier()
        atom = first_passive(V0, indices, floats, example, get_row(work, L.row.rest, stride, L), L)
        if L.neural_only:
            inside = inside & (tl.load(floats + L.of.constant + atom) < 0)
        g = get_row(work, L.row.g_value + L.n.active, stride, L)
        tl.store(g_V0 + example * L.n.atoms + atom, g, mask=inside)


@triton.jit
def first_passive(V0, indices, floats, example, highest, L: tl.constexpr):
    """The first atom of a passive slot that starts as high as the highest [lanes]: [lanes]."""
    last = tl.load(indices + L.at.member + L.n.slots - 1)
    least = tl.full((L.tall, L.wide), 0, tl.int32) + last
    for first in range(0, L.n.atoms, L.tall):
        atom = first + tl.arange(0, L.tall)
        slot = tl.load(indices + L.at.gradient + atom, mask=atom < L.n.atoms, other=NOTHING)
        value = starting(V0, floats, atom, slot == PASSIVE, example, L)
        mine = (slot == PASSIVE)[:, None] & (value == highest[None, :])
        least = tl.minimum(least, tl.where(mine, atom[:, None], last))
    return tl.min(least, axis=0)


@triton.jit
def clear_partial(partial, L: tl.constexpr):
    size: tl.constexpr = L.n.mixtures * (L.n.pairs + L.n.clauses)
    for first in range(0, size, 128):
        place = first + tl.arange(0, 128)
        tl.store(partial + place, tl.full((128,), 0.0, tl.float32), mask=place < size)


@triton.jit(noinline=True)
def sum_partials(partial, tiles, g_weights, indices, L: tl.constexpr):
    """Gradient of the weights [M, C] from partial [tiles, M, pairs + C], always in the same order."""
    size: tl.constexpr = L.n.mixtures * (L.n.pairs + L.n.clauses)
    for first in range(0, size, 32):
        column = first + tl.arange(0, 32)
        total = tl.full((32, 32), 0.0, tl.float32)
        for tile in range(0, tiles, 32):
            row = tile + tl.arange(0, 32)
            ok = (row < tiles)[:, None] & (column < size)[None, :]
            place = partial + row[:, None].to(tl.int64) * size + column[None, :]
            total += tl.load(place, mask=ok, other=0.0, cache_modifier=".cg")  # written by other instances
        tl.store(partial + column, tl.sum(total, axis=0), mask=column < size)
        tl.debug_barrier()
    for first in range(0, L.n.clauses, L.tall):
        place = first + tl.arange(0, L.tall)
        ok = place < L.n.clauses
        clause, begin, count, _ = four(indices + L.at.clause, tl.minimum(place, L.n.clauses - 1))
        for m in range(L.n.mixtures):
            row = partial + m * (L.n.pairs + L.n.clauses)
            total = tl.load(row + L.n.pairs + clause, mask=ok, other=0.0)
            for j in range(tl.load(indices + L.at.clause + 4 * first + 2)):
                total += tl.load(row + begin + j, mask=j < count, other=0.0)
            tl.store(g_weights + m * L.n.clauses + clause, total, mask=ok)
