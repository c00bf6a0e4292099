"""One step backwards, after it was recomputed from the V it started with: from V' to C.

Every gradient, here and in `factors`, is gathered: a row of the workspace is written by one phase, from a list of
what uses it, so nothing is added to by two threads and two runs give the same bits. Where Z exceeds 1 its gradient
goes to the largest value, the first in atom order; `claim` is that value's rank.
"""

from __future__ import annotations

import triton
import triton.language as tl

from nsfrc.kernels.derive import (
    absent_bits,
    absent_of,
    derived_of,
    false_above,
    mixed_of,
    most_pairs,
    pair_bits,
    pair_of_head,
)
from nsfrc.kernels.maths import (
    NO_RANK,
    TIE,
    examples,
    four,
    get,
    get_all,
    get_row,
    longest,
    put,
    put_row,
    rounded,
    shares,
    two,
)
from nsfrc.kernels.step import kept_row


@triton.jit(noinline=True)
def first_gradient(g_out, indices, work, stride, first_example, batch, L: tl.constexpr):
    """Gradient of the outputs [B, outputs] into that of V_T. Several atoms may be outputs of one slot."""
    example, inside = examples(first_example, batch, L)
    for first in range(0, L.n.kept, L.tall):
        slot = first + tl.arange(0, L.tall)
        ok = slot < L.n.kept
        begin = tl.load(indices + L.at.asked_start + slot, mask=ok, other=0)
        count = tl.load(indices + L.at.asked_start + slot + 1, mask=ok, other=0) - begin
        total = tl.full((L.tall, L.wide), 0.0, tl.float32)
        for j in range(tl.max(count, axis=0)):
            output = tl.load(indices + L.at.asked + begin + j, mask=j < count, other=0)
            place = g_out + example[None, :] * L.n.outputs + output[:, None]
            total += tl.load(place, mask=(j < count)[:, None] & inside[None, :], other=0.0)
        put(work, L.row.g_value + slot, stride, ok, total, L)


@triton.jit
def settle(g_z, rank, z, row, work, stride, L: tl.constexpr):
    """Keep the gradient of a Z and who is to have it, from [tall, wide] partial sums and least ranks."""
    rank = tl.min(rank, axis=0)
    put_row(work, L.row.g_z + row, stride, tl.sum(g_z, axis=0), L)
    put_row(work, L.row.claim + row, stride, tl.where((z > 1.0) & (rank < NO_RANK), rank, -1.0), L)


@triton.jit(noinline=True)
def value_claim(past, past_stride, indices, work, stride, L: tl.constexpr):
    """Gradient of the Z of V'; past: V' [kept, B], normalised."""
    z = get_row(work, L.row.value_z, stride, L)
    g_z = tl.full((L.tall, L.wide), 0.0, tl.float32)
    rank = tl.full((L.tall, L.wide), NO_RANK, tl.float32)
    for first in range(0, L.n.kept, L.tall):
        slot = first + tl.arange(0, L.tall)
        ok = slot < L.n.kept
        after = get(past, slot.to(tl.int64), past_stride, ok, L)
        g_z -= get(work, L.row.g_value + slot, stride, ok, L) * after / z[None, :]
        mine = tl.load(indices + L.at.rank + slot, mask=ok, other=0).to(tl.float32)[:, None]
        rank = tl.minimum(rank, tl.where(ok[:, None] & (after >= TIE), mine, NO_RANK))
    settle(g_z, rank, z, 0, work, stride, L)


