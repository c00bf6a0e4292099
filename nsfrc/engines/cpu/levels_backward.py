"""The backward kernel of `anchored`: blocks from the last to the first, each from the values that `forward` kept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nsfrc.engines.cpu.levels_forward import (
    choose,
    few,
    is_anchored,
    load,
    multiply,
    new_scratch,
    padded_lanes,
    simple,
    softor_hard,
    softor_soft,
)
from nsfrc.engines.cpu.levels_reading import read_call, read_tables
from nsfrc.engines.cpu.levels_single import no_rounds, room_for_one
from nsfrc.engines.cpu.levels_single_backward import backward_singly
from nsfrc.engines.cpu.levels_softor import CONSTANT_ONE, FLAT, ONE, ZERO, through_runs, weight
from nsfrc.engines.cpu.maths import INNER, flush_denormals, restore, smaller
from nsfrc.engines.cpu.memory import allocate, begin, cell, ints, load_row, new_row, new_table, release
from nsfrc.engines.cpu.reading import read_base
from nsfrc.engines.cpu.tables import FINE, NO_MEMORY


class Gradients(NamedTuple):
    """Room for a tile: gradients of X, of V0 of the heads, of the heads of a round, and two rows."""

    gX: np.ndarray
    anchor: np.ndarray
    heads: np.ndarray
    scaled: np.ndarray
    C: np.ndarray


@njit(**INNER)
def _restore_heads(past, start, heads, first, last, row, X):
    """Values of some heads from past [rows, B] to X; spare lanes repeat the last example."""
    for head in range(heads):
        load_row(past[start + head, first:last], X[row + head])


@njit(**INNER)
def _through_nodes(t, first, last, X, gX):
    for node in range(last - 1, first - 1, -1):
        left, right, g = t.node_left[node], t.node_right[node], gX[t.first_node + node]
        a, b, g_a, g_b = X[left], X[right], gX[left], gX[right]
        for i in range(X.shape[1]):
            g_a[i] += g[i] * b[i]
        for i in range(X.shape[1]):
            g_b[i] += g[i] * a[i]


@njit(**INNER)
def _through_choices(t, first, last, X, gX):
    for choice in range(last - 1, first - 1, -1):
        by, no, yes = t.choice_by[choice], t.choice_no[choice], t.choice_yes[choice]
        x, a, b, g = X[by], X[no], X[yes], gX[t.first_choice + choice]
        g_by, g_no, g_yes = gX[by], gX[no], gX[yes]
        for i in range(X.shape[1]):
            g_by[i] += g[i] * (b[i] - a[i])
        for i in range(X.shape[1]):
            g_no[i] += g[i] * (ONE - smaller(ONE, x[i]))
        for i in range(X.shape[1]):
            g_yes[i] += g[i] * smaller(ONE, x[i])


@njit(**INNER)
def _through_hard(t, head, k, unit, flat, s, g, gX, g_anchor, scaled):
    """From the gradient of a head to those of its rows' factors and of its V0; the cap lets it through unchanged."""
    lanes = len(g)
    anchor = s.anchor[head]
    if simple(t, head, is_anchored(anchor)):
        row = t.run_start[t.pair_start[t.head_start[head]]]
        left, right = t.row_left[row], t.row_right[row]
        a, b, g_a, g_b = s.X[left], s.X[right], gX[left], gX[right]
        for i in range(lanes):
            g_a[i] += g[i] * b[i]
            g_anchor[head, i] += g[i] * weight(ZERO, a[i] * b[i], k)
        for i in range(lanes if right != CONSTANT_ONE else 0):
            g_b[i] += g[i] * a[i]
        return
    softor_hard(t, head, k, unit, flat, s, scaled)
    top, total = s.top[-1], s.total[-1]
    for i in range(lanes):
        scaled[i] = g[i] / total[i]
        g_anchor[head, i] += scaled[i] * weight(anchor[i], top[i], k)
    first, last = t.pair_start[t.head_start[head]], t.pair_start[t.head_start[head + 1]]
    through_runs(t, first, last, k, s.X, top, scaled, gX, s.buffer)


