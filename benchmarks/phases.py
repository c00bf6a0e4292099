"""What each phase of the Triton kernels does for an example: the formulae, named after the phases.

They follow `kernels/{step,derive,gradients,factors}.py` and the loops around them line by line, for clauses that
are each chosen once (`hard`). `tests/test_roofline.py` compares them with what the kernels do in the
interpreter, operation by operation.
"""

from __future__ import annotations

import numpy as np

from nsfrc.benchmarks.counts import Count, Loops, Work, masked

# One row of a workspace: read, written, or both.
READ, WRITE = Work(near_read=1), Work(near_write=1)


def forward(loops: Loops, steps: int, keep: bool = False) -> Work:
    """V0 → outputs; V and Z of every step are kept if there are to be gradients."""
    each, last = Work(), Work()
    if keep:
        last = copy_kept(loops, save=True)
        each = last + Work(near_read=1, far_write=1)
    step = reason(loops) + update(loops) + normalise(loops) + each
    return start(loops) + step * steps + last + finish(loops)


def backward(loops: Loops, steps: int) -> Work:
    """Gradient of the outputs → that of V0: every step is recomputed, then taken backwards."""
    load = copy_kept(loops, save=False) + Work(far_read=1, near_write=1)
    back = (
        value_claim(loops) + through_values(loops) + derived_claim(loops) + through_derived_z(loops)
        + through_hard(loops) + through_clauses(loops) + through_clause_z(loops) + sum_uses(loops)
        + through_nodes(loops)
    )
    return first_gradient(loops) + WRITE + (load + reason(loops) + back) * steps + last_gradient(loops)


def reason(loops: Loops) -> Work:
    """From V to R and its Z."""
    join = join_parts(loops) if loops.layout.split else Work()
    return prepare(loops) + sum_rows(loops) + join + clause_maxima(loops) + derive(loops)


def starting(loops: Loops, n: int) -> Work:
    """n slots from V0; the program's own values are looked up for all rows of a tile."""
    constants = loops.flat(n)[[1, 1]] if loops.layout.neural_only else 0
    return Work(far_read=n, table=n + constants)


def start(loops: Loops) -> Work:
    """V0 into the rows of V, and a constant 1."""
    n = loops.layout.n
    passive = n.slots - n.active
    stored = passive if n.kept == n.slots else 1
    return starting(loops, n.active) + starting(loops, passive) + Work(near_write=n.active + 1 + stored)


def power(loops: Loops) -> Work:
    """By squaring: two products a bit, used or not."""
    return Work(mul=2 * loops.layout.power_bits)


def prepare(loops: Loops) -> Work:
    """false^L, every power of true (and its derivative), and the nodes level by level."""
    n, nodes = loops.layout.n, loops.nodes
    of_true = (power(loops) + Work(mul=1) + WRITE) * (2 if loops.layout.gradient else 1) + Work(table=1)
    products = Work(mul=nodes, near_read=2 * masked(nodes), near_write=masked(nodes), table=2 * masked(nodes))
    return 2 * READ + power(loops) + WRITE + of_true * n.powers + products + Work(table=2 * n.levels)


def sum_rows(loops: Loops) -> Work:
    """A running soft-or over rows: an exponential a row, one a round for what was there, two for padding."""
    s = loops.rows
    done = Work(
        mul=3 * s.entries + s.rounds, add=2 * (s.entries + s.rounds) + s.summed, exp=s.entries + s.rounds,
        near_read=3 * s.entries, table=4 * masked(s.entries),
    )
    done += Work(add=s.segments, log=s.segments, near_write=masked(s.segments), table=3 * masked(s.segments) + s.tiles)
    if loops.layout.gradient:
        done += Work(mul=2 * s.entries + s.rounds, add=s.entries + s.summed + s.rounds, near_read=s.entries)
        done += Work(div=s.segments, near_write=masked(s.segments))
    if not loops.layout.split:
        done += Work(mul=3 * s.segments, add=3 * s.segments, exp=2 * s.segments, table=masked(s.segments))
        done += Work(mul=1, near_read=1) * s.tiles
    return done


def join_parts(loops: Loops) -> Work:
    """A soft-or over the parts of a pair: two exponentials each."""
    pairs, parts = loops.flat(loops.layout.n.pairs), loops.parts_of_pairs.entries
    each = Work(add=3 * parts, exp=2 * parts, mul=parts, near_read=masked(parts))
    ends = Work(add=2 * pairs, log=pairs, near_write=masked(pairs), table=3 * masked(pairs))
    return Work(mul=1, near_read=1) + each + ends


# C before Z where a clause does not unify, of an example.
ABSENT_BITS = Work(mul=1, add=1, near_read=1)


