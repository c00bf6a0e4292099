"""The backward kernel of `anchored` for few examples of a program without recursion; see `levels_single`."""

from __future__ import annotations

import numpy as np
from numba import njit

from nsfrc.engines.cpu.levels_single import (
    choose_singly,
    is_simple,
    load_singly,
    multiply_singly,
    room_for_one,
    rows_of,
    softor_in_order,
)
from nsfrc.engines.cpu.levels_softor import CONSTANT_ONE, ONE, ZERO, weight
from nsfrc.engines.cpu.maths import INNER, smaller
from nsfrc.engines.cpu.memory import new_row


@njit(**INNER)
def _through_nodes(t, first, last, X, gX):
    for node in range(last - 1, first - 1, -1):
        left, right, g = t.node_left[node], t.node_right[node], gX[t.first_node + node]
        gX[left] += g * X[right]
        gX[right] += g * X[left]


@njit(**INNER)
def _through_choices(t, first, last, X, gX):
    for choice in range(last - 1, first - 1, -1):
        by, no, yes = t.choice_by[choice], t.choice_no[choice], t.choice_yes[choice]
        x, g = smaller(ONE, X[by]), gX[t.first_choice + choice]
        gX[by] += g * (X[yes] - X[no])
        gX[no] += g * (ONE - x)
        gX[yes] += g * x


@njit(**INNER)
def _through_rows(t, head, k, top, scaled, X, gX, buffer):
    """Gradients of rows' factors: exponentials first, which make vectors, then sums, row after row."""
    first_run, last_run, first, _ = rows_of(t, head)
    for run in range(first_run, last_run):
        times = t.run_times[run] * scaled
        for row in range(t.run_start[run], t.run_start[run + 1]):
            buffer[row - first] = times * weight(X[t.row_left[row]] * X[t.row_right[row]], top, k)
        row, last = np.int64(t.run_start[run]), np.int64(t.run_start[run + 1])
        while row < last:
            left, g_left = t.row_left[row], ZERO
            a = X[left]
            while row < last and t.row_left[row] == left:
                right, g = t.row_right[row], buffer[row - first]
                g_left += g * X[right]
                gX[right] += g * a
                row += 1
            gX[left] += g_left


@njit(**INNER)
def _through_head(t, head, k, unit, flat, X, anchor, gX, buffer):
    """From the gradient of a head to those of its rows' factors; returns that of its V0."""
    g = gX[t.first_head + head]
    if is_simple(t, head, anchor):
        row = rows_of(t, head)[2]
        left, right = t.row_left[row], t.row_right[row]
        gX[left] += g * X[right]
        if right != CONSTANT_ONE:
            gX[right] += g * X[left]
        return g * weight(ZERO, X[left] * X[right], k)
    top, total, _ = softor_in_order(t, head, k, unit, flat, X, anchor, buffer)
    scaled = g / total
    _through_rows(t, head, k, top, scaled, X, gX, buffer)
    return scaled * weight(anchor, top, k)


@njit(**INNER)
def backward_singly(t, call, k, unit, flat, cursor):
    """Gradients of examples first … last with hard weights, from the values that `forward_singly` kept."""
    X, anchor, _, buffer = room_for_one(cursor, t)
    gX = new_row(cursor, len(X))
    g_out, g_V0 = call.out, call.g_V0
    X[0], X[CONSTANT_ONE] = ZERO, ONE
    for example in range(call.first, call.last):
        load_singly(t, call.V0[example], X, anchor)
        for head in range(len(t.head_atom)):
            X[t.first_head + head] = call.past[head, example]
        choose_singly(t, 0, len(t.choice_by), X)
        multiply_singly(t, 0, len(t.node_left), X)
        for row in range(len(gX)):
            gX[row] = ZERO
        for j in range(len(call.place)):
            if call.place[j] >= 0:
                gX[call.place[j]] += g_out[example, j]
            else:
                g_V0[example, call.atom[j]] += g_out[example, j]
        for block in range(len(call.rounds) - 1, -1, -1):
            for head in range(t.block_heads[block], t.block_heads[block + 1]):
                g_anchor = _through_head(t, head, k, unit, flat, X, anchor[head], gX, buffer)
                if t.head_value[head] < ZERO:
                    g_V0[example, t.head_atom[head]] += g_anchor
            _through_nodes(t, t.block_nodes[block], t.block_nodes[block + 1], X, gX)
            _through_choices(t, t.block_choices[block], t.block_choices[block + 1], X, gX)
        for j in range(len(t.input_atom)):
            g_V0[example, t.input_atom[j]] += gX[2 + j]
