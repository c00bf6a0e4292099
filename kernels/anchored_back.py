"""Gradients of the table-driven kernels of `anchored`: the blocks from the last to the first, in one launch.

g is [rows, lanes], the rows of X first. The gradient of what a phase computed is complete when the phase is reached: it
is taken, and the row is 0 again for the round before. Then those that the phase used gather their shares, each from the
list of its uses; nothing is added to by two threads, so two runs agree in every bit.
"""

from __future__ import annotations

import triton
import triton.language as tl

from nsfrc.kernels.anchored import by_length, copy, mixture, rounds_of, run_phases, starting
from nsfrc.kernels.anchored_maths import capped
from nsfrc.kernels.maths import examples, four, get, get_every, put


@triton.jit(noinline=True)
def first_gradients(g_out, ints, g, first, batch, L: tl.constexpr):
    """Gradients of the outputs into those of X; 0 for spare lanes and all other rows."""
    example, real = examples(first, batch, L)
    for at in range(0, L.n.values, L.tall):
        row = at + tl.arange(0, L.tall)
        put(g, row, L.wide, row < L.n.values, tl.full((L.tall, L.wide), 0.0, tl.float32), L)
    for at in range(L.row.start, L.row.chosen, L.tall):
        row = at + tl.arange(0, L.tall)
        put(g, row, L.wide, row < L.row.chosen, tl.full((L.tall, L.wide), 0.0, tl.float32), L)
    tl.debug_barrier()
    for at in range(0, L.n.asked, L.tall):
        number = at + tl.arange(0, L.tall)
        ok = number < L.n.asked
        begin = tl.load(ints + L.at.asked_start + number, mask=ok, other=0)
        count = tl.load(ints + L.at.asked_start + number + 1, mask=ok, other=0) - begin
        total = tl.full((L.tall, L.wide), 0.0, tl.float32)
        for j in range(tl.max(count, axis=0)):
            output = tl.load(ints + L.at.asked + begin + j, mask=j < count, other=0)
            place = g_out + example[None, :] * L.n.outputs + output[:, None]
            total += tl.load(place, mask=(j < count)[:, None] & real[None, :], other=0.0)
        put(g, tl.load(ints + L.at.asked_row + number, mask=ok, other=0), L.wide, ok, total, L)


@triton.jit(noinline=True)
def take_products(low, high, g, L: tl.constexpr):
    for at in range(low, high, L.tall):
        node = at + tl.arange(0, L.tall)
        ok = node < high
        put(g, L.row.taken + node, L.wide, ok, get(g, L.first_node + node, L.wide, ok, L), L)
        put(g, L.first_node + node, L.wide, ok, tl.full((L.tall, L.wide), 0.0, tl.float32), L)


@triton.jit(noinline=True)
def take_sums(
    low, high, V0, ints, floats, x, stride, g, k, first, batch, OF_HEADS: tl.constexpr, L: tl.constexpr
):
    """Gradients of soft-ors, divided by their sums; the share of V0 is V0's."""
    for at in range(low, high, L.tall):
        number = at + tl.arange(0, L.tall)
        ok = number < high
        row = tl.load(ints + L.at.sum + 4 * number, mask=ok, other=0)
        given = get(g, row, L.wide, ok, L) * get(x, L.row.inverse + number, stride, ok, L)
        put(g, L.row.taken + L.n.nodes + number, L.wide, ok, given, L)
        put(g, row, L.wide, ok, tl.full((L.tall, L.wide), 0.0, tl.float32), L)
        if OF_HEADS and not L.declared:
            to_start(row - L.first_head, ok, number, given, V0, ints, floats, x, stride, g, k, first, batch, L)


@triton.jit
def to_start(head, ok, number, given, V0, ints, floats, x, stride, g, k, first, batch, L: tl.constexpr):
    """V0's share of the gradient of heads, which is given divided by the sum."""
    start = starting(V0, ints, floats, head, ok, first, batch, L)
    share = given * tl.exp2((start - get(x, L.row.top + number, stride, ok, L)) * k)
    put(g, L.row.start + head, L.wide, ok, get(g, L.row.start + head, L.wide, ok, L) + share, L)