def clause_maxima(loops: Loops) -> Work:
    s = loops.pairs_of_clauses
    each = Work(add=s.segments, mul=s.entries, near_read=s.entries, near_write=masked(s.segments))
    return (ABSENT_BITS + Work(mul=1)) * s.bands + each + Work(table=3 * masked(s.segments) + s.tiles)


def absent_of(n: np.ndarray, times: int) -> Work:
    """Normalised C of n absent clauses, in so many tiles or turns."""
    return Work(div=n, near_read=masked(n)) + ABSENT_BITS * times


def pair_bits(n: np.ndarray) -> Work:
    return Work(div=n, near_read=2 * masked(n))


def absent_softor(loops: Loops) -> Work:
    """A soft-or over all clauses."""
    n = loops.layout.n.clauses
    each, tile = loops.flat(n), loops.folded(n)
    running = Work(add=3 * each, exp=2 * each, mul=each) + absent_of(each, loops.tiles(n))
    return running + Work(add=2 * tile + (tile - 1) + 1, exp=tile, mul=tile, log=1)


def derive(loops: Loops) -> Work:
    """R before Z: a soft-or over the pairs of each head and over all absent clauses but theirs; and its Z."""
    heads, lists = loops.flat(loops.layout.n.heads + 1), loops.pairs_of_heads
    pair = pair_bits(lists.entries) + absent_of(lists.entries, lists.turns)
    pair += Work(add=5 * lists.entries, exp=3 * lists.entries, mul=lists.entries)
    pair += Work(table=2 * masked(lists.entries) + 2 * lists.looked_up)
    head = Work(add=4 * heads, exp=heads, mul=heads, log=heads, near_write=masked(heads), table=2 * masked(heads))
    largest = Work(mul=heads, near_read=masked(heads), near_write=1)
    return absent_softor(loops) + pair + head + largest


def derived_of(loops: Loops, n: int) -> Work:
    """Normalised R of n slots."""
    each = loops.flat(n)
    return Work(mul=each, div=each, near_read=n + loops.tiles(n), table=n)


def update(loops: Loops) -> Work:
    """A soft-or of two for every slot: one exponential, one logarithm."""
    kept = loops.flat(loops.layout.n.kept)
    softor = Work(add=3 * kept, mul=2 * kept, exp=kept, log=kept)
    moved = Work(near_read=masked(kept), near_write=masked(kept))
    return derived_of(loops, loops.layout.n.kept) + softor + moved + WRITE


def normalise(loops: Loops) -> Work:
    kept = loops.flat(loops.layout.n.kept)
    return READ + Work(div=kept, near_read=masked(kept), near_write=masked(kept))


def copy_kept(loops: Loops, save: bool) -> Work:
    kept = loops.layout.n.kept
    return Work(near_read=kept, far_write=kept) if save else Work(far_read=kept, near_write=kept)


def finish(loops: Loops) -> Work:
    outputs = loops.layout.n.outputs
    return Work(near_read=outputs, far_write=outputs, table=outputs)


def first_gradient(loops: Loops) -> Work:
    """Gradient of the outputs, gathered by slot."""
    asked, kept = loops.asked.entries, loops.layout.n.kept
    return Work(add=asked, far_read=masked(asked), near_write=kept, table=masked(asked) + 2 * kept)


def settle(loops: Loops, n: int) -> Work:
    """Sum over a tile into which n rows were added; Z's gradient and who is to have it."""
    return Work(add=loops.folded(n) - 1) + 2 * WRITE


def value_claim(loops: Loops) -> Work:
    n = loops.layout.n.kept
    kept = loops.flat(n)
    each = Work(mul=kept, div=kept, add=kept, near_read=n, far_read=n, table=n)
    return READ + each + settle(loops, n)


def through_values(loops: Loops) -> Work:
    """Back through V' = softor(V, R): the exponential again, and two divisions for the shares."""
    n = loops.layout.n
    kept = loops.flat(n.kept)
    shares = Work(add=3 * kept, mul=kept, exp=kept, div=2 * kept)
    each = Work(div=kept, add=2 * kept, mul=3 * kept, near_read=2 * n.kept, near_write=n.kept + n.heads)
    each += Work(table=2 * n.kept)
    return 3 * READ + derived_of(loops, n.kept) + shares + each + Work(add=loops.folded(n.kept) - 1) + WRITE


def derived_claim(loops: Loops) -> Work:
    n = loops.layout.n.heads + 1
    heads = loops.flat(n)
    return READ + Work(mul=2 * heads, div=2 * heads, add=heads, near_read=2 * n) + settle(loops, n)