@triton.jit(noinline=True)
def through_values(indices, work, stride, k, unit, L: tl.constexpr):
    """From the gradient of V' to those of V, in place, and of R."""
    z = get_row(work, L.row.value_z, stride, L)[None, :]
    g_z = get_row(work, L.row.g_z, stride, L)[None, :]
    claim = get_row(work, L.row.claim, stride, L)[None, :]
    others = tl.full((L.tall, L.wide), 0.0, tl.float32)
    for first in range(0, L.n.kept, L.tall):
        slot = first + tl.arange(0, L.tall)
        ok = slot < L.n.kept
        mine = tl.load(indices + L.at.rank + slot, mask=ok, other=0).to(tl.float32)[:, None]
        g = get(work, L.row.g_value + slot, stride, ok, L) / z
        g += tl.where(ok[:, None] & (claim == mine), g_z, 0.0)
        derived = derived_of(slot, ok, indices, work, stride, unit, L)
        by_value, by_derived = shares(get(work, kept_row(slot, L), stride, ok, L), derived, k)
        put(work, L.row.g_value + slot, stride, ok, g * by_value, L)
        head = tl.load(indices + L.at.head_of + slot, mask=ok, other=L.n.heads)
        put(work, L.row.g_derived + head, stride, ok & (head < L.n.heads), g * by_derived, L)
        others += tl.where((head == L.n.heads)[:, None], g * by_derived, 0.0)
    put_row(work, L.row.g_derived + L.n.heads, stride, tl.sum(others, axis=0), L)


@triton.jit(noinline=True)
def derived_claim(work, stride, unit, L: tl.constexpr):
    """Gradient of the Z of R. Atoms that head nothing come first, since false is one of them."""
    z = get_row(work, L.row.derived_z, stride, L)
    g_z = tl.full((L.tall, L.wide), 0.0, tl.float32)
    rank = tl.full((L.tall, L.wide), NO_RANK, tl.float32)
    for first in range(0, L.n.heads + 1, L.tall):
        head = first + tl.arange(0, L.tall)
        ok = head <= L.n.heads
        value = get(work, L.row.derived + head, stride, ok, L) * unit / z[None, :]
        g_z -= get(work, L.row.g_derived + head, stride, ok, L) * value / z[None, :]
        mine = tl.where(head == L.n.heads, 0, head + 1).to(tl.float32)[:, None]
        rank = tl.minimum(rank, tl.where(ok[:, None] & (value >= TIE), mine, NO_RANK))
    settle(g_z, rank, z, 0, work, stride, L)


@triton.jit(noinline=True)
def through_derived_z(work, stride, L: tl.constexpr):
    """From the gradient of normalised R to that of R, in place."""
    z = get_row(work, L.row.derived_z, stride, L)[None, :]
    g_z = get_row(work, L.row.g_z, stride, L)[None, :]
    claim = get_row(work, L.row.claim, stride, L)[None, :]
    for first in range(0, L.n.heads + 1, L.tall):
        head = first + tl.arange(0, L.tall)
        ok = head <= L.n.heads
        mine = tl.where(head == L.n.heads, 0, head + 1).to(tl.float32)[:, None]
        g = get(work, L.row.g_derived + head, stride, ok, L) / z + tl.where(claim == mine, g_z, 0.0)
        put(work, L.row.g_derived + head, stride, ok, g, L)


@triton.jit
def through_hard(indices, work, stride, k, L: tl.constexpr):
    """From the gradient of R to that of every pair's C, each clause chosen once, and what `through_clauses` needs for
    that of absent clauses."""
    through_chosen(indices, work, stride, L)
    tl.debug_barrier()
    if L.exact:
        if false_above(work, stride, L):
            through_absent(indices, work, stride, k, L)
        else:
            through_others(work, stride, L)
    else:
        through_others(work, stride, L)


@triton.jit(noinline=True)
def through_chosen(indices, work, stride, L: tl.constexpr):
    """Gradient of every pair's C."""
    for first in range(0, L.n.pairs, L.tall):
        pair = first + tl.arange(0, L.tall)
        ok = pair < L.n.pairs
        clause, head = two(indices + L.at.pair, pair, ok, 0)
        bits = pair_bits(pair, clause, ok, work, stride, L)
        share = tl.exp2(tl.minimum(bits - get(work, L.row.derived + head, stride, ok, L), 0.0))
        g = get(work, L.row.g_derived + head, stride, ok, L)
        put(work, L.row.g_pair + pair, stride, ok, g * share, L)