@njit(**INNER)
def _through_soft(t, head, k, unit, flat, weights, s, g, examples, gX, g_anchor, g_weights, scaled, g_C):
    """Likewise through mixtures of clauses; adds to the weights' gradient."""
    lanes = len(g)
    softor_soft(t, head, k, unit, flat, weights, s, scaled)
    top, total, anchor = s.top[-1], s.total[-1], s.anchor[head]
    for i in range(lanes):
        scaled[i] = g[i] / total[i]
        g_anchor[head, i] += scaled[i] * weight(anchor[i], top[i], k)
    first_pair, last_pair = t.head_start[head], t.head_start[head + 1]
    for m in range(weights.shape[0]):
        mixed = s.mixed[m]
        for i in range(lanes):
            mixed[i] = scaled[i] * weight(mixed[i], top[i], k)  # now the gradient of H
    for pair in range(first_pair, last_pair):
        p, clause = pair - first_pair, t.pair_clause[pair]
        for i in range(lanes):
            g_C[i] = ZERO
        for m in range(weights.shape[0]):
            mixed, share, added = s.mixed[m], weights[m, clause], 0.0
            for i in range(lanes):
                g_C[i] += share * mixed[i]
            for i in range(examples):
                added += mixed[i] * s.pairs[p, i]
            g_weights[m, clause] += added
        for i in range(lanes):
            g_C[i] /= s.total[p, i]
        through_runs(t, t.pair_start[pair], t.pair_start[pair + 1], k, s.X, s.top[p], g_C, gX, s.buffer)


@njit(**INNER)
def _through_heads(t, block, call, k, unit, flat, s, g, examples, r):
    """Through the heads of a block and then its nodes. g [heads of the block, lanes]."""
    start, end = t.block_heads[block], t.block_heads[block + 1]
    for head in range(start, end):
        if call.hard:
            _through_hard(t, head, k, unit, flat, s, g[head - start], r.gX, r.anchor, r.scaled)
        else:
            _through_soft(t, head, k, unit, flat, call.weights, s, g[head - start], examples, r.gX, r.anchor,
                          call.g_weights, r.scaled, r.C)
    _through_nodes(t, t.block_nodes[block], t.block_nodes[block + 1], s.X, r.gX)
    _through_choices(t, t.block_choices[block], t.block_choices[block + 1], s.X, r.gX)


@njit(**INNER)
def _through_rounds(t, block, call, k, unit, flat, s, first, last, tile, r):
    """Through the rounds of a recursive block, the last one first; those after it settled have the same values."""
    start, end = t.block_heads[block], t.block_heads[block + 1]
    heads, row, lanes, g, gX = end - start, t.first_head + start, s.X.shape[1], r.heads, r.gX
    for turn in range(call.rounds[block], 0, -1):
        before = min(turn - 1, call.settled[tile, block])
        _restore_heads(call.past, call.past_start[block] + before * heads, heads, first, last, row, s.X)
        multiply(t, t.block_nodes[block], t.block_nodes[block + 1], s.X)
        for head in range(heads):
            for i in range(lanes):
                g[head, i], gX[row + head, i] = gX[row + head, i], ZERO
        for node in range(t.block_nodes[block], t.block_nodes[block + 1]):
            for i in range(lanes):
                gX[t.first_node + node, i] = ZERO
        _through_heads(t, block, call, k, unit, flat, s, g, last - first, r)
    for head in range(heads):
        for i in range(lanes):
            r.anchor[start + head, i] += gX[row + head, i]


