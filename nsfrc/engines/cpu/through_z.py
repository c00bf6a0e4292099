"""From the gradient of what was divided by Z to that of what was not.

Where Z exceeds 1 its gradient goes to the largest value: the first in atom order, values within rounding of each other
counting as equal, as they are in exact arithmetic. Where all examples share a Z, it is the first of all of them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nsfrc.engines.cpu.maths import INNER, share_of_first
from nsfrc.engines.cpu.meeting import CLAUSES, DERIVED_FIRST, NOBODY, VALUES_FIRST, is_first, meet, say
from nsfrc.engines.cpu.memory import fill
from nsfrc.engines.cpu.step import ONE, ZERO

TIE = np.float32(1.0 - 5e-7)
VALUES_ROW, DERIVED_ROW, CLAUSE_ROWS = 0, 1, 2  # of `Meeting.rows`


@njit(**INNER)
def _open(z, g_z):
    """Before Z's gradient is given: g_z is left where Z exceeds 1. Whether it is left anywhere."""
    any_open = False
    for i in range(len(z)):
        any_open |= z[i] > ONE
        g_z[i] = g_z[i] if z[i] > ONE else ZERO
    return any_open


@njit(**INNER)
def _claim(values, g, g_z):
    """Give Z's gradient to g in lanes where `values`, divided by Z, are the first to reach 1; g_z is then 0."""
    for i in range(len(values)):
        mine = g_z[i] if values[i] >= TIE else ZERO
        g[i] += mine
        g_z[i] -= mine


@njit(**INNER)
def _lane_that_reaches(values):
    """The first lane in which values, divided by Z, are 1, or -1."""
    for i in range(len(values)):
        if values[i] >= TIE:
            return i
    return -1


@njit(**INNER)
def _tell_z(meeting, at, row, first, key, g_z):
    """Tells the other parts this one's gradient of Z, example by example, and the key of its first value that is Z.

    Keys are ordered by value first and example then: one maximum of a batch has all of the gradient.
    """
    say(meeting, at, key)
    for i in range(len(g_z)):
        meeting.rows[row, first + i] = g_z[i]


@njit(**INNER)
def _all_of_z(meeting, row):
    """The gradient of Z of all examples, added up in their order."""
    total = ZERO
    for example in range(meeting.rows.shape[1]):
        total += meeting.rows[row, example]
    return total


@njit(**INNER)
def _undivide(values, g, z, g_z):
    """From the gradient of values/Z to that of values, in place; adds Z's to g_z. `values` are divided."""
    for row in range(values.shape[0]):
        for i in range(len(z)):
            g[row, i] /= z[i]
            g_z[i] -= g[row, i] * values[row, i]


@njit(**INNER)
def _claim_values(order, call, z, after, g, g_z):
    """Z's gradient to the first of V in atom order, of all examples, to reach it. The parts meet in any case."""
    if z[0] <= ONE:
        meet(call.meeting)
        return
    examples, key, slot, lane = call.meeting.rows.shape[1], NOBODY, 0, -1
    for j in range(len(order)):
        if lane < 0 and order[j] < after.shape[0]:
            slot = order[j]
            lane = _lane_that_reaches(after[slot])
            key = j * examples + call.first + lane if lane >= 0 else NOBODY
    _tell_z(call.meeting, VALUES_FIRST, VALUES_ROW, call.first, key, g_z)
    meet(call.meeting)
    if is_first(call.meeting, VALUES_FIRST, key):
        g[slot, lane] += _all_of_z(call.meeting, VALUES_ROW)


@njit(**INNER)
def through_values(head_of, order, k, call, before, after, z, derived, g, g_derived, g_z):
    """From the gradient of V' to those of V (in place) and of R. V: active slots, then rest."""
    active, last, lanes = len(head_of), derived.shape[0] - 1, len(z)
    fill(g_z, ZERO)
    _undivide(after, g, z, g_z)
    if call.whole_batch:
        _claim_values(order, call, z, after, g, g_z)
    elif _open(z, g_z):
        for j in range(len(order)):
            if order[j] < after.shape[0]:
                _claim(after[order[j]], g[order[j]], g_z)
    for h in range(last + 1):
        fill(g_derived[h], ZERO)
    for slot in range(before.shape[0]):
        head = head_of[slot] if slot < active else last
        for i in range(lanes):
            mine = share_of_first(before[slot, i], derived[head, i], k)
            g_derived[head, i] += g[slot, i] * (ONE - mine)
            g[slot, i] *= mine