@triton.jit(noinline=True)
def take_mixtures(
    low, high, V0, weights, many, partial, ints, floats, x, stride, g, k, first, batch, L: tl.constexpr
):
    """From heads to their mixtures, then to their pairs and the weights.

    partial: [M, pairs], what this instance adds to the gradient of the weights.
    """
    for at in range(low, high, L.tall):
        head = at + tl.arange(0, L.tall)
        ok = head < high
        pair = tl.load(ints + L.at.pair_start + head, mask=ok, other=0)
        count = tl.load(ints + L.at.pair_start + head + 1, mask=ok, other=0) - pair
        top = get(x, L.row.top + L.n.sums + head, stride, ok, L)
        given = get(g, L.first_head + head, L.wide, ok, L) * get(x, L.row.inverse + L.n.sums + head, stride, ok, L)
        put(g, L.first_head + head, L.wide, ok, tl.full((L.tall, L.wide), 0.0, tl.float32), L)
        if not L.declared:
            to_start(head, ok, L.n.sums + head, given, V0, ints, floats, x, stride, g, k, first, batch, L)
        for m in range(many):
            share = tl.exp2((mixture(m, pair, count, weights, ints, x, stride, L) - top) * k)
            put(g, L.row.chosen + m * L.n.heads + head, L.wide, ok, given * share, L)
    tl.debug_barrier()
    last = tl.load(ints + L.at.pair_start + high)
    for at in range(tl.load(ints + L.at.pair_start + low), last, L.tall):
        pair = at + tl.arange(0, L.tall)
        ok = pair < last
        head = tl.load(ints + L.at.pair_head + pair, mask=ok, other=0)
        clause = tl.load(ints + L.at.pair_clause + pair, mask=ok, other=0)
        value = get(x, L.first_pair + pair, stride, ok, L)
        total = tl.full((L.tall, L.wide), 0.0, tl.float32)
        for m in range(many):
            given = get(g, L.row.chosen + m * L.n.heads + head, L.wide, ok, L)
            total += tl.load(weights + m * L.n.clauses + clause, mask=ok, other=0.0)[:, None] * given
            place = partial + m * L.n.pairs + pair
            tl.store(place, tl.load(place, mask=ok, other=0.0) + tl.sum(given * value, axis=1), mask=ok)
        put(g, L.first_pair + pair, L.wide, ok, total, L)


@triton.jit
def all_uses(low, high, ints, x, stride, g, k, OF_SUMS: tl.constexpr, L: tl.constexpr):
    middle = by_length(low, high, L)
    if low < middle:
        uses(low, middle, ints, x, stride, g, k, L.tall, OF_SUMS, L)
    if middle < high:
        uses(middle, high, ints, x, stride, g, k, L.few, OF_SUMS, L)


@triton.jit(noinline=True)
def uses(low, high, ints, x, stride, g, k, HEIGHT: tl.constexpr, OF_SUMS: tl.constexpr, L: tl.constexpr):
    """What factors are given by the products or soft-ors that they are part of. HEIGHT: lists of a tile."""
    for at in range(low, high, HEIGHT):
        number = at + tl.arange(0, HEIGHT)
        ok = number < high
        factor, row, begin, count = four(ints + L.at.use, tl.minimum(number, high - 1))
        factor = get_every(x, factor, stride, L)
        total = tl.full((HEIGHT, L.wide), 0.0, tl.float32)
        for j in range(tl.load(ints + L.at.use + 4 * at + 3)):  # longest first
            inside = j < count
            # Where it ended, a list has its first use again, by a factor of 0.
            other, of, times, _ = four(ints + L.at.use_of, begin + tl.where(inside, j, 0))
            other = get_every(x, tl.where(inside, other, 0), stride, L)
            if OF_SUMS:
                given = get_every(g, L.row.taken + L.n.nodes + of, L.wide, L) * other
                weight = tl.exp2((factor * other - get_every(x, L.row.top + of, stride, L)) * k)
                total = tl.fma(given * times.to(tl.float32)[:, None], weight, total)
            else:
                total = tl.fma(get_every(g, L.row.taken + of, L.wide, L), other, total)
        put(g, row, L.wide, ok, get(g, row, L.wide, ok & (row < L.n.values), L) + total, L)