@njit(**INNER)
def _lay_out(cursor, t, call, lanes):
    """The room of a tile, from where the cursor is."""
    s = new_scratch(cursor, t, call.weights, call.hard, lanes)
    rows, heads = s.X.shape[0], s.anchor.shape[0]
    return s, Gradients(
        new_table(cursor, rows, lanes), new_table(cursor, heads, lanes), new_table(cursor, heads, lanes),
        new_row(cursor, lanes), new_row(cursor, lanes),
    )


@njit(**INNER)
def _load_values(t, call, first, last, tile, s):
    """Final values of all heads, and the nodes of plain blocks made of them."""
    for block in range(len(call.rounds)):
        start, heads = t.block_heads[block], t.block_heads[block + 1] - t.block_heads[block]
        kept = call.past_start[block] + (call.settled[tile, block] * heads if call.rounds[block] >= 0 else 0)
        if call.rounds[block] < 0:
            choose(t, t.block_choices[block], t.block_choices[block + 1], s.X)
            multiply(t, t.block_nodes[block], t.block_nodes[block + 1], s.X)
        _restore_heads(call.past, kept, heads, first, last, t.first_head + start, s.X)


@njit(**INNER)
def _through_tile(t, call, k, unit, flat, s, r, first, last, tile):
    """Gradients of examples first … last, in the lanes of `s` and `r`."""
    for row in range(r.gX.shape[0]):
        for i in range(r.gX.shape[1]):
            r.gX[row, i] = ZERO
    for head in range(r.anchor.shape[0]):
        for i in range(r.gX.shape[1]):
            r.anchor[head, i] = ZERO
    load(t, call.V0, first, last, s)
    _load_values(t, call, first, last, tile, s)
    for i in range(last - first):
        for j in range(len(call.place)):
            if call.place[j] >= 0:
                r.gX[call.place[j], i] += call.out[first + i, j]
            else:
                call.g_V0[first + i, call.atom[j]] += call.out[first + i, j]
    for block in range(len(call.rounds) - 1, -1, -1):
        if call.rounds[block] >= 0:
            _through_rounds(t, block, call, k, unit, flat, s, first, last, tile, r)
        else:
            row = t.first_head + t.block_heads[block]
            g = r.gX[row : row + t.block_heads[block + 1] - t.block_heads[block]]
            _through_heads(t, block, call, k, unit, flat, s, g, last - first, r)
    for i in range(last - first):
        for j in range(len(t.input_atom)):
            call.g_V0[first + i, t.input_atom[j]] += r.gX[2 + j, i]
        for head in range(len(t.head_atom)):
            if t.head_value[head] < ZERO:
                call.g_V0[first + i, t.head_atom[head]] += r.anchor[head, i]


@njit(**INNER)
def backward(address):
    """Gradients of examples first … last: adds to g_V0 [B, G] and g_weights [M, C] (float64).

    address: of the record that `forward` had, with what it kept; `out` is the gradient of the outputs.
    """
    call, t = read_call(address), read_tables(address)
    gamma, k, unit = read_base(address)
    flat, one_by_one = gamma >= FLAT, few(call) and no_rounds(call)
    cursor = ints(cell(), 1)
    cursor[0] = 0
    if one_by_one:
        new_row(cursor, len(room_for_one(cursor, t)[0]))
    else:
        _lay_out(cursor, t, call, padded_lanes(min(call.tile, call.last - call.first)))
    room = allocate(cursor[0] + begin(1))
    if room == 0:
        return NO_MEMORY
    mode = flush_denormals()
    done, tile = call.first, 0
    if one_by_one:
        cursor[0] = begin(room)
        backward_singly(t, call, k, unit, flat, cursor)
        done = call.last
    while done < call.last:
        end = min(done + call.tile, call.last)
        cursor[0] = begin(room)
        s, r = _lay_out(cursor, t, call, padded_lanes(end - done))
        _through_tile(t, call, k, unit, flat, s, r, done, end, tile)
        done, tile = end, tile + 1
    restore(mode)
    release(room)
    return FINE
