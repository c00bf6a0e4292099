"""The kernels of `anchored` for few examples: one at a time, with rows in the place of lanes.

Where gradients are wanted, sums are taken in the order of `levels_forward`, so that values and gradients are those of
larger batches to the bit; where they are not, in any order.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nsfrc.engines.cpu.levels_softor import CONSTANT_ONE, ONE, ZERO, gain, softor_of, vanishing_of
from nsfrc.engines.cpu.maths import INNER, larger, smaller
from nsfrc.engines.cpu.memory import new_row


@njit(**INNER)
def most_rows(t):
    """The most rows of a head."""
    most = 0
    for head in range(len(t.head_atom)):
        first, last = t.pair_start[t.head_start[head]], t.pair_start[t.head_start[head + 1]]
        most = max(most, np.int64(t.run_start[last]) - np.int64(t.run_start[first]))
    return most


@njit(**INNER)
def no_rounds(call):
    """Whether nothing depends on itself."""
    most = -1
    for block in range(len(call.rounds)):
        most = max(most, call.rounds[block])
    return most < 0


@njit(**INNER)
def rows_of(t, head):
    """The first of a head's runs and the one after them; its first row and the one after them."""
    first_run, last_run = t.pair_start[t.head_start[head]], t.pair_start[t.head_start[head + 1]]
    return first_run, last_run, np.int64(t.run_start[first_run]), np.int64(t.run_start[last_run])


@njit(**INNER)
def is_simple(t, head, anchor):
    """Whether a head has one reason alone, which then is its value."""
    first_run, _, first, last = rows_of(t, head)
    return last == first + 1 and anchor == ZERO and t.run_times[first_run] == ONE


@njit(**INNER)
def softor_in_order(t, head, k, unit, flat, X, anchor, buffer):
    """The largest reason of a head, what `softor_of` gives of all, and softor⁰, not capped.

    Products are taken twice: from memory they would be rounded, and within an exponent they are not.
    """
    first_run, last_run, first, last = rows_of(t, head)
    top = anchor
    for row in range(first, last):
        top = larger(top, X[t.row_left[row]] * X[t.row_right[row]])
    none = vanishing_of(top, k, flat)
    for row in range(first, last):
        buffer[row - first] = gain(X[t.row_left[row]] * X[t.row_right[row]], top, none, k, flat)
    total = gain(anchor, top, none, k, flat)
    for run in range(first_run, last_run):
        for row in range(t.run_start[run], t.run_start[run + 1]):
            total += t.run_times[run] * buffer[row - first]
    total, value = softor_of(top, none, total, k, unit, flat)
    return top, total, value


@njit(**INNER)
def _derive_in_order(t, head, k, unit, flat, X, anchor, buffer):
    if is_simple(t, head, anchor):
        row = rows_of(t, head)[2]
        return smaller(ONE, X[t.row_left[row]] * X[t.row_right[row]])
    return smaller(ONE, softor_in_order(t, head, k, unit, flat, X, anchor, buffer)[2])


@njit(**INNER)
def _derive(t, head, k, unit, flat, X, anchor, buffer):
    """V' of a head from the values X [rows of X]."""
    first_run, last_run, first, last = rows_of(t, head)
    if is_simple(t, head, anchor):
        return smaller(ONE, X[t.row_left[first]] * X[t.row_right[first]])
    top = anchor
    for row in range(first, last):
        x = X[t.row_left[row]] * X[t.row_right[row]]
        buffer[row - first] = x
        top = larger(top, x)
    if top == ZERO:
        return ZERO
    none = vanishing_of(top, k, flat)
    for j in range(last - first):
        buffer[j] = gain(buffer[j], top, none, k, flat)
    total = gain(anchor, top, none, k, flat)
    for run in range(first_run, last_run):
        added = ZERO
        for row in range(t.run_start[run], t.run_start[run + 1]):
            added += buffer[row - first]
        total += t.run_times[run] * added
    _, value = softor_of(top, none, total, k, unit, flat)
    return smaller(ONE, value)


@njit(**INNER)
def multiply_singly(t, first, last, X):
    for node in range(first, last):
        X[t.first_node + node] = X[t.node_left[node]] * X[t.node_right[node]]


@njit(**INNER)
def choose_singly(t, first, last, X):
    for choice in range(first, last):
        no = X[t.choice_no[choice]]
        by = smaller(ONE, X[t.choice_by[choice]])
        X[t.first_choice + choice] = no + by * (X[t.choice_yes[choice]] - no)


@njit(**INNER)
def _iterate(t, block, rounds, k, unit, flat, X, anchor, fresh, buffer):
    """The rounds of a recursive block, until nothing changes."""
    begin, end = t.block_heads[block], t.block_heads[block + 1]
    for head in range(begin, end):
        X[t.first_head + head] = anchor[head]
    for _ in range(rounds):
        multiply_singly(t, t.block_nodes[block], t.block_nodes[block + 1], X)
        for head in range(begin, end):
            fresh[head] = _derive(t, head, k, unit, flat, X, anchor[head], buffer)
        changed = False
        for head in range(begin, end):
            changed |= X[t.first_head + head] != fresh[head]
            X[t.first_head + head] = fresh[head]
        if not changed:
            return


@njit(**INNER)
def load_singly(t, V0, X, anchor):
    """Inputs and V0 of the heads of one example."""
    for j in range(len(t.input_atom)):
        X[2 + j] = V0[t.input_atom[j]]
    for head in range(len(t.head_atom)):
        start = t.head_value[head]
        anchor[head] = V0[t.head_atom[head]] if start < ZERO else start


@njit(**INNER)
def room_for_one(cursor, t):
    """X, or its gradient; two rows for what is of each head; a row for what is of each row of one."""
    rows, heads = t.first_choice + len(t.choice_by), len(t.head_atom)
    return new_row(cursor, rows), new_row(cursor, heads), new_row(cursor, heads), new_row(cursor, most_rows(t))


@njit(**INNER)
def forward_singly(t, call, k, unit, flat, cursor):
    """Reason with hard weights about examples first … last, one after the other; keeps values of what has no rounds."""
    X, anchor, fresh, buffer = room_for_one(cursor, t)
    X[0], X[CONSTANT_ONE] = ZERO, ONE
    keep = call.past.shape[0] > 0
    for example in range(call.first, call.last):
        load_singly(t, call.V0[example], X, anchor)
        for block in range(len(call.rounds)):
            if call.rounds[block] >= 0:
                _iterate(t, block, call.rounds[block], k, unit, flat, X, anchor, fresh, buffer)
                continue
            choose_singly(t, t.block_choices[block], t.block_choices[block + 1], X)
            multiply_singly(t, t.block_nodes[block], t.block_nodes[block + 1], X)
            for head in range(t.block_heads[block], t.block_heads[block + 1]):
                if keep:
                    value = _derive_in_order(t, head, k, unit, flat, X, anchor[head], buffer)
                    call.past[head, example] = value
                else:
                    value = _derive(t, head, k, unit, flat, X, anchor[head], buffer)
                X[t.first_head + head] = value
        for j in range(len(call.place)):
            place = call.place[j]
            call.out[example, j] = X[place] if place >= 0 else call.V0[example, call.atom[j]]
