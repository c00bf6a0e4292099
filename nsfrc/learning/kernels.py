"""The inner loops of the search, on bits: which examples a clause covers if a literal is added to it.

A clause with k variables has a bit for every assignment of different objects of an example to them; the bits of an
example are words of their own, `starts[b] … starts[b + 1]`, so that an example is covered if any of its words is not 0.
"""

# Compiled by numba, which knows the types better than annotations could say.
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

POSITIVE, NEGATIVE, IGNORED = 1, 0, 2  # what an example is to a search


@njit(cache=True, nogil=True)
def fill(out, values, steps, args, objects, counts, perms, first_perm, starts):
    """The bits of one literal: out [words].

    values: [B, E ** arity] of its relation; steps: how far each argument moves in a row of these; args: which variable
    each argument is. objects [B, E]: the present ones first, counts [B] of them; perms: assignments of n objects from
    first_perm[n] on.
    """
    for b in range(len(counts)):
        n = counts[b]
        first, last = first_perm[n], first_perm[n + 1]
        for i in range(first, last):
            place = 0
            for j in range(len(args)):
                place += objects[b, perms[i, args[j]]] * steps[j]
            if values[b, place]:
                bit = i - first
                out[starts[b] + (bit >> 6)] |= np.uint64(1) << np.uint64(bit & 63)


@njit(cache=True, nogil=True)
def refine(table, rows, parent, starts, label, keys, tp, fp, mark):
    """Count what `parent` with each of the literals `rows` covers: positives, negatives, and a hash of which."""
    for i in range(len(rows)):
        row = rows[i]
        t, f, h = 0, 0, np.uint64(0)
        for b in range(len(label)):
            if label[b] == 2:
                continue
            for w in range(starts[b], starts[b + 1]):
                if table[row, w] & parent[w]:
                    h ^= keys[b]
                    if label[b] == 1:
                        t += 1
                    else:
                        f += 1
                    break
        tp[i], fp[i], mark[i] = t, f, h


@njit(cache=True, nogil=True)
def refine_whole(table, rows, covered, label, keys, tp, fp, mark):
    """The same for literals about whole examples: table [literals, B], covered [B]."""
    for i in range(len(rows)):
        row = rows[i]
        t, f, h = 0, 0, np.uint64(0)
        for b in range(len(label)):
            if label[b] != 2 and covered[b] and table[row, b]:
                h ^= keys[b]
                if label[b] == 1:
                    t += 1
                else:
                    f += 1
        tp[i], fp[i], mark[i] = t, f, h


@njit(cache=True, nogil=True)
def covers(bits, starts, out):
    """Which examples have a bit that is set: out [B]."""
    for b in range(len(out)):
        out[b] = False
        for w in range(starts[b], starts[b + 1]):
            if bits[w]:
                out[b] = True
                break


@njit(cache=True, nogil=True)
def only_where(bits, starts, keep):
    """Clear the bits of all examples that `keep` [B] leaves out."""
    for b in range(len(keep)):
        if not keep[b]:
            for w in range(starts[b], starts[b + 1]):
                bits[w] = 0
