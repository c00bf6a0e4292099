"""Facts are constants: drop rows with an absent fact, drop factors that are always 1.        (anchored)

    diff_color_pair(X,Y) :- color(X,Z), color(Y,W), diff_color(Z,W).      twopairs
    before: 9 rows of 3 factors for (obj1,obj2), one for every two colors; 3 of them have an absent fact
    after:  6 rows of 2 factors

A head that has no rows left is a fact, or an absent one, as the program says. A count knows the facts among what it
counts, and is a fact itself where there is nothing else:

    \\+ diff_color(red,red)     before: counts diff_color(red,red)     after: a fact
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsfrc.compiler.grounded import NO_COUNTS, NOTHING, Counts, GroundProgram


def fold(program: GroundProgram) -> GroundProgram:
    while True:
        folded = _once(program)
        if folded is program:
            return program
        program = folded


def _once(program: GroundProgram) -> GroundProgram:
    constant = ~program.neural[program.members]
    constant[program.pair_head] = constant[program.counts.head] = False
    start = program.initial[program.members]
    absent, sure = constant & (start == 0), constant & (start == 1)
    factors = np.where(np.append(sure, False)[program.factors], NOTHING, program.factors).astype(np.int32)
    keep = ~np.append(absent, False)[program.factors].any(axis=1)
    counted = _counted(program, absent, sure)
    if counted is program and keep.all() and (factors == program.factors).all():
        return program
    return replace(counted, factors=factors).with_rows(np.flatnonzero(keep))


def _counted(program: GroundProgram, absent: np.ndarray, sure: np.ndarray) -> GroundProgram:
    """Counts without the facts that they count; those of facts alone become facts."""
    counts = program.counts
    known = (absent | sure)[counts.source]
    if not (known.any() or (np.diff(counts.start) == 0).any()):
        return program
    initial, kept = program.initial.copy(), []
    for head, sources, wanted in counts:
        wanted = wanted[min(int(sure[sources].sum()), len(wanted) - 1):]
        left = sources[~(absent | sure)[sources]]
        if len(left) and len(wanted) > 1:
            kept.append((head, left, wanted))
        else:
            initial[program.slot_of == head] = wanted[0]
    return replace(program, initial=initial, counts=Counts.of(*zip(*kept, strict=True)) if kept else NO_COUNTS)
