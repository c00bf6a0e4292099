"""The table-driven kernels of `anchored`: a program level by level, in one launch.

An instance takes tiles of examples, one after the other. Nothing couples examples, so no instance waits for another;
between two phases all threads of an instance wait for each other. Rows of long lists are parts of their own, so that
threads share out a program that is large, whatever the batch.
"""

from __future__ import annotations

import triton
import triton.language as tl

from nsfrc.kernels.anchored_maths import capped, summed, with_reasons
from nsfrc.kernels.maths import examples, four, get, get_every, put, put_row, two


@triton.jit
def starting(V0, ints, floats, head, ok, first, batch, L: tl.constexpr):
    """V0 of heads [n]: [n, lanes], as the program declares it or as it is given."""
    if L.declared:
        value = tl.load(floats + L.of.head_value + head, mask=ok, other=0.0)[:, None]
        start = value + tl.full((head.shape[0], L.wide), 0.0, tl.float32)
    else:
        example, _ = examples(first, batch, L)
        atom = tl.load(ints + L.at.head_atom + head, mask=ok, other=0)
        start = tl.load(V0 + example[None, :] * L.n.atoms + atom[:, None], mask=ok[:, None], other=0.0)
    return start


@triton.jit(noinline=True)
def load_inputs(V0, ints, floats, x, stride, first, batch, L: tl.constexpr):
    """0, 1 and the inputs into X; and V0 of the heads, from which recursion begins."""
    example, _ = examples(first, batch, L)
    put_row(x, 0, stride, tl.full((L.wide,), 0.0, tl.float32), L)
    put_row(x, 1, stride, tl.full((L.wide,), 1.0, tl.float32), L)
    for at in range(0, L.n.inputs, L.tall):
        number = at + tl.arange(0, L.tall)
        atom = tl.load(ints + L.at.input_atom + tl.minimum(number, L.n.inputs - 1))
        # Examples by atoms, so that a warp reads neighbours.
        value = tl.trans(tl.load(V0 + example[:, None] * L.n.atoms + atom[None, :]))
        put(x, 2 + number, stride, number < L.n.inputs, value, L)
    if L.recursive:
        for at in range(0, L.n.heads, L.tall):
            head = at + tl.arange(0, L.tall)
            ok = head < L.n.heads
            put(x, L.first_head + head, stride, ok, starting(V0, ints, floats, head, ok, first, batch, L), L)


@triton.jit
def product(x, left, right, stride, L: tl.constexpr):
    return get_every(x, left, stride, L) * get_every(x, right, stride, L)


@triton.jit(noinline=True)
def products(low, high, ints, x, stride, L: tl.constexpr):
    for at in range(low, high, L.tall):
        node = at + tl.arange(0, L.tall)
        ok = node < high
        left, right = two(ints + L.at.node, node, ok, 0)
        put(x, L.first_node + node, stride, ok, product(x, left, right, stride, L), L)


@triton.jit(noinline=True)
def choices(low, high, ints, x, stride, L: tl.constexpr):
    """By a value that is at most 1, between two others."""
    for at in range(low, high, L.tall):
        number = at + tl.arange(0, L.tall)
        ok = number < high
        row, by, no, yes = four(ints + L.at.choice, tl.minimum(number, high - 1))
        by, no, yes = capped(get_every(x, by, stride, L)), get_every(x, no, stride, L), get_every(x, yes, stride, L)
        put(x, row, stride, ok, no + by * (yes - no), L)


