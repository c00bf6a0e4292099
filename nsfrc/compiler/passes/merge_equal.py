"""Value numbering: atoms that have equal values at every step share one slot.

    same_shape_pair(X,Y) :- shape(X,Z), shape(Y,Z).
    before: (obj1,obj2) and (obj2,obj1) are two slots with 3 rows each
    after:  one slot with 3 rows; and wherever the second was a factor, the first is

Background facts that head no clause move with `true`, absent ones with `false`. The partition
starts as coarse as the starting values allow and is split until it holds: atoms of a class have,
clause by clause, equal multisets of rows up to classes, so by induction equal values at every step.
Rows that became equal are merged as in `multiset`.
This relies on atoms that are not neural starting at 0 or 1 as the program says. Atoms that depend on themselves are
merged with those of their own cycle only, since it is within a cycle that they are computed round by round.
"""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np

from nsfrc.compiler.grounded import NOTHING, Counts, GroundProgram
from nsfrc.compiler.passes.hashing import equal_rows, hash_rows, mix
from nsfrc.compiler.passes.multiset import multiset


def merge_equal(program: GroundProgram) -> GroundProgram:
    colour = _starting_colours(program)
    others = np.flatnonzero(~program.neural[program.members])  # a neural atom is alone from the start
    classes = 0
    while True:
        distinct, which = np.unique(_signature(program, colour)[others], return_inverse=True)
        if len(distinct) == classes:
            return _merge(program, colour)
        classes, colour[others] = len(distinct), which


def _starting_colours(program: GroundProgram) -> np.ndarray:
    """A class of its own for every neural atom, one for what starts at 0, one for what starts at 1; by cycle."""
    neural, initial = program.neural[program.members], program.initial[program.members]
    given = initial.astype(np.int64) + 2 * (program.cycle[program.members] + 1)
    return np.where(neural, np.arange(program.slots) + 3 * program.slots, given)


def _signature(program: GroundProgram, colour: np.ndarray) -> np.ndarray:
    """Hash of a slot's colour and of its rows by clause; equal for slots that stay together."""
    with np.errstate(over="ignore"):
        rows = mix(hash_rows(program, colour)) * program.multiplicity.astype(np.uint64)
        pairs = np.add.reduceat(rows, program.pair_start[:-1]) if program.rows else rows[:0]
        pairs = mix(pairs + mix(program.pair_clause))
        total = mix(mix(colour) + np.uint64(1))
        np.add.at(total, program.pair_head, pairs)
        np.add.at(total, program.counts.head, _hash_counts(program.counts, colour))
    return total


def _hash_counts(counts: Counts, colour: np.ndarray) -> np.ndarray:
    """Hash of what every count counts, as a multiset, and of what it wants: uint64 [counts]."""
    which = np.repeat(np.arange(len(counts)), np.diff(counts.start))
    total = np.zeros(len(counts), dtype=np.uint64)
    np.add.at(total, which, mix(colour)[counts.source])
    texts = [zlib.crc32(wanted.tobytes()) for _, _, wanted in counts]
    return mix(mix(total) + mix(np.array(texts, dtype=np.int64)))


def _merge(program: GroundProgram, colour: np.ndarray) -> GroundProgram:
    """Give every class one slot, in the order of their first atoms, and keep its first slot's rows."""
    first = np.sort(np.unique(colour, return_index=True)[1])
    new_slot = np.empty(colour.max() + 1, dtype=np.int32)
    new_slot[colour[first]] = np.arange(len(first))
    new_slot = new_slot[colour]
    renamed = multiset(replace(
        program,
        slot_of=new_slot[program.slot_of],
        members=program.members[first],
        factors=np.append(new_slot, NOTHING).astype(np.int32)[program.factors],
        active=len(first),
    ))
    _check_no_collision(renamed, first[new_slot])
    counts = program.counts
    _check_counts(counts, new_slot, first)
    is_first = np.isin(renamed.pair_head, first)
    kept = renamed.with_rows(np.flatnonzero(is_first[renamed.pair_of_row]))
    return replace(kept, pair_head=new_slot[kept.pair_head],
                   counts=counts.keep(np.isin(counts.head, first)).renamed(new_slot))


def _check_counts(counts: Counts, new_slot: np.ndarray, first: np.ndarray) -> None:
    """Every count must be that of its class's first slot."""
    spelt = {head: (sorted(new_slot[sources].tolist()), wanted.tolist()) for head, sources, wanted in counts}
    if any(spelt.get(int(first[new_slot[head]])) != own for head, own in spelt.items()):
        raise AssertionError("two slots with different counts have the same 64-bit hash")


def _check_no_collision(program: GroundProgram, twin_of: np.ndarray) -> None:
    """Every head's rows must equal those of its class's first head, compared in the order of their hashes."""
    if not _same_as_twins(program, twin_of):
        raise AssertionError("two slots with different rows have the same 64-bit hash")


def _same_as_twins(program: GroundProgram, twin_of: np.ndarray) -> bool:
    """twin_of: by the slots that heads had before classes were merged."""
    clause = program.pair_clause.astype(np.int64) * len(twin_of)
    number, wanted = clause + program.pair_head, clause + twin_of[program.pair_head]
    by_number = np.argsort(number)
    twin = by_number[np.minimum(np.searchsorted(number[by_number], wanted), len(number) - 1)]
    counts = np.diff(program.pair_start)
    if (number[twin] != wanted).any() or (counts[twin] != counts).any():
        return False
    away, pair = program.pair_start[twin] - program.pair_start[:-1], program.pair_of_row
    order = np.lexsort((hash_rows(program, np.arange(program.slots)), pair))
    rows = np.flatnonzero(away[pair])
    mine, theirs = order[rows], order[rows + away[pair[rows]]]
    times = program.multiplicity
    return equal_rows(program, mine, theirs) and bool((times[mine] == times[theirs]).all())
