"""The forward kernel of `anchored`: tiles of examples, block after block, each head once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nsfrc.engines.cpu.levels_reading import read_call, read_tables
from nsfrc.engines.cpu.levels_single import forward_singly, no_rounds, room_for_one
from nsfrc.engines.cpu.levels_softor import (
    FLAT,
    ONE,
    ZERO,
    add_gains,
    close,
    gain,
    largest,
    vanishing,
)
from nsfrc.engines.cpu.maths import COUNT, INNER, flush_denormals, larger, restore, smaller
from nsfrc.engines.cpu.memory import allocate, begin, cell, copy, fill, ints, load_atom, new_row, new_table, release
from nsfrc.engines.cpu.reading import read_base
from nsfrc.engines.cpu.tables import FEW_LANES, FINE, NO_MEMORY, OTHER_START, VECTOR

LARGEST = np.finfo(np.float32).max


class Scratch(NamedTuple):
    """Values of a tile: X [rows of X, lanes], V0 of the heads, and room for one head at a time."""

    X: np.ndarray
    anchor: np.ndarray  # [heads, lanes]: V0 of every head
    fresh: np.ndarray  # [heads, lanes]: a round of a recursive block
    top: np.ndarray  # [pairs of a head + 1, lanes]; the last is the head's own, and so below
    none: np.ndarray
    total: np.ndarray
    pairs: np.ndarray  # C of every pair
    mixed: np.ndarray  # [M, lanes]: H
    buffer: np.ndarray


@njit(**COUNT)
def _survey(call):
    """FINE; or an example with a value that cannot be; or OTHER_START if atoms that are not neural must start as the
    program says and do not.
    """
    for example in range(call.first, call.last):
        V0, declared = call.V0[example], call.declared
        wrong, other = ZERO, ZERO
        for atom in range(len(V0)):
            wrong += ZERO if (V0[atom] >= ZERO) & (V0[atom] <= LARGEST) else ONE
        if wrong > ZERO:
            return example
        for atom in range(len(V0) if call.must_start_so else 0):
            other += ONE if (declared[atom] >= ZERO) & (V0[atom] != declared[atom]) else ZERO
        if other > ZERO:
            return OTHER_START
    return FINE


@njit(**INNER)
def new_scratch(cursor, t, weights, hard, lanes):
    heads, pairs = len(t.head_atom), 0 if hard else t.most_pairs
    return Scratch(
        new_table(cursor, t.first_choice + len(t.choice_by), lanes),
        new_table(cursor, heads, lanes),
        new_table(cursor, heads, lanes),
        new_table(cursor, pairs + 1, lanes),
        new_table(cursor, pairs + 1, lanes),
        new_table(cursor, pairs + 1, lanes),
        new_table(cursor, pairs, lanes),
        new_table(cursor, 0 if hard else weights.shape[0], lanes),
        new_row(cursor, lanes),
    )


@njit(**INNER)
def padded_lanes(examples):
    """Lanes for so many examples: whole vectors."""
    return (examples + VECTOR - 1) // VECTOR * VECTOR


@njit(**INNER)
def few(call):
    """Whether examples are reasoned about one by one."""
    return call.last - call.first <= FEW_LANES and call.hard


@njit(**INNER)
def load(t, V0, first, last, s):
    """Constants, inputs and V0 of the heads; spare lanes repeat the last example."""
    examples = V0[first:last]
    fill(s.X[0], ZERO)
    fill(s.X[1], ONE)
    for j in range(len(t.input_atom)):
        load_atom(examples, t.input_atom[j], s.X[2 + j])
    for head in range(len(t.head_atom)):
        if t.head_value[head] < ZERO:
            load_atom(examples, t.head_atom[head], s.anchor[head])
        else:
            fill(s.anchor[head], t.head_value[head])


@njit(**INNER)
def multiply(t, first, last, X):
    """The products that nodes first … last are."""
    for node in range(first, last):
        left, right, out = X[t.node_left[node]], X[t.node_right[node]], X[t.first_node + node]
        for i in range(X.shape[1]):
            out[i] = left[i] * right[i]


@njit(**INNER)
def choose(t, first, last, X):
    """The choices first … last: no + by·(yes − no), `by` at most 1."""
    for choice in range(first, last):
        by, no, yes = X[t.choice_by[choice]], X[t.choice_no[choice]], X[t.choice_yes[choice]]
        out = X[t.first_choice + choice]
        for i in range(X.shape[1]):
            out[i] = no[i] + smaller(ONE, by[i]) * (yes[i] - no[i])


@njit(**INNER)
def simple(t, head, anchored):
    """Whether a head has one reason alone, which then is its value."""
    first, last = t.pair_start[t.head_start[head]], t.pair_start[t.head_start[head + 1]]
    one = last == first + 1 and t.run_start[last] == t.run_start[first] + 1 and t.run_times[first] == ONE
    return one and not anchored


@njit(**INNER)
def is_anchored(anchor):
    """Whether V0 of a head is more than 0 somewhere."""
    most = ZERO
    for i in range(len(anchor)):
        most = larger(most, anchor[i])
    return most > ZERO


@njit(**INNER)
def softor_hard(t, head, k, unit, flat, s, value):
    """softor⁰ of V0 and of all rows of a head, not capped; `top`, `none` and `total` stay for the way back."""
    top, none, total = s.top[-1], s.none[-1], s.total[-1]
    first, last = t.pair_start[t.head_start[head]], t.pair_start[t.head_start[head + 1]]
    anchor = s.anchor[head]
    for i in range(len(top)):
        top[i] = anchor[i]
    largest(t, t.run_start[first], t.run_start[last], s.X, top)
    vanishing(k, flat, top, none)
    for i in range(len(top)):
        total[i] = gain(anchor[i], top[i], none[i], k, flat)
    add_gains(t, first, last, k, flat, s.X, top, none, total)
    close(k, unit, flat, top, none, total, value)


@njit(**INNER)
def softor_soft(t, head, k, unit, flat, weights, s, value):
    """Likewise of V0 and of mixtures of clauses: fills pairs (C) and mixed (H), and room for each pair and the head."""
    first_pair, last_pair = t.head_start[head], t.head_start[head + 1]
    lanes = s.X.shape[1]
    for pair in range(first_pair, last_pair):
        p = pair - first_pair
        top, none, total = s.top[p], s.none[p], s.total[p]
        first, last = t.pair_start[pair], t.pair_start[pair + 1]
        for i in range(lanes):
            top[i] = ZERO
        largest(t, t.run_start[first], t.run_start[last], s.X, top)
        vanishing(k, flat, top, none)
        for i in range(lanes):
            total[i] = ZERO
        add_gains(t, first, last, k, flat, s.X, top, none, total)
        close(k, unit, flat, top, none, total, s.pairs[p])
    top, none, total, anchor = s.top[-1], s.none[-1], s.total[-1], s.anchor[head]
    for i in range(lanes):
        top[i] = anchor[i]
    for m in range(weights.shape[0]):
        mixed = s.mixed[m]
        for i in range(lanes):
            mixed[i] = ZERO
        for pair in range(first_pair, last_pair):
            share, C = weights[m, t.pair_clause[pair]], s.pairs[pair - first_pair]
            for i in range(lanes):
                mixed[i] += share * C[i]
        for i in range(lanes):
            top[i] = larger(top[i], mixed[i])
    vanishing(k, flat, top, none)
    for i in range(lanes):
        total[i] = gain(anchor[i], top[i], none[i], k, flat)
    for m in range(weights.shape[0]):
        mixed = s.mixed[m]
        for i in range(lanes):
            total[i] += gain(mixed[i], top[i], none[i], k, flat)
    close(k, unit, flat, top, none, total, value)


@njit(**INNER)
def derive(t, head, call, k, unit, flat, s, value):
    """V' of a head from the values in X."""
    if call.hard and simple(t, head, is_anchored(s.anchor[head])):
        row = t.run_start[t.pair_start[t.head_start[head]]]
        left, right = s.X[t.row_left[row]], s.X[t.row_right[row]]
        for i in range(len(value)):
            value[i] = smaller(ONE, left[i] * right[i])
        return
    if call.hard:
        softor_hard(t, head, k, unit, flat, s, value)
    else:
        softor_soft(t, head, k, unit, flat, call.weights, s, value)
    for i in range(len(value)):
        value[i] = smaller(ONE, value[i])


