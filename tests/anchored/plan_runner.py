"""A level plan run by loops in float64, straight from what `levels.LevelPlan` says of its tables."""

from __future__ import annotations

import numpy as np

from nsfrc.compiler.levels import ONE, PASSED, ZERO, LevelPlan
from tests.anchored.oracle import softor


def run(
    plan: LevelPlan, V0: np.ndarray, gamma: float, steps: int | None = None, weights: np.ndarray | None = None
) -> np.ndarray:
    """V of every atom of one example: V0 [G] → [G]; weights [M, C], None takes every clause once."""
    X = np.full(plan.values, np.nan)
    X[ZERO], X[ONE] = 0, 1
    X[2 : plan.first_head] = V0[plan.input_atom]
    anchor = plan.head_start_value.astype(float) if plan.declared else V0[plan.head_atom]
    for block, rounds in enumerate(plan.block_rounds.tolist()):
        heads = range(plan.block_heads[block], plan.block_heads[block + 1])
        nodes = range(plan.block_nodes[block], plan.block_nodes[block + 1])
        if rounds:
            for head in heads:
                X[plan.first_head + head] = anchor[head]
        for choice in range(plan.block_choices[block], plan.block_choices[block + 1]):
            no, yes, by = X[plan.choice_no[choice]], X[plan.choice_yes[choice]], min(1.0, X[plan.choice_by[choice]])
            X[plan.first_choice + choice] = no + by * (yes - no)
        for _ in range(1 if not rounds else rounds if steps is None else steps):
            for node in nodes:
                X[plan.first_node + node] = X[plan.node_left[node]] * X[plan.node_right[node]]
            fresh = [_derived(plan, head, X, float(anchor[head]), gamma, weights) for head in heads]
            for head, value in zip(heads, fresh, strict=True):
                X[plan.first_head + head] = value
    return np.array([V0[atom] if place == PASSED else X[place] for atom, place in enumerate(plan.place)])


def _derived(
    plan: LevelPlan, head: int, X: np.ndarray, anchor: float, gamma: float, weights: np.ndarray | None
) -> float:
    C = dict.fromkeys(range(plan.C), 0.0)
    for pair in range(plan.head_start[head], plan.head_start[head + 1]):
        reasons: list[float] = []
        for run in range(plan.pair_start[pair], plan.pair_start[pair + 1]):
            for row in range(plan.run_start[run], plan.run_start[run + 1]):
                reasons += [float(X[plan.row_left[row]] * X[plan.row_right[row]])] * int(plan.run_times[run])
        C[int(plan.pair_clause[pair])] = softor(reasons, gamma)
    H = list(C.values()) if weights is None else (weights @ np.array(list(C.values()))).tolist()
    return min(1.0, softor([anchor, *H], gamma))
