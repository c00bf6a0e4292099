"""The backward kernel of `anchored`: blocks from the last to the first, each from the values that `forward` kept."""

from __future__ import annotations

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
from nsfrc.engines.cpu.levels_single import no_rounds
from nsfrc.engines.cpu.levels_single_backward import backward_singly
from nsfrc.engines.cpu.levels_softor import CONSTANT_ONE, FLAT, ONE, ZERO, through_runs, weight
from nsfrc.engines.cpu.levels_tables import read, unpack
from nsfrc.engines.cpu.maths import INNER, KERNEL, flush_denormals, restore, smaller


@njit(**INNER)
def _restore_heads(past, start, heads, first, last, row, X):
    """Values of some heads from past [rows, B] to X; spare lanes repeat the last example."""
    for head in range(heads):
        for i in range(X.shape[1]):
            X[row + head, i] = past[start + head, min(first + i, last - 1)]


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
def _through_heads(t, block, call, k, unit, flat, s, g, examples, gX, g_anchor, g_weights, scaled, g_C):
    """Through the heads of a block and then its nodes. g [heads of the block, lanes]."""
    begin, end = t.block_heads[block], t.block_heads[block + 1]
    for head in range(begin, end):
        if call.hard:
            _through_hard(t, head, k, unit, flat, s, g[head - begin], gX, g_anchor, scaled)
        else:
            _through_soft(t, head, k, unit, flat, call.weights, s, g[head - begin], examples, gX, g_anchor, g_weights,
                          scaled, g_C)
    _through_nodes(t, t.block_nodes[block], t.block_nodes[block + 1], s.X, gX)
    _through_choices(t, t.block_choices[block], t.block_choices[block + 1], s.X, gX)


@njit(**INNER)
def _through_rounds(t, block, call, k, unit, flat, s, first, last, settled, gX, g_anchor, g_weights, scaled, g_C):
    """Through the rounds of a recursive block, the last one first; those after it settled have the same values."""
    begin, end = t.block_heads[block], t.block_heads[block + 1]
    heads, row, lanes = end - begin, t.first_head + begin, s.X.shape[1]
    g = np.empty((heads, lanes), np.float32)
    for turn in range(call.rounds[block], 0, -1):
        before = min(turn - 1, settled[block])
        _restore_heads(call.past, call.past_start[block] + before * heads, heads, first, last, row, s.X)
        multiply(t, t.block_nodes[block], t.block_nodes[block + 1], s.X)
        for head in range(heads):
            for i in range(lanes):
                g[head, i], gX[row + head, i] = gX[row + head, i], ZERO
        for node in range(t.block_nodes[block], t.block_nodes[block + 1]):
            for i in range(lanes):
                gX[t.first_node + node, i] = ZERO
        _through_heads(t, block, call, k, unit, flat, s, g, last - first, gX, g_anchor, g_weights, scaled, g_C)
    for head in range(heads):
        for i in range(lanes):
            g_anchor[begin + head, i] += gX[row + head, i]


@njit(cache=True, **KERNEL)
def backward(g_out, g_V0, g_weights, *arguments):
    """Gradients of examples first … last: adds to g_V0 [B, G] and g_weights [M, C] (float64).

    g_out [B, outputs]. arguments: those of `forward`, with what it kept.
    """
    mode = flush_denormals()
    call = read(*arguments)
    t = unpack(call.indices, call.floats, call.layout)
    k, unit = call.base[1], call.base[2]
    flat = call.base[0] >= FLAT
    done, tile = call.first, 0
    if few(call) and no_rounds(call):
        backward_singly(t, call, k, unit, flat, g_out, g_V0)
        done = call.last
    while done < call.last:
        end = min(done + call.tile, call.last)
        lanes = padded_lanes(end - done)
        s = new_scratch(t, call.weights, call.hard, lanes)
        gX, g_anchor = np.zeros(s.X.shape, np.float32), np.zeros(s.anchor.shape, np.float32)
        scaled, g_C = np.empty(lanes, np.float32), np.empty(lanes, np.float32)
        load(t, call.V0, done, end, s)
        _load_values(t, call, done, end, call.settled[tile], s)
        for i in range(end - done):
            for j in range(len(call.place)):
                if call.place[j] >= 0:
                    gX[call.place[j], i] += g_out[done + i, j]
                else:
                    g_V0[done + i, call.atom[j]] += g_out[done + i, j]
        for block in range(len(call.rounds) - 1, -1, -1):
            if call.rounds[block] >= 0:
                _through_rounds(t, block, call, k, unit, flat, s, done, end, call.settled[tile], gX, g_anchor,
                                g_weights, scaled, g_C)
            else:
                row = t.first_head + t.block_heads[block]
                g = gX[row : row + t.block_heads[block + 1] - t.block_heads[block]]
                _through_heads(t, block, call, k, unit, flat, s, g, end - done, gX, g_anchor, g_weights, scaled, g_C)
        for i in range(end - done):
            for j in range(len(t.input_atom)):
                g_V0[done + i, t.input_atom[j]] += gX[2 + j, i]
            for head in range(len(t.head_atom)):
                if t.head_value[head] < ZERO:
                    g_V0[done + i, t.head_atom[head]] += g_anchor[head, i]
        done, tile = end, tile + 1
    restore(mode)


@njit(**INNER)
def _load_values(t, call, first, last, settled, s):
    """Final values of all heads, and the nodes of plain blocks made of them."""
    for block in range(len(call.rounds)):
        begin, heads = t.block_heads[block], t.block_heads[block + 1] - t.block_heads[block]
        kept = call.past_start[block] + (settled[block] * heads if call.rounds[block] >= 0 else 0)
        if call.rounds[block] < 0:
            choose(t, t.block_choices[block], t.block_choices[block + 1], s.X)
            multiply(t, t.block_nodes[block], t.block_nodes[block + 1], s.X)
        _restore_heads(call.past, kept, heads, first, last, t.first_head + begin, s.X)