@njit(**INNER)
def keep(X, first_row, heads, past, start, first, last):
    """Copy the values of some heads to past [rows, B] from row `start` on, if it is kept."""
    if past.shape[0]:
        for head in range(heads):
            copy(X[first_row + head], past[start + head, first:last])


@njit(**INNER)
def _iterate(t, block, call, k, unit, flat, s, first, last, tile):
    """The rounds of a recursive block, until nothing changes: what is left of them would change nothing either."""
    begin, end = t.block_heads[block], t.block_heads[block + 1]
    heads, row = end - begin, t.first_head + begin
    for head in range(heads):
        for i in range(s.X.shape[1]):
            s.X[row + head, i] = s.anchor[begin + head, i]
    keep(s.X, row, heads, call.past, call.past_start[block], first, last)
    for turn in range(call.rounds[block]):
        multiply(t, t.block_nodes[block], t.block_nodes[block + 1], s.X)
        for head in range(begin, end):
            derive(t, head, call, k, unit, flat, s, s.fresh[head])
        changed = False
        for head in range(heads):
            for i in range(s.X.shape[1]):
                changed |= s.X[row + head, i] != s.fresh[begin + head, i]
                s.X[row + head, i] = s.fresh[begin + head, i]
        keep(s.X, row, heads, call.past, call.past_start[block] + (turn + 1) * heads, first, last)
        call.settled[tile, block] = turn + 1
        if not changed:
            return


