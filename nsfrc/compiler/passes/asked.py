"""Keep the rows that a target needs, and leave out every other head, with its clauses.        (anchored)

    kp(X) :- in(O,X), color(O,red).     alarm(X) :- in(O,X), color(O,blue).     :- target(kp(img)).
    before: rows of kp and of alarm; a slot for every atom
    after:  rows of kp; slots for in, for color(O,red) and for kp

Nothing couples the atoms of an example, so what no target needs cannot change a bit of what it gets: not even by the
numbers of slots, which later passes break ties by. Atoms without a slot of their own are with `false`; nobody asks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsfrc.compiler.grounded import NOTHING, GroundProgram


def asked(program: GroundProgram) -> GroundProgram:
    needed = _needed(program)
    kept = program.with_rows(np.flatnonzero(needed[program.pair_head[program.pair_of_row]]))
    number = (np.cumsum(needed) - 1).astype(np.int32)
    new_slot = np.where(needed, number, number[program.false])
    return replace(
        kept,
        slot_of=new_slot[program.slot_of],
        members=program.members[needed],
        pair_head=new_slot[kept.pair_head],
        factors=np.append(new_slot, np.int32(NOTHING))[kept.factors],
        counts=program.counts.keep(needed[program.counts.head]).renamed(new_slot),
        active=int(needed.sum()),
    )


def _needed(program: GroundProgram) -> np.ndarray:
    """Slots of the targets and of whatever they are derived from, and those of false and true: [slots]."""
    needed = np.zeros(program.slots + 1, dtype=bool)
    needed[program.slot_of[program.targets]] = True
    needed[[program.false, program.true]] = True
    head = program.pair_head[program.pair_of_row]
    while True:
        reached = needed.copy()
        reached[program.factors[needed[head]]] = True
        reached[program.counts.source[needed[program.counts.head_of_source]]] = True
        reached[NOTHING] = False
        if (reached == needed).all():
            return needed[:-1]
        needed = reached