@triton.jit(noinline=True)
def through_absent(indices, work, stride, k, L: tl.constexpr):
    """Gradient of every clause's C where it does not unify, from each head that it is not one of."""
    bottom = absent_bits(work, stride, k, L)
    for c in range(L.n.clauses):
        absent = (bottom / get_row(work, L.row.clause_z + c, stride, L))[None, :]
        total = tl.full((L.tall, L.wide), 0.0, tl.float32)
        for first in range(0, L.n.heads + 1, L.tall):
            head = first + tl.arange(0, L.tall)
            ok = head <= L.n.heads
            own = head < 0
            for j in range(most_pairs(head, ok, indices, L)):
                _, clause, inside = pair_of_head(head, j, ok, indices, L)
                own = own | (inside & (clause == c))
            share = tl.exp2(tl.minimum(absent - get(work, L.row.derived + head, stride, ok, L), 0.0))
            g = get(work, L.row.g_derived + head, stride, ok, L)
            total += tl.where((ok & (own == 0))[:, None], g * share, 0.0)
        put_row(work, L.row.g_absent + c, stride, tl.sum(total, axis=0), L)


@triton.jit(noinline=True)
def through_others(work, stride, L: tl.constexpr):
    """g_derived becomes what of it goes on to the absent clauses that a head has."""
    others = get_row(work, L.row.derived + L.n.heads, stride, L)[None, :]
    total = tl.full((L.tall, L.wide), 0.0, tl.float32)
    for first in range(0, L.n.heads + 1, L.tall):
        head = first + tl.arange(0, L.tall)
        ok = head <= L.n.heads
        share = tl.exp2(tl.minimum(others - get(work, L.row.derived + head, stride, ok, L), 0.0))
        g = get(work, L.row.g_derived + head, stride, ok, L) * tl.where(ok[:, None], share, 0.0)
        put(work, L.row.g_derived + head, stride, ok, g, L)
        total += g
    tl.debug_barrier()
    put_row(work, L.row.g_derived + L.n.heads, stride, tl.sum(total, axis=0), L)


@triton.jit(noinline=True)
def through_soft(weights, partial, indices, work, stride, k, unit, L: tl.constexpr):
    """From the gradient of R to those of H, of every pair's C, and of the weights.

    partial: [M, pairs + C], what this tile of examples adds to the gradient of the weights.
    """
    for m in range(L.n.mixtures):
        total = tl.full((L.tall, L.wide), 0.0, tl.float32)
        for first in range(0, L.n.heads + 1, L.tall):
            head = first + tl.arange(0, L.tall)
            ok = head <= L.n.heads
            pairs = most_pairs(head, ok, indices, L)
            bits = mixed_of(m, head, ok, pairs, weights, indices, work, stride, k, L)
            share = tl.exp2(tl.minimum(bits - get(work, L.row.derived + head, stride, ok, L), 0.0))
            g = get(work, L.row.g_derived + head, stride, ok, L) * tl.where(ok[:, None], share, 0.0)
            put(work, L.row.chosen + m * (L.n.heads + 1) + head, stride, ok, g, L)
            total += g
        put_row(work, L.row.g_mixed + m, stride, tl.sum(total, axis=0), L)
    tl.debug_barrier()
    for first in range(0, L.n.pairs, L.tall):
        pair = first + tl.arange(0, L.tall)
        ok = pair < L.n.pairs
        clause, head = two(indices + L.at.pair, pair, ok, 0)
        more = pair_bits(pair, clause, ok, work, stride, L)
        more = (more - absent_of(clause, ok, work, stride, k, L)) * unit
        total = tl.full((L.tall, L.wide), 0.0, tl.float32)
        for m in range(L.n.mixtures):
            weight = tl.load(weights + m * L.n.clauses + clause, mask=ok, other=0.0)
            g = get(work, L.row.chosen + m * (L.n.heads + 1) + head, stride, ok, L)
            total += weight[:, None] * g
            place = partial + m * (L.n.pairs + L.n.clauses) + pair
            tl.store(place, tl.load(place, mask=ok, other=0.0) + tl.sum(rounded(g * more), axis=1), mask=ok)
        put(work, L.row.g_pair + pair, stride, ok, total, L)
    for first in range(0, L.n.clauses, L.tall):
        clause = first + tl.arange(0, L.tall)
        ok = clause < L.n.clauses
        absent = absent_of(clause, ok, work, stride, k, L) * unit
        for m in range(L.n.mixtures):
            g = get_row(work, L.row.g_mixed + m, stride, L)[None, :]
            place = partial + m * (L.n.pairs + L.n.clauses) + L.n.pairs + clause
            tl.store(place, tl.load(place, mask=ok, other=0.0) + tl.sum(rounded(g * absent), axis=1), mask=ok)


