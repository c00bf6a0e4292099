"""Drop rows that are all false and pairs that do not unify; closed forms stand for them.

    same_shape_pair(X,Y) :- shape(X,Z), shape(Y,Z).      twopairs, S = 24, L = 8
    before: 73 heads; (obj1,obj2) has 3 rows and a 4th, all false, counted 21 times;
            color(obj1,red) has one row, all false, counted 24 times
    after:  12 heads of 3 rows each

A pair whose multiplicities add up to less than `S` has the difference as padding, worth
`V[false]^L` a row; a pair that is not there is worth `gamma·log S + V[false]^L`.
"""

from __future__ import annotations

import numpy as np

from nsfrc.compiler.grounded import GroundProgram, rows_of


def live(program: GroundProgram) -> GroundProgram:
    all_false = rows_of(program.false, program.factors)
    all_false = all_false[program.power[all_false] == 0]
    if not len(all_false) or program.factors.shape[1] < program.L:
        return program
    keep = np.ones(program.rows, dtype=bool)
    keep[all_false] = False
    return program.with_rows(np.flatnonzero(keep))
