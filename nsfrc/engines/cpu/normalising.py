"""Z: the largest value of an example or of the batch, by which C, R and V are divided."""

from __future__ import annotations

from numba import njit

from nsfrc.engines.cpu.maths import INNER, larger, smaller, softor
from nsfrc.engines.cpu.meeting import (
    CLAUSES,
    DERIVED_Z,
    LEAST_BOTTOM,
    MOST_BOTTOM,
    VALUES_Z,
    largest_said,
    meet,
    say,
)
from nsfrc.engines.cpu.memory import fill
from nsfrc.engines.cpu.one import update_one
from nsfrc.engines.cpu.step import ONE


@njit(**INNER)
def _largest(z):
    largest = z[0]
    for i in range(len(z)):
        largest = larger(largest, z[i])
    return largest


@njit(**INNER)
def _least(values):
    least = values[0]
    for i in range(len(values)):
        least = smaller(least, values[i])
    return least


@njit(**INNER)
def _over_batch(meeting, at, z):
    """The largest of all examples, in every lane: the published scope of Z."""
    largest = _largest(z)
    say(meeting, at, largest)
    meet(meeting)
    fill(z, largest_said(meeting, at, largest))


@njit(**INNER)
def _divide_clause(first, last, z, absent, pairs):
    for i in range(len(z)):
        absent[i] /= z[i]
    for pair in range(first, last):
        for i in range(len(z)):
            pairs[pair, i] /= z[i]


@njit(**INNER)
def normalise_clauses(clause_start, floor, whole_batch, meeting, bottom, pairs, absent, clause_z):
    """Divide each clause's C by its Z. floor: γ·log S."""
    lanes, clauses = pairs.shape[1], absent.shape[0]
    for c in range(clauses):
        first, last = clause_start[c], clause_start[c + 1]
        for i in range(lanes):
            absent[c, i] = floor + bottom[0, i]
            clause_z[c, i] = larger(ONE, absent[c, i])
        for pair in range(first, last):
            for i in range(lanes):
                clause_z[c, i] = larger(clause_z[c, i], pairs[pair, i])
        if whole_batch:
            say(meeting, CLAUSES + c, _largest(clause_z[c]))
        else:
            _divide_clause(first, last, clause_z[c], absent[c], pairs)
    if whole_batch:
        say(meeting, LEAST_BOTTOM, _least(bottom[0]))
        say(meeting, MOST_BOTTOM, _largest(bottom[0]))
        meet(meeting)
        for c in range(clauses):
            fill(clause_z[c], largest_said(meeting, CLAUSES + c, _largest(clause_z[c])))
            _divide_clause(clause_start[c], clause_start[c + 1], clause_z[c], absent[c], pairs)


@njit(**INNER)
def normalise_derived(values, z, whole_batch, meeting):
    """Divide all rows by max(1, their largest), lane by lane or over the batch; z [lanes] keeps it."""
    fill(z, ONE)
    for row in range(values.shape[0]):
        for i in range(len(z)):
            z[i] = larger(z[i], values[row, i])
    if whole_batch:
        _over_batch(meeting, DERIVED_Z, z)
    for row in range(values.shape[0]):
        for i in range(len(z)):
            values[row, i] /= z[i]


@njit(**INNER)
def update_values(head_of, gamma, k, whole_batch, meeting, X, rest, derived, z, buffer):
    """V' = softor(V, R), normalised, in place."""
    lanes, last = X.shape[1], derived.shape[0] - 1
    if lanes == 1:
        z[0] = update_one(head_of, gamma, k, X, rest, derived, buffer)
        return
    fill(z, ONE)
    for slot in range(len(head_of)):
        head = head_of[slot]
        for i in range(lanes):
            X[slot, i] = softor(X[slot, i], derived[head, i], gamma, k)
            z[i] = larger(z[i], X[slot, i])
    for slot in range(rest.shape[0]):
        for i in range(lanes):
            rest[slot, i] = softor(rest[slot, i], derived[last, i], gamma, k)
            z[i] = larger(z[i], rest[slot, i])
    if whole_batch:
        _over_batch(meeting, VALUES_Z, z)
    for slot in range(len(head_of)):
        for i in range(lanes):
            X[slot, i] /= z[i]
    for slot in range(rest.shape[0]):
        for i in range(lanes):
            rest[slot, i] /= z[i]