@njit(**INNER)
def _reason(t, call, k, unit, flat, s, first, last, tile):
    """Examples first … last, in the lanes of `s`."""
    load(t, call.V0, first, last, s)
    for block in range(len(call.rounds)):
        if call.rounds[block] >= 0:
            _iterate(t, block, call, k, unit, flat, s, first, last, tile)
            continue
        choose(t, t.block_choices[block], t.block_choices[block + 1], s.X)
        multiply(t, t.block_nodes[block], t.block_nodes[block + 1], s.X)
        for head in range(t.block_heads[block], t.block_heads[block + 1]):
            derive(t, head, call, k, unit, flat, s, s.X[t.first_head + head])
        keep(s.X, t.first_head + t.block_heads[block], t.block_heads[block + 1] - t.block_heads[block],
             call.past, call.past_start[block], first, last)
    for i in range(last - first):
        for j in range(len(call.place)):
            place = call.place[j]
            call.out[first + i, j] = s.X[place, i] if place >= 0 else call.V0[first + i, call.atom[j]]


@njit(**INNER)
def forward(address):
    """Reason about examples first … last of V0 [B, G]; writes what is asked for to out [B, outputs].

    address: of a record, see `levels_tables.Fixed` and `Own`; its past takes the heads' values, unless it is empty.
    Returns FINE, or why it did nothing: see `_survey`.
    """
    call = read_call(address)
    found = _survey(call)
    if found != FINE:
        return found
    t = read_tables(address)
    gamma, k, unit = read_base(address)
    flat, one_by_one = gamma >= FLAT, few(call) and (no_rounds(call) or not call.past.shape[0])
    cursor = ints(cell(), 1)
    cursor[0] = 0
    if one_by_one:
        room_for_one(cursor, t)
    else:
        new_scratch(cursor, t, call.weights, call.hard, padded_lanes(min(call.tile, call.last - call.first)))
    room = allocate(cursor[0] + begin(1))
    if room == 0:
        return NO_MEMORY
    mode = flush_denormals()
    done, tile = call.first, 0
    if one_by_one:
        cursor[0] = begin(room)
        forward_singly(t, call, k, unit, flat, cursor)
        done = call.last
    while done < call.last:
        end = min(done + call.tile, call.last)
        cursor[0] = begin(room)
        s = new_scratch(cursor, t, call.weights, call.hard, padded_lanes(end - done))
        _reason(t, call, k, unit, flat, s, done, end, tile)
        done, tile = end, tile + 1
    restore(mode)
    release(room)
    return FINE