@triton.jit(noinline=True)
def uses_of_choices(low, high, ints, x, stride, g, L: tl.constexpr):
    """What values are given by choices: yes − no by the one they are made by, 1 − by and by − 0 by the two others."""
    for at in range(low, high, L.tall):
        number = at + tl.arange(0, L.tall)
        ok = number < high
        _, row, begin, count = four(ints + L.at.use, tl.minimum(number, high - 1))
        total = tl.full((L.tall, L.wide), 0.0, tl.float32)
        for j in range(tl.load(ints + L.at.use + 4 * at + 3)):  # longest first
            inside = j < count
            more, of, _, less = four(ints + L.at.use_of, begin + tl.where(inside, j, 0))
            more, less = capped(get_every(x, more, stride, L)), capped(get_every(x, less, stride, L))
            total += get(g, of, L.wide, inside, L) * (more - less)
        put(g, row, L.wide, ok, get(g, row, L.wide, ok & (row < L.n.values), L) + total, L)


@triton.jit(noinline=True)
def add(low, high, ints, g, L: tl.constexpr):
    """Pieces of long lists of uses, added."""
    for at in range(low, high, L.tall):
        number = at + tl.arange(0, L.tall)
        ok = number < high
        begin = tl.load(ints + L.at.add_start + number, mask=ok, other=0)
        count = tl.load(ints + L.at.add_start + number + 1, mask=ok, other=0) - begin
        total = tl.full((L.tall, L.wide), 0.0, tl.float32)
        for j in range(tl.load(ints + L.at.add_start + at + 1) - tl.load(ints + L.at.add_start + at)):
            piece = tl.load(ints + L.at.add_piece + begin + j, mask=j < count, other=0)
            total += get(g, L.row.partial + piece, L.wide, j < count, L)
        row = tl.load(ints + L.at.add_row + number, mask=ok, other=0)
        put(g, row, L.wide, ok, get(g, row, L.wide, ok & (row < L.n.values), L) + total, L)


@triton.jit
def run_back(
    block, V0, weights, many, partial, ints, floats, x, stride, g, k, first, batch, L: tl.constexpr
):
    """A round of a block, backwards."""
    for p in range(tl.load(ints + L.at.block_backs + block), tl.load(ints + L.at.block_backs + block + 1)):
        kind, low, high, _ = four(ints + L.at.back, p)
        if kind == L.kind.take_products:
            take_products(low, high, g, L)
        elif kind == L.kind.take_parts:
            take_sums(low, high, V0, ints, floats, x, stride, g, k, first, batch, False, L)
        elif kind == L.kind.take_heads:
            if L.soft:
                take_mixtures(low, high, V0, weights, many, partial, ints, floats, x, stride, g, k, first, batch, L)
            else:
                take_sums(low, high, V0, ints, floats, x, stride, g, k, first, batch, True, L)
        elif kind == L.kind.uses_of_products:
            all_uses(low, high, ints, x, stride, g, k, False, L)
        elif kind == L.kind.uses_of_sums:
            all_uses(low, high, ints, x, stride, g, k, True, L)
        elif kind == L.kind.add:
            add(low, high, ints, g, L)
        if L.n.choices > 0:  # noqa: SIM102 - a condition on L alone is decided in emitted files
            if kind == L.kind.uses_of_choices:
                uses_of_choices(low, high, ints, x, stride, g, L)
        tl.debug_barrier()


@triton.jit(noinline=True)
def take_start(head, count, g, L: tl.constexpr):
    """Recursion began with V0: what is left of the gradients of heads is V0's."""
    for at in range(0, count, L.tall):
        number = head + at + tl.arange(0, L.tall)
        ok = number < head + count
        total = get(g, L.row.start + number, L.wide, ok, L) + get(g, L.first_head + number, L.wide, ok, L)
        put(g, L.row.start + number, L.wide, ok, total, L)


@triton.jit(noinline=True)
def last_gradients(g_out, g_V0, ints, g, first, batch, L: tl.constexpr):
    """Gradient of V0 [B, G]: of inputs, of heads that start as given, and of atoms that pass to an output."""
    example, real = examples(first, batch, L)
    for at in range(0, L.n.atoms, L.tall):
        atom = at + tl.arange(0, L.tall)
        ok = atom < L.n.atoms
        row = tl.load(ints + L.at.atom_row + atom, mask=ok, other=-1)
        output = tl.load(ints + L.at.atom_output + atom, mask=ok, other=-1)
        passed = g_out + example[None, :] * L.n.outputs + output[:, None]
        total = get(g, row, L.wide, row >= 0, L) + tl.load(passed, mask=(output >= 0)[:, None], other=0.0)
        tl.store(g_V0 + example[None, :] * L.n.atoms + atom[:, None], total, mask=ok[:, None] & real[None, :])