def through_derived_z(loops: Loops) -> Work:
    n = loops.layout.n.heads + 1
    heads = loops.flat(n)
    return 3 * READ + Work(div=heads, add=heads, near_read=n, near_write=n)


def through_hard(loops: Loops) -> Work:
    """An exponential a pair and one a head: shares of the soft-or over clauses."""
    n = loops.layout.n
    pairs, heads = loops.flat(n.pairs), loops.flat(n.heads + 1)
    pair = Work(add=pairs, exp=pairs, mul=pairs, near_read=2 * n.pairs, near_write=n.pairs, table=2 * n.pairs)
    head = Work(add=2 * heads, exp=heads, mul=heads, near_read=2 * (n.heads + 1), near_write=n.heads + 1)
    return READ + pair_bits(pairs) + pair + head + Work(add=loops.folded(n.heads + 1) - 1) + WRITE


def through_clauses(loops: Loops) -> Work:
    """Gradient of absent clauses, from all pairs of a clause, and of each clause's Z."""
    s = loops.pairs_of_clauses
    entry = Work(mul=2 * s.entries, div=s.entries, near_read=3 * s.entries, table=s.entries[[1, 1]])
    entry += Work(add=s.entries + 2 * (s.summed + s.rounds), div=s.rounds)
    clause = Work(add=3 * s.segments, mul=3 * s.segments, div=3 * s.segments, exp=s.segments)
    clause += Work(near_read=masked(s.segments), near_write=3 * masked(s.segments), table=3 * masked(s.segments))
    return (ABSENT_BITS + READ) * s.bands + Work(mul=1, near_read=1, table=1) * s.tiles + entry + clause


def through_clause_z(loops: Loops) -> Work:
    """Back through each clause's Z, and to true and false."""
    n = loops.layout.n
    clauses, pairs = loops.flat(n.clauses), loops.flat(n.pairs)
    clause = Work(div=clauses, add=2 * clauses, near_read=4 * n.clauses)
    pair = Work(div=pairs, add=3 * pairs, exp=pairs, mul=2 * pairs, near_read=5 * n.pairs, near_write=n.pairs)
    pair += Work(table=3 * n.pairs) + Work(mul=1) * loops.tiles(n.pairs)
    if loops.layout.split:
        true = through_parts(loops) + Work(add=loops.folded(n.parts))
    else:
        true = Work(mul=pairs, add=pairs, near_read=n.pairs)
    sums = Work(add=2 * (loops.folded(n.pairs) - 1)) + 2 * WRITE
    slope = READ + power(loops) + Work(mul=2)
    return READ + clause + pair + true + sums + slope + Work(near_write=n.active + 1 + n.nodes)


def through_parts(loops: Loops) -> Work:
    n = loops.layout.n.parts
    parts = loops.flat(n)
    return Work(add=2 * parts, exp=parts, mul=2 * parts, near_read=4 * n, table=n)


def sum_uses(loops: Loops) -> Work:
    """Every row once for each of its factors, its weight recomputed: an exponential each."""
    s = loops.uses
    entry = Work(mul=5 * s.entries, add=2 * s.entries + s.summed + s.rounds, exp=s.entries, near_read=4 * s.entries)
    factor = Work(mul=s.segments, near_read=masked(s.segments), near_write=masked(s.segments))
    return entry + factor + Work(table=4 * masked(s.entries) + 3 * masked(s.segments) + s.tiles)


def through_nodes(loops: Loops) -> Work:
    """Products backwards, and all of it into the gradient of V."""
    n, (factors, tiles, lists) = loops.layout.n, loops.fed
    node = Work(mul=lists.entries, add=lists.entries, near_read=2 * masked(lists.entries))
    moved: Count = masked(factors)
    factor = Work(near_read=moved, near_write=moved, table=3 * moved + 2 * masked(lists.entries))
    active = Work(add=3 * loops.flat(n.active), near_read=2 * n.active, near_write=n.active)
    return node + factor + Work(table=tiles + 2 * n.levels) + 2 * READ + active


def last_gradient(loops: Loops) -> Work:
    """Gradient of V into that of V0; the largest passive atom is found again where it stood for all."""
    n = loops.layout.n
    constants = n.atoms if loops.layout.neural_only else 0
    done = Work(near_read=loops.with_gradient, far_write=n.atoms, table=n.atoms + constants)
    if n.kept == n.slots:
        return done
    lanes = loops.layout.wide  # its atom differs from example to example, so it is looked up for each
    found = Work(near_read=1, far_write=1, table=lanes * (2 if loops.layout.neural_only else 1))
    return done + starting(loops, n.slots - n.active) * 2 + found
