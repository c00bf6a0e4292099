"""The rest of a step: from C before Z to R, and with V to V'."""

from __future__ import annotations

import triton
import triton.language as tl

from nsfrc.kernels.maths import LOWEST, four, get, get_all, get_row, log2, longest, put, put_row, rounded, softor, two
from nsfrc.kernels.step import kept_row


@triton.jit
def absent_bits(work, stride, k, L: tl.constexpr):
    """C before Z where a clause does not unify: S rows that are all false. [lanes]"""
    return get_row(work, L.row.bottom, stride, L) * k + L.log_s


@triton.jit
def clause_maxima(indices, work, stride, k, unit, L: tl.constexpr):
    """Z of every clause."""
    for band in tl.static_range(len(L.clauses)):
        clause_maxima_of(indices, work, stride, k, unit, L.clauses[band], L)


@triton.jit(noinline=True)
def clause_maxima_of(indices, work, stride, k, unit, BAND: tl.constexpr, L: tl.constexpr):
    W: tl.constexpr = BAND.width
    P: tl.constexpr = L.tall // W
    lowest = tl.maximum(absent_bits(work, stride, k, L) * unit, 1.0)
    for place in range(BAND.first, BAND.last, P):
        segment = place + tl.arange(0, P)
        ok = segment < BAND.last
        clause, begin, count, _ = four(indices + L.at.clause, tl.minimum(segment, BAND.last - 1))
        count = tl.where(ok, count, 0)
        z = lowest[None, :] + tl.full((P, L.wide), 0.0, tl.float32)
        for done in range(0, longest(indices + L.at.clause + 4 * place + 2, BAND.entries), W):
            entry = done + tl.arange(0, W)[None, :]
            inside = entry < count[:, None]
            pair = tl.where(inside, begin[:, None] + entry, 0)
            bits = get_all(work, L.row.pair + pair, stride, L)
            z = tl.maximum(z, tl.max(tl.where(inside[:, :, None], bits * unit, 0.0), axis=1))
        put(work, L.row.clause_z + clause, stride, ok, z, L)


@triton.jit
def absent_of(clause, ok, work, stride, k, L: tl.constexpr):
    """Normalised C, in bits, where clauses [n] do not unify: [n, lanes]."""
    z = get(work, L.row.clause_z + clause, stride, ok, L)
    return absent_bits(work, stride, k, L)[None, :] / tl.where(ok[:, None], z, 1.0)


@triton.jit
def pair_of_head(head, j, ok, indices, L: tl.constexpr):
    """The j-th pair of heads [n] and its clause; ok where there is one."""
    begin, end = two(indices + L.at.head, head, ok, 0)
    ok = ok & (begin + j < end)
    pair, clause = two(indices + L.at.head_pair, begin + j, ok, 0)
    return pair, clause, ok


@triton.jit
def pair_bits(pair, clause, ok, work, stride, L: tl.constexpr):
    """Normalised C of pairs [n], in bits: [n, lanes]."""
    z = get(work, L.row.clause_z + clause, stride, ok, L)
    return get(work, L.row.pair + pair, stride, ok, L) / tl.where(ok[:, None], z, 1.0)


@triton.jit
def most_pairs(head, ok, indices, L: tl.constexpr):
    begin, end = two(indices + L.at.head, head, ok, 0)
    return tl.max(end - begin, axis=0)


@triton.jit
def absent_softor(work, stride, k, L: tl.constexpr):
    """R of atoms that head nothing when every clause is chosen once, in bits: [lanes]."""
    if L.n.clauses <= 8:  # a tile would be empty
        bits = few_absent(work, stride, k, L)
    else:
        bits = many_absent(work, stride, k, L)
    return bits


@triton.jit
def few_absent(work, stride, k, L: tl.constexpr):
    """Clause by clause, so that nothing is summed over threads."""
    bottom = absent_bits(work, stride, k, L)
    most, total = bottom / get_row(work, L.row.clause_z, stride, L), tl.full((L.wide,), 1.0, tl.float32)
    for c in range(1, L.n.clauses):
        most, total = one_more(most, total, bottom / get_row(work, L.row.clause_z + c, stride, L))
    return most + log2(total)