@triton.jit
def clear_partial(partial, many, L: tl.constexpr):
    for at in range(0, many * L.n.pairs, L.tall):
        place = at + tl.arange(0, L.tall)
        tl.store(partial + place, tl.full((L.tall,), 0.0, tl.float32), mask=place < many * L.n.pairs)
    tl.debug_barrier()


@triton.jit(noinline=True)
def sum_partials(partial, instances, many, g_weights, ints, L: tl.constexpr):
    """Gradient of the weights [M, C] from partial [instances, M, pairs], always in the same order."""
    size = many * L.n.pairs
    for at in range(0, size, 32):
        column = at + tl.arange(0, 32)
        total = tl.full((32, 32), 0.0, tl.float32)
        for instance in range(0, instances, 32):
            number = instance + tl.arange(0, 32)
            ok = (number < instances)[:, None] & (column < size)[None, :]
            place = partial + number[:, None].to(tl.int64) * size + column[None, :]
            total += tl.load(place, mask=ok, other=0.0, cache_modifier=".cg")  # written by other instances
        tl.debug_barrier()
        tl.store(partial + column, tl.sum(total, axis=0), mask=column < size)
        tl.debug_barrier()
    for at in range(0, many * L.n.clauses, L.tall):
        number = at + tl.arange(0, L.tall)
        ok = number < many * L.n.clauses
        m, clause = number // L.n.clauses, number % L.n.clauses
        begin = tl.load(ints + L.at.clause_start + clause, mask=ok, other=0)
        count = tl.load(ints + L.at.clause_start + clause + 1, mask=ok, other=0) - begin
        total = tl.full((L.tall,), 0.0, tl.float32)
        for j in range(tl.max(count, axis=0)):
            pair = tl.load(ints + L.at.clause_pair + begin + j, mask=j < count, other=0)
            total += tl.load(partial + m * L.n.pairs + pair, mask=j < count, other=0.0)
        tl.store(g_weights + number, total, mask=ok)


@triton.jit(do_not_specialize=["batch", "steps", "many"])
def anchored_backward(
    V0, weights, g_out, g_V0, g_weights, x, ticket, partial, g, ints, floats, k, unit, batch, stride, steps, many,
    L: tl.constexpr,
):
    """g_out [B, outputs] → g_V0 [B, G] and, where weights are soft, g_weights [M, C]. x is what the forward pass kept;
    rounds of recursive blocks are computed in it again, and it is left as it was."""
    instance, instances = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    mine = partial + instance * many * L.n.pairs
    if L.soft:
        g += instance * L.wide * (L.row.chosen + many * L.n.heads)
        clear_partial(mine, many, L)
    else:
        g += instance * L.wide * L.row.chosen
    for tile in range(tl.program_id(0), tl.cdiv(batch, L.wide), instances):
        first = tile * L.wide
        rows = x + first
        first_gradients(g_out, ints, g, first, batch, L)
        tl.debug_barrier()
        for back in range(L.n.blocks):
            block = L.n.blocks - 1 - back
            if L.recursive and tl.load(ints + L.at.block_rounds + block) > 0:
                rounds, past = rounds_of(block, ints, steps, L)
                head = tl.load(ints + L.at.block_heads + block)
                heads = tl.load(ints + L.at.block_heads + block + 1) - head
                for r in range(rounds):
                    copy(past + (rounds - 1 - r) * heads, L.first_head + head, heads, rows, stride, L)
                    tl.debug_barrier()
                    run_phases(block, V0, weights, many, ints, floats, rows, stride, k, unit,
                               L.row.fresh - L.first_head, first, batch, True, L)
                    run_back(block, V0, weights, many, mine, ints, floats, rows, stride, g, k, first, batch, L)
                copy(past + rounds * heads, L.first_head + head, heads, rows, stride, L)
                if not L.declared:
                    take_start(head, heads, g, L)
                tl.debug_barrier()
            else:
                run_back(block, V0, weights, many, mine, ints, floats, rows, stride, g, k, first, batch, L)
        last_gradients(g_out, g_V0, ints, g, first, batch, L)
        tl.debug_barrier()
    if L.soft:
        tl.debug_barrier()
        ended = tl.atomic_add(ticket, 1)
        if ended == instances - 1:
            tl.debug_barrier()  # `ended` came by way of shared memory, which the sum uses again
            sum_partials(partial, instances, many, g_weights, ints, L)
            tl.store(ticket, 0)  # as it was, for another backward pass