@triton.jit
def through_clauses(weights, indices, work, stride, k, unit, L: tl.constexpr):
    """Gradient of every clause's C where it does not unify, of its Z, and who is to have the latter."""
    for band in tl.static_range(len(L.clauses)):
        through_clauses_of(weights, indices, work, stride, k, unit, L.clauses[band], L)


@triton.jit(noinline=True)
def through_clauses_of(weights, indices, work, stride, k, unit, BAND: tl.constexpr, L: tl.constexpr):
    W: tl.constexpr = BAND.width
    P: tl.constexpr = L.tall // W
    bottom = absent_bits(work, stride, k, L)[None, :]
    others = get_row(work, L.row.derived + L.n.heads, stride, L)[None, :]
    for place in range(BAND.first, BAND.last, P):
        segment = place + tl.arange(0, P)
        ok = segment < BAND.last
        clause, begin, count, _spare = four(indices + L.at.clause, tl.minimum(segment, BAND.last - 1))
        count = tl.where(ok, count, 0)
        z = tl.where(ok[:, None], get(work, L.row.clause_z + clause, stride, ok, L), 1.0)
        g_z = tl.full((P, L.wide), 0.0, tl.float32)
        taken = tl.full((P, L.wide), 0.0, tl.float32)
        rank = tl.where(bottom * unit / z >= TIE, 0.0, NO_RANK)
        for done in range(0, longest(indices + L.at.clause + 4 * place + 2, BAND.entries), W):
            entry = done + tl.arange(0, W)[None, :]
            inside = entry < count[:, None]
            pair = tl.where(inside, begin[:, None] + entry, 0)
            value = get_all(work, L.row.pair + pair, stride, L) * unit / z[:, None, :]
            g = tl.where(inside[:, :, None], get_all(work, L.row.g_pair + pair, stride, L), 0.0)
            g_z -= tl.sum(rounded(g * value), axis=1) / z
            if L.hard:
                _, head = two(indices + L.at.pair, pair, inside, 0)
                g = tl.where(inside[:, :, None], get_all(work, L.row.g_derived + head, stride, L), 0.0)
            taken += tl.sum(g, axis=1)
            first = inside[:, :, None] & (value >= TIE)
            mine = (entry + 1).to(tl.float32)[:, :, None]
            rank = tl.minimum(rank, tl.min(tl.where(first, mine, NO_RANK), axis=1))
        absent = bottom / z
        if L.hard:
            given = get_row(work, L.row.g_derived + L.n.heads, stride, L)[None, :]
            g_absent = (given - taken) * tl.exp2(tl.minimum(absent - others, 0.0))
            if L.exact:  # noqa: SIM102 (decided when this is compiled, the other when it runs)
                if false_above(work, stride, L):
                    g_absent = get(work, L.row.g_absent + clause, stride, ok, L)
        else:
            g_absent = -taken
            for m in range(L.n.mixtures):
                weight = tl.load(weights + m * L.n.clauses + clause, mask=ok, other=0.0)
                g_absent += weight[:, None] * get_row(work, L.row.g_mixed + m, stride, L)[None, :]
        g_z -= g_absent * absent * unit / z
        put(work, L.row.g_absent + clause, stride, ok, g_absent, L)
        put(work, L.row.g_z + clause, stride, ok, g_z, L)
        put(work, L.row.claim + clause, stride, ok, tl.where((z > 1.0) & (rank < NO_RANK), rank, -1.0), L)