@triton.jit
def many_absent(work, stride, k, L: tl.constexpr):
    most = tl.full((L.tall, L.wide), LOWEST, tl.float32)
    total = tl.full((L.tall, L.wide), 0.0, tl.float32)
    for first in range(0, L.n.clauses, L.tall):
        clause = first + tl.arange(0, L.tall)
        ok = clause < L.n.clauses
        bits = tl.where(ok[:, None], absent_of(clause, ok, work, stride, k, L), LOWEST)
        higher = tl.maximum(most, bits)
        total = total * tl.exp2(most - higher) + tl.where(ok[:, None], tl.exp2(bits - higher), 0.0)
        most = higher
    highest = tl.max(most, axis=0)
    return highest + log2(tl.sum(rounded(total * tl.exp2(most - highest[None, :])), axis=0))


@triton.jit
def one_more(most, total, bits):
    """A running soft-or with another reason: the largest so far, and the sum of all as parts of it."""
    higher = tl.maximum(most, bits)
    return higher, total * tl.exp2(most - higher) + tl.exp2(bits - higher)


@triton.jit
def put_derived(head, ok, most, total, work, stride, L: tl.constexpr):
    """R before Z of heads [n] from a running soft-or. Spare rows have what atoms that head nothing have."""
    bits = most + log2(total)
    put(work, L.row.derived + head, stride, ok, bits, L)
    return bits


@triton.jit(noinline=True)
def derive_hard(indices, work, stride, k, unit, L: tl.constexpr):
    """R before Z when every clause is chosen once, and its Z: a head loses its clauses' share of what all absent
    clauses give, and gains their C."""
    others = absent_softor(work, stride, k, L)[None, :]
    z = tl.full((L.tall, L.wide), 1.0, tl.float32)
    for first in range(0, L.n.heads + 1, L.tall):
        head = first + tl.arange(0, L.tall)
        ok = head <= L.n.heads
        most = others + tl.full((L.tall, L.wide), 0.0, tl.float32)
        total = tl.full((L.tall, L.wide), 0.0, tl.float32)
        share = tl.full((L.tall, L.wide), 1.0, tl.float32)
        begin, end = two(indices + L.at.head, head, ok, 0)
        for j in range(tl.max(end - begin, axis=0)):
            pair, clause, inside = pair_of_head(head, j, ok, indices, L)
            bits = pair_bits(pair, clause, inside, work, stride, L)
            absent = absent_of(clause, inside, work, stride, k, L)
            higher = tl.where(inside[:, None], tl.maximum(most, bits), most)
            gain = tl.where(inside[:, None], tl.exp2(bits - higher), 0.0)
            share -= tl.where(inside[:, None], tl.exp2(absent - others), 0.0)
            total = total * tl.exp2(most - higher) + gain
            most = higher
        # Exactly nothing is left of a head that has all clauses; rounding must not say otherwise.
        share = tl.where((end - begin == L.n.clauses)[:, None], 0.0, tl.maximum(share, 0.0))
        total += share * tl.exp2(others - most)
        z = tl.maximum(z, put_derived(head, ok, most, total, work, stride, L) * unit)
    put_row(work, L.row.derived_z, stride, tl.max(z, axis=0), L)


@triton.jit
def false_above(work, stride, L: tl.constexpr):
    """Whether false starts above 0 in an example of this tile. A clause that does not unify may then give so much more
    than others that a head that has it is left with less than 1 minus its share can tell."""
    return tl.max(get_row(work, L.row.start_false, stride, L), axis=0) > 0.0


@triton.jit(noinline=True)
def derive_each(indices, work, stride, k, unit, L: tl.constexpr):
    """As `derive_hard`, clause by clause: exact whatever false is, but for every head all clauses are looked at."""
    bottom = absent_bits(work, stride, k, L)
    z = tl.full((L.tall, L.wide), 1.0, tl.float32)
    for first in range(0, L.n.heads + 1, L.tall):
        head = first + tl.arange(0, L.tall)
        ok = head <= L.n.heads
        pairs = most_pairs(head, ok, indices, L)
        most = tl.full((L.tall, L.wide), LOWEST, tl.float32)
        total = tl.full((L.tall, L.wide), 0.0, tl.float32)
        for c in range(L.n.clauses):
            bits = tl.broadcast_to((bottom / get_row(work, L.row.clause_z + c, stride, L))[None, :], (L.tall, L.wide))
            for j in range(pairs):
                pair, clause, inside = pair_of_head(head, j, ok, indices, L)
                inside = inside & (clause == c)
                bits = tl.where(inside[:, None], pair_bits(pair, clause, inside, work, stride, L), bits)
            most, total = one_more(most, total, bits)
        z = tl.maximum(z, put_derived(head, ok, most, total, work, stride, L) * unit)
    put_row(work, L.row.derived_z, stride, tl.max(z, axis=0), L)


