"""The forward kernel: tiles of examples, all steps of one tile before the next."""

from __future__ import annotations

import numpy as np
from numba import njit

from nsfrc.engines.cpu.maths import FAST
from nsfrc.engines.cpu.step import BOUNDED_K, ONE, ZERO, new_scratch, step

VECTOR = 8  # float32 lanes of a 256-bit register; tiles are filled up to a multiple of it


@njit(fastmath=FAST, nogil=True)
def padded_lanes(examples, whole_batch):
    """Lanes for so many examples: whole vectors, unless the examples share a maximum or are few."""
    if whole_batch or examples <= 4:
        return examples
    return (examples + VECTOR - 1) // VECTOR * VECTOR


@njit(fastmath=FAST, nogil=True)
def load_tile(tables, V0, first, last, X, rest, targets_only):
    """Read examples first … last of V0 [B, G] into lanes; spare lanes repeat the last example."""
    lanes = X.shape[1]
    X[tables.active] = ONE
    for i in range(lanes):
        values = V0[min(first + i, last - 1)]
        for slot in range(tables.active):
            X[slot, i] = values[tables.members[slot]]
        if targets_only:
            if rest.shape[0]:
                largest = values[tables.members[tables.active]]
                for slot in range(tables.active, tables.slots):
                    largest = max(largest, values[tables.members[slot]])
                rest[0, i] = largest
        else:
            for slot in range(tables.active, tables.slots):
                rest[slot - tables.active, i] = values[tables.members[slot]]


@njit(fastmath=FAST, nogil=True)
def is_bounded(X, rest, active, k):
    """Whether exponents stay in range without looking for their maximum."""
    if k > BOUNDED_K:
        return False
    for slot in range(active):
        for i in range(X.shape[1]):
            if not (ZERO <= X[slot, i] <= ONE):
                return False
    for slot in range(rest.shape[0]):
        for i in range(X.shape[1]):
            if not (ZERO <= rest[slot, i] <= ONE):
                return False
    return True


@njit(fastmath=FAST, nogil=True)
def rest_rows(tables, targets_only):
    passive = tables.slots - tables.active
    return min(passive, 1) if targets_only else passive


@njit(fastmath=FAST, nogil=True)
def _store_tile(tables, X, rest, first, last, outputs, out):
    """Write atoms `outputs` of lanes to out[first:last]."""
    for i in range(last - first):
        row = out[first + i]
        for j in range(len(outputs)):
            slot = tables.slot_of[outputs[j]]
            row[j] = X[slot, i] if slot < tables.active else rest[slot - tables.active, i]


@njit(fastmath=FAST, nogil=True, cache=True)
def forward(tables, V0, first, last, tile, weights, hard, constants, steps, whole_batch, outputs, targets_only, out):
    """Reason about examples first … last of V0 [B, G] and write the atoms `outputs` to out [B, len(outputs)]."""
    done = first
    while done < last:
        end = min(done + tile, last)
        lanes = padded_lanes(end - done, whole_batch)
        X = np.empty((tables.active + 1 + len(tables.node_left), lanes), np.float32)
        rest = np.empty((rest_rows(tables, targets_only), lanes), np.float32)
        scratch = new_scratch(tables, weights.shape[1], lanes)
        mixed = np.empty((weights.shape[0], lanes), np.float32)
        load_tile(tables, V0, done, end, X, rest, targets_only)
        bounded = is_bounded(X, rest, tables.active, constants.k)
        for _ in range(steps):
            step(tables, X, rest, weights, hard, constants, bounded, whole_batch, scratch, mixed)
        _store_tile(tables, X, rest, done, end, outputs, out)
        done = end
