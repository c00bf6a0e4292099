"""Goal-directed pruning: put slots that nothing but their own future depends on last.

    clevr_hans3: color(obj1,gray) is in no body and heads no clause
    before: 165 slots take part in every step
    after:   63 do; the other 102 are `passive` and come last

A passive atom can touch the targets only through `Z`, and there only if it is the largest of all.
All passive atoms take the same step, which keeps their order, so an engine that is asked for the
targets alone carries the largest of them as one value. Heads are never passive: any of them can
become the maximum.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsfrc.compiler.grounded import NOTHING, GroundProgram


def needed(program: GroundProgram) -> GroundProgram:
    needed = np.zeros(program.slots + 1, dtype=bool)
    needed[program.factors] = True
    needed[NOTHING] = False
    needed = needed[:-1]
    needed[program.pair_head] = True
    needed[program.slot_of[program.targets]] = True
    needed[[program.false, program.true]] = True
    order = np.argsort(~needed, kind="stable")
    new_slot = np.empty(program.slots, dtype=np.int32)
    new_slot[order] = np.arange(program.slots)
    return replace(
        program,
        slot_of=new_slot[program.slot_of],
        members=program.members[order],
        pair_head=new_slot[program.pair_head],
        factors=np.append(new_slot, NOTHING).astype(np.int32)[program.factors],
        active=int(needed.sum()),
    )
