"""Share partial products between rows: first by connected components, then by greedy pairs.

    kp(X) :- in(O1,X), ..., in(O6,X), same_shape_pair(O1,O2), same_color_pair(O1,O2), ...    threepairs
    before: 45 rows of 12 factors, 495 products
    after:  each pair's `in·in·same_shape_pair·same_color_pair` once (a component of the body), and
            every row the product of two factors, one of them shared

A component is a set of body atoms that hang together by variables the head leaves free; its
products recur in many rows. What is left of a row is shrunk to two factors by taking, again and
again, the pair of factors that occurs in most rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsfrc.compiler.grounded import NOTHING, GroundProgram
from nsfrc.compiler.passes.greedy import Counted, Products, distinct_rows

# Ties between equally frequent pairs fall differently for each seed; the smaller a program, the more of them it tries:
# its last per cent is in the ties, and trying them is cheap. It gives up after so many that are no better.
SEEDS, SEARCHED_ROWS, PATIENCE = 16, 12_000, 3


def share(program: GroundProgram) -> GroundProgram:
    seeds = max(1, min(SEEDS, SEARCHED_ROWS // max(1, program.rows)))
    components, counted, best, best_seed = _Components(program), Counted(), program, 0
    for seed in range(seeds):
        products = Products(program.slots, seed, counted)
        rows = products.shrink(components.rows(products))
        nodes, rows = _inline_single_uses(products.nodes(), rows, program.slots)
        shared = replace(program, factors=rows, nodes=nodes)
        if seed == 0 or shared.products < best.products:
            best, best_seed = shared, seed
        if not products.chosen or seed - best_seed == PATIENCE:
            break  # other seeds would do the same, or no better
    return best


class _Components:
    """What every row multiplies, component by component; each different bag of factors once."""

    def __init__(self, program: GroundProgram) -> None:
        width = program.factors.shape[1]
        component = program.components[program.pair_clause[program.pair_of_row], :width]
        self.shape = program.rows, width
        self.places: list[tuple[np.ndarray, int]] = []
        bags = [np.zeros((0, width), dtype=np.int64)]
        for part in range(component.max(initial=NOTHING) + 1):
            mine = np.flatnonzero((component == part).any(axis=1))
            bags.append(np.where(component[mine] == part, program.factors[mine].astype(np.int64), NOTHING))
            self.places.append((mine, part))
        self.bags, self.back = distinct_rows(np.sort(np.concatenate(bags), axis=1))

    def rows(self, products: Products) -> np.ndarray:
        """Rows as products of components: [rows, most components of a clause]."""
        rows = np.full(self.shape, NOTHING, dtype=np.int64)
        values, first = products.intern(self.bags)[self.back], 0
        for mine, part in self.places:
            rows[mine, part] = values[first : first + len(mine)]
            first += len(mine)
        return rows


def _inline_single_uses(nodes: np.ndarray, rows: np.ndarray, slots: int) -> tuple[np.ndarray, np.ndarray]:
    """A node that is one row's only factor and has no other use becomes that row's two factors."""
    uses = np.bincount(np.concatenate([nodes.ravel(), rows[rows != NOTHING]]), minlength=slots + len(nodes))
    alone = (rows[:, 1] == NOTHING) & (rows[:, 0] >= slots)
    alone[alone] = uses[rows[alone, 0]] == 1
    gone = rows[alone, 0] - slots
    rows = rows.copy()
    rows[alone] = nodes[gone]
    keep = np.ones(len(nodes), dtype=bool)
    keep[gone] = False
    renumber = np.concatenate([np.arange(slots), slots + np.cumsum(keep) - 1, [NOTHING]])
    return renumber[nodes[keep]].astype(np.int32), renumber[rows].astype(np.int32)
