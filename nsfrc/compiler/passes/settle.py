"""What follows from facts alone is a fact.        (anchored)

    even(N) :- N mod 2 =:= 0.       kp(X) :- in(O,X), size(O,N), even(N).
    before: even(2) has a row without factors; the rows of kp have 3 factors
    after:  even(2) is a fact; the rows of kp have 2 factors, and those with even(1) are gone

A head that is sure but has other reasons too keeps all of them: they do not change its value, but training goes
through them. Where the facts cut all ways in which some atoms depend on themselves, they need no rounds:

    way(X,Y) :- next(X,Y).   way(X,Z) :- next(X,Y), way(Y,Z).   next(1,2).   next(2,3).
    before: way(1,3) and way(2,3) depend on each other, if next(2,1) held
    after:  way(2,3) comes before way(1,3)

Neither holds where clauses have weights, or where there are fewer rounds than it takes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsfrc.compiler.graph import cycles, dependencies
from nsfrc.compiler.grounded import NOTHING, GroundProgram
from nsfrc.compiler.passes.fold import fold


def settle(program: GroundProgram) -> GroundProgram:
    while True:
        settled = _settled(_without_cut_cycles(program))
        if settled is program:
            return program
        program = fold(settled)


def _settled(program: GroundProgram) -> GroundProgram:
    """Heads whose rows all have no factors become facts, unless rounds go by before they do."""
    head = program.pair_head[program.pair_of_row]
    certain = (program.factors == NOTHING).all(axis=1)
    settled = np.zeros(program.slots, dtype=bool)
    settled[head[certain]] = True
    settled[head[~certain]] = False
    settled &= (program.cycle[program.members] == NOTHING) | (program.initial[program.members] == 1)
    if not settled.any():
        return program
    initial = program.initial.copy()
    initial[settled[program.slot_of]] = 1
    return replace(program, initial=initial).with_rows(np.flatnonzero(~settled[head]))


def _without_cut_cycles(program: GroundProgram) -> GroundProgram:
    """Forget cycles none of whose atoms depends on itself by the rows that are left."""
    if not program.rounds:
        return program
    sources, targets = dependencies(program)
    cycle = program.cycle[program.members]
    within = cycle[sources] == cycle[targets]
    still = cycles(sources[within], targets[within], program.slots)
    kept = np.zeros(len(program.cycle_sizes) + 1, dtype=bool)
    kept[cycle[(still != NOTHING) & (cycle != NOTHING)]] = True
    forgotten = (program.cycle != NOTHING) & ~kept[program.cycle]
    if not forgotten.any():
        return program
    return replace(program, cycle=np.where(forgotten, NOTHING, program.cycle))