@triton.jit(noinline=True)
def mix(weights, work, stride, k, L: tl.constexpr):
    """H of atoms that head nothing, in bits, for every mixture of clauses."""
    for first in range(0, L.n.mixtures, L.tall):
        m = first + tl.arange(0, L.tall)
        ok = m < L.n.mixtures
        absent = absent_bits(work, stride, k, L)
        total = tl.full((L.tall, L.wide), 0.0, tl.float32)
        for c in range(L.n.clauses):
            weight = tl.load(weights + m * L.n.clauses + c, mask=ok, other=0.0)
            total += weight[:, None] * (absent / get_row(work, L.row.clause_z + c, stride, L))[None, :]
        put(work, L.row.mixed + m, stride, ok, total, L)


@triton.jit
def mixed_of(m, head, ok, most, weights, indices, work, stride, k, L: tl.constexpr):
    """H of heads [n] in mixture m, in bits: that of an atom that heads nothing, and what their clauses give more."""
    total = get_row(work, L.row.mixed + m, stride, L)[None, :] + tl.full((L.tall, L.wide), 0.0, tl.float32)
    for j in range(most):
        pair, clause, inside = pair_of_head(head, j, ok, indices, L)
        weight = tl.load(weights + m * L.n.clauses + clause, mask=inside, other=0.0)
        more = pair_bits(pair, clause, inside, work, stride, L)
        more -= absent_of(clause, inside, work, stride, k, L)
        total += weight[:, None] * more
    return total


@triton.jit(noinline=True)
def derive_soft(weights, indices, work, stride, k, unit, L: tl.constexpr):
    """R before Z for weights [M, C], and its Z: a running soft-or over the mixtures."""
    z = tl.full((L.tall, L.wide), 1.0, tl.float32)
    for first in range(0, L.n.heads + 1, L.tall):
        head = first + tl.arange(0, L.tall)
        ok = head <= L.n.heads
        pairs = most_pairs(head, ok, indices, L)
        most = tl.full((L.tall, L.wide), LOWEST, tl.float32)
        total = tl.full((L.tall, L.wide), 0.0, tl.float32)
        for m in range(L.n.mixtures):
            bits = mixed_of(m, head, ok, pairs, weights, indices, work, stride, k, L)
            most, total = one_more(most, total, bits)
        z = tl.maximum(z, put_derived(head, ok, most, total, work, stride, L) * unit)
    put_row(work, L.row.derived_z, stride, tl.max(z, axis=0), L)


@triton.jit
def derive(weights, indices, work, stride, k, unit, L: tl.constexpr):
    """R before Z of every head and of the atoms that head nothing, and its Z."""
    if L.hard:
        if L.exact:
            if false_above(work, stride, L):
                derive_each(indices, work, stride, k, unit, L)
            else:
                derive_hard(indices, work, stride, k, unit, L)
        else:
            derive_hard(indices, work, stride, k, unit, L)
    else:
        mix(weights, work, stride, k, L)
        tl.debug_barrier()
        derive_soft(weights, indices, work, stride, k, unit, L)


@triton.jit
def derived_of(slot, ok, indices, work, stride, unit, L: tl.constexpr):
    """Normalised R of slots [n]: [n, lanes]."""
    head = tl.load(indices + L.at.head_of + slot, mask=ok, other=0)
    bits = get(work, L.row.derived + head, stride, ok, L)
    return bits * unit / get_row(work, L.row.derived_z, stride, L)[None, :]


@triton.jit(noinline=True)
def update(indices, work, stride, k, unit, L: tl.constexpr):
    """V' = softor(V, R) before Z, in place, and its Z."""
    z = tl.full((L.tall, L.wide), 1.0, tl.float32)
    for first in range(0, L.n.kept, L.tall):
        slot = first + tl.arange(0, L.tall)
        ok = slot < L.n.kept
        row = kept_row(slot, L)
        derived = derived_of(slot, ok, indices, work, stride, unit, L)
        value = softor(get(work, row, stride, ok, L), derived, k, unit)
        put(work, row, stride, ok, value, L)
        z = tl.maximum(z, tl.where(ok[:, None], value, 1.0))
    put_row(work, L.row.value_z, stride, tl.max(z, axis=0), L)


@triton.jit(noinline=True)
def normalise(work, stride, L: tl.constexpr):
    """V' divided by its Z, in place."""
    z = get_row(work, L.row.value_z, stride, L)[None, :]
    for first in range(0, L.n.kept, L.tall):
        slot = first + tl.arange(0, L.tall)
        ok = slot < L.n.kept
        row = kept_row(slot, L)
        put(work, row, stride, ok, get(work, row, stride, ok, L) / z, L)