@njit(**INNER)
def _claim_derived(call, derived, g_derived, g_z):
    """Z's gradient to the first of R, of all examples, to reach it."""
    examples, key, row, lane, rows = call.meeting.rows.shape[1], NOBODY, 0, -1, derived.shape[0]
    for j in range(rows):
        if lane < 0:
            row = (j + rows - 1) % rows
            lane = _lane_that_reaches(derived[row])
            key = j * examples + call.first + lane if lane >= 0 else NOBODY
    _tell_z(call.meeting, DERIVED_FIRST, DERIVED_ROW, call.first, key, g_z)
    meet(call.meeting)
    if is_first(call.meeting, DERIVED_FIRST, key):
        g_derived[row, lane] += _all_of_z(call.meeting, DERIVED_ROW)


@njit(**INNER)
def through_derived_z(derived, z, g_derived, call, g_z):
    """From the gradient of normalised R to that of R, in place. Atoms that head nothing come first."""
    last = derived.shape[0] - 1
    fill(g_z, ZERO)
    _undivide(derived, g_derived, z, g_z)
    if call.whole_batch:
        if z[0] > ONE:
            _claim_derived(call, derived, g_derived, g_z)
    elif _open(z, g_z):
        _claim(derived[last], g_derived[last], g_z)
        for h in range(last):
            _claim(derived[h], g_derived[h], g_z)


@njit(**INNER)
def _tell_clause(c, first, last, call, pairs, absent, g_z):
    """Tells the other parts which of a clause's C is the first to reach its Z: absent ones, then pairs in order."""
    examples, key = call.meeting.rows.shape[1], NOBODY
    lane = _lane_that_reaches(absent[c])
    if lane >= 0:
        key = call.first + lane
    for pair in range(first, last):
        if lane < 0:
            lane = _lane_that_reaches(pairs[pair])
            key = (pair - first + 1) * examples + call.first + lane if lane >= 0 else NOBODY
    _tell_z(call.meeting, CLAUSES + absent.shape[0] + c, CLAUSE_ROWS + c, call.first, key, g_z)
    return key


@njit(**INNER)
def _claim_clauses(clause_start, call, clause_z, g_pairs, g_absent):
    """Of every clause whose Z exceeds 1, Z's gradient to the first C, of all examples, to reach it."""
    m, clauses = call.meeting, g_absent.shape[0]
    examples = m.rows.shape[1]
    for c in range(clauses):
        key = np.int64(m.board[m.part, CLAUSES + clauses + c]) if clause_z[c, 0] > ONE else NOBODY
        if is_first(m, CLAUSES + clauses + c, key):
            place, lane = key // examples, key % examples - call.first
            if place == 0:
                g_absent[c, lane] += _all_of_z(m, CLAUSE_ROWS + c)
            else:
                g_pairs[clause_start[c] + place - 1, lane] += _all_of_z(m, CLAUSE_ROWS + c)


@njit(**INNER)
def through_clause_z(clause_start, call, pairs, absent, clause_z, g_pairs, g_absent, g_bottom, g_z):
    """From the gradient of normalised C to that of C, in place; collects that of false^L."""
    for c in range(g_absent.shape[0]):
        first, last, z = clause_start[c], clause_start[c + 1], clause_z[c]
        fill(g_z, ZERO)
        _undivide(absent[c : c + 1], g_absent[c : c + 1], z, g_z)
        _undivide(pairs[first:last], g_pairs[first:last], z, g_z)
        if call.whole_batch:
            if z[0] > ONE:
                _tell_clause(c, first, last, call, pairs, absent, g_z)
        elif _open(z, g_z):
            _claim(absent[c], g_absent[c], g_z)
            for pair in range(first, last):
                _claim(pairs[pair], g_pairs[pair], g_z)
    if call.whole_batch:
        meet(call.meeting)
        _claim_clauses(clause_start, call, clause_z, g_pairs, g_absent)
    for c in range(g_absent.shape[0]):
        for i in range(len(g_bottom)):
            g_bottom[i] += g_absent[c, i]