@triton.jit
def by_length(low, high, L: tl.constexpr):
    """Where lists low … high are cut in two: those before go by tiles, those after by tiles of few."""
    return tl.minimum(low + (high - low + L.tall // 2 - 1) // L.tall * L.tall, high)


@triton.jit
def all_sums(
    low, high, V0, ints, floats, x, stride, k, unit, shift, first, batch,
    OF_HEADS: tl.constexpr, KEEP: tl.constexpr, L: tl.constexpr,
):
    middle = by_length(low, high, L)
    if low < middle:
        sums(low, middle, V0, ints, floats, x, stride, k, unit, shift, first, batch, L.tall, OF_HEADS, KEEP, L)
    if middle < high:
        sums(middle, high, V0, ints, floats, x, stride, k, unit, shift, first, batch, L.few, OF_HEADS, KEEP, L)


@triton.jit
def often(times):
    """A tuple of whole numbers [n] as numbers [n, 1]."""
    found = ()
    for i in tl.static_range(len(times)):
        found += (times[i].to(tl.float32)[:, None],)
    return found


@triton.jit(noinline=True)
def sums(
    low, high, V0, ints, floats, x, stride, k, unit, shift, first, batch,
    HEIGHT: tl.constexpr, OF_HEADS: tl.constexpr, KEEP: tl.constexpr, L: tl.constexpr,
):
    """Soft-ors of parts, or of heads, whose V0 is a reason more and which are at most 1. HEIGHT: lists of a tile."""
    for at in range(low, high, HEIGHT):
        number = at + tl.arange(0, HEIGHT)
        ok = number < high
        row, begin, count, _ = four(ints + L.at.sum, tl.minimum(number, high - 1))
        top, total = tl.full((HEIGHT, L.wide), 0.0, tl.float32), tl.full((HEIGHT, L.wide), 0.0, tl.float32)
        if OF_HEADS:
            start = starting(V0, ints, floats, row - L.first_head, ok, first, batch, L)
            top, total = with_reasons(top, total, (start,), (1.0,), k, L.warm)
        for j in range(tl.load(ints + L.at.sum + 4 * at + 2)):  # longest first
            group = tl.where(j < count, begin + j, 0)
            left, right = four(ints + L.at.left, group), four(ints + L.at.right, group)
            times = (1.0, 1.0, 1.0, 1.0)
            if not L.once:
                times = often(four(ints + L.at.times, group))
            rows = (product(x, left[0], right[0], stride, L), product(x, left[1], right[1], stride, L),
                    product(x, left[2], right[2], stride, L), product(x, left[3], right[3], stride, L))
            top, total = with_reasons(top, total, rows, times, k, L.warm)
        value, inverse = summed(top, total, k, unit, L.warm)
        put(x, row + shift, stride, ok, capped(value) if OF_HEADS else value, L)
        if KEEP:
            put(x, L.row.top + number, stride, ok, top, L)
            put(x, L.row.inverse + number, stride, ok, inverse, L)


@triton.jit
def mixture(m, pair, count, weights, ints, x, stride, L: tl.constexpr):
    """H_m of heads [n], whose pairs begin at `pair` [n]: [n, lanes]."""
    mixed = tl.full((L.tall, L.wide), 0.0, tl.float32)
    for j in range(tl.max(count, axis=0)):
        inside = j < count
        clause = tl.load(ints + L.at.pair_clause + pair + j, mask=inside, other=0)
        weight = tl.load(weights + m * L.n.clauses + clause, mask=inside, other=0.0)[:, None]
        mixed += weight * get(x, L.first_pair + pair + j, stride, inside, L)
    return mixed


@triton.jit(noinline=True)
def mixtures(
    low, high, V0, weights, many, ints, floats, x, stride, k, unit, shift, first, batch,
    KEEP: tl.constexpr, L: tl.constexpr,
):
    """Heads as soft-ors of V0 and of as many mixtures of clauses."""
    for at in range(low, high, L.tall):
        head = at + tl.arange(0, L.tall)
        ok = head < high
        pair = tl.load(ints + L.at.pair_start + head, mask=ok, other=0)
        count = tl.load(ints + L.at.pair_start + head + 1, mask=ok, other=0) - pair
        top, total = tl.full((L.tall, L.wide), 0.0, tl.float32), tl.full((L.tall, L.wide), 0.0, tl.float32)
        start = starting(V0, ints, floats, head, ok, first, batch, L)
        top, total = with_reasons(top, total, (start,), (1.0,), k, L.warm)
        for m in range(many):
            reason = mixture(m, pair, count, weights, ints, x, stride, L)
            top, total = with_reasons(top, total, (reason,), (1.0,), k, L.warm)
        value, inverse = summed(top, total, k, unit, L.warm)
        put(x, L.first_head + head + shift, stride, ok, capped(value), L)
        if KEEP:
            put(x, L.row.top + L.n.sums + head, stride, ok, top, L)
            put(x, L.row.inverse + L.n.sums + head, stride, ok, inverse, L)


@triton.jit(noinline=True)
def copy(source, target, count, x, stride, L: tl.constexpr):
    """Rows of X from one place to another."""
    for at in range(0, count, L.tall):
        number = at + tl.arange(0, L.tall)
        put(x, target + number, stride, number < count, get(x, source + number, stride, number < count, L), L)


@triton.jit
def run_phases(
    block, V0, weights, many, ints, floats, x, stride, k, unit, shift, first, batch,
    KEEP: tl.constexpr, L: tl.constexpr,
):
    """A round of a block; shift: where heads go, beyond their own rows."""
    for p in range(tl.load(ints + L.at.block_phases + block), tl.load(ints + L.at.block_phases + block + 1)):
        kind, low, high, _ = four(ints + L.at.phase, p)
        if kind == L.kind.products:
            products(low, high, ints, x, stride, L)
        elif kind == L.kind.parts:
            all_sums(low, high, V0, ints, floats, x, stride, k, unit, 0, first, batch, False, KEEP, L)
        elif kind == L.kind.heads:
            if L.soft:
                mixtures(low, high, V0, weights, many, ints, floats, x, stride, k, unit, shift, first, batch, KEEP, L)
            else:
                all_sums(low, high, V0, ints, floats, x, stride, k, unit, shift, first, batch, True, KEEP, L)
        if L.n.choices > 0:  # noqa: SIM102 - a condition on L alone is decided in emitted files
            if kind == L.kind.choices:
                choices(low, high, ints, x, stride, L)
        tl.debug_barrier()


@triton.jit
def rounds_of(block, ints, steps, L: tl.constexpr):
    """How often a recursive block is run, and where in X its past begins. steps: -1 for the rounds it needs."""
    rounds = tl.load(ints + L.at.block_rounds + block)
    members = tl.load(ints + L.at.block_members + block)
    past = L.row.past + tl.where(steps < 0, tl.load(ints + L.at.block_past + block), members * (steps + 1))
    return tl.where(steps < 0, rounds, steps), past


@triton.jit(noinline=True)
def finish(V0, out, ints, x, stride, first, batch, L: tl.constexpr):
    """Values of the output atoms into out [B, outputs]."""
    example, inside = examples(first, batch, L)
    for at in range(0, L.n.outputs, L.few):
        output = at + tl.arange(0, L.few)
        ok = output < L.n.outputs
        row = tl.load(ints + L.at.output + output, mask=ok, other=0)
        passed = V0 + example[None, :] * L.n.atoms + (-1 - row)[:, None]
        value = get(x, row, stride, ok & (row >= 0), L) + tl.load(passed, mask=(row < 0)[:, None], other=0.0)
        place = out + example[None, :] * L.n.outputs + output[:, None]
        tl.store(place, value, mask=ok[:, None] & inside[None, :])


@triton.jit(do_not_specialize=["batch", "steps", "many"])
def anchored_forward(
    V0, weights, out, x, ticket, ints, floats, k, unit, batch, stride, steps, many,
    KEEP: tl.constexpr, L: tl.constexpr,
):
    """V0 [B, G] → out [B, outputs]. x: [rows, stride], of all examples if they are to be KEPT for gradients, else of
    this instance. many: M. ticket: 0 is left there, for the backward pass."""
    if KEEP and L.soft:
        tl.store(ticket, 0)
    if KEEP:
        step = stride
    else:
        step = L.wide
        x += tl.program_id(0).to(tl.int64) * L.wide * L.row.top
    for tile in range(tl.program_id(0), tl.cdiv(batch, L.wide), tl.num_programs(0)):
        first = tile * L.wide
        rows = x
        if KEEP:
            rows = x + first
        load_inputs(V0, ints, floats, rows, step, first, batch, L)
        tl.debug_barrier()
        for block in range(L.n.blocks):
            if L.recursive and tl.load(ints + L.at.block_rounds + block) > 0:
                rounds, past = rounds_of(block, ints, steps, L)
                head = L.first_head + tl.load(ints + L.at.block_heads + block)
                heads = L.first_head + tl.load(ints + L.at.block_heads + block + 1) - head
                shift = L.row.fresh - L.first_head
                for r in range(rounds):
                    if KEEP:
                        copy(head, past + r * heads, heads, rows, step, L)
                    run_phases(block, V0, weights, many, ints, floats, rows, step, k, unit, shift, first, batch,
                               KEEP, L)
                    copy(head + shift, head, heads, rows, step, L)
                    tl.debug_barrier()
                if KEEP:
                    copy(head, past + rounds * heads, heads, rows, step, L)
            else:
                run_phases(block, V0, weights, many, ints, floats, rows, step, k, unit, 0, first, batch, KEEP, L)
        finish(V0, out, ints, rows, step, first, batch, L)
        tl.debug_barrier()
