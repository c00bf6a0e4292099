"""Strongly connected components: which atoms depend on themselves, by way of which others."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from nsfrc.compiler import ir
from nsfrc.compiler.grounded import NOTHING, GroundProgram, distinct


def with_cycles(program: GroundProgram) -> GroundProgram:
    """Number the atoms that depend on themselves.

    Before any pass takes a row away: in how many rounds an atom is computed is part of what a program means.
    """
    if not _may_be_recursive(program):
        return program
    return replace(program, cycle=cycles(*dependencies(program), program.slots))


def dependencies(program: GroundProgram) -> tuple[np.ndarray, np.ndarray]:
    """From heads to those of their factors that are heads, as slots, each pair once; for a program without nodes."""
    heads = np.zeros(program.slots + 1, dtype=bool)
    heads[program.pair_head] = heads[program.counts.head] = True
    sources = np.concatenate([np.repeat(program.pair_head[program.pair_of_row], program.factors.shape[1]),
                              program.counts.head_of_source]).astype(np.int64)
    targets = np.concatenate([program.factors.ravel(), program.counts.source]).astype(np.int64)
    real = heads[targets]  # NOTHING finds the last one, which is none
    found = distinct(sources[real] * program.slots + targets[real])
    return found // program.slots, found % program.slots


def cycles(sources: np.ndarray, targets: np.ndarray, n: int) -> np.ndarray:
    """Vertices that reach each other share a number, counted from 0; NOTHING for those that do not reach themselves."""
    component = components(*grouped(sources, targets, n))
    looped = np.bincount(component, minlength=n)[component] > 1
    looped[sources[sources == targets]] = True
    found = np.full(n, NOTHING, dtype=np.int64)
    found[looped] = np.unique(component[looped], return_inverse=True)[1]
    return found


def cycle_through_count(program: GroundProgram) -> list[tuple[int, int]]:
    """A way from an atom back to itself that leads through a count: every atom on it, and the clause that leads from it
    to the next one, NOTHING for a count; empty if there is none. For a program with a slot for every atom."""
    counts = program.counts
    if not len(counts):
        return []
    cycle = program.cycle
    bad = np.flatnonzero((cycle[counts.head_of_source] == cycle[counts.source]) & (cycle[counts.source] != NOTHING))
    if not len(bad):
        return []
    first, start = int(counts.head_of_source[bad[0]]), int(counts.source[bad[0]])
    starts, targets = grouped(*dependencies(program), program.slots)
    came_from = {start: start}
    waiting = deque([start])
    while first not in came_from:  # breadth first: the shortest way is the easiest to read
        atom = waiting.popleft()
        for other in targets[starts[atom] : starts[atom + 1]].tolist():
            if cycle[other] == cycle[atom] and other not in came_from:
                came_from[other] = atom
                waiting.append(other)
    way = [first]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    way = [first, *way[:0:-1]]  # from the count to what it counts, and on to what uses it
    return [(atom, _clause_between(program, atom, other)) for atom, other in zip(way, [*way[1:], first], strict=True)]


def _clause_between(program: GroundProgram, head: int, factor: int) -> int:
    """A clause with this head and this factor in a row."""
    rows = np.flatnonzero(program.pair_head[program.pair_of_row] == head)
    rows = rows[(program.factors[rows] == factor).any(axis=1)]
    return int(program.pair_clause[program.pair_of_row[rows[0]]]) if len(rows) else NOTHING


def _may_be_recursive(program: GroundProgram) -> bool:
    """Whether some predicate depends on itself; if none does, no atom does."""
    numbers: dict[ir.PredicateKey, int] = {}
    used = [(c.head.key, atom.key) for c in program.clauses for atom in c.body]
    used += [(p.key, source.key) for p in program.herbrand.predicates if p.count for source in p.count.sources]
    edges = {(numbers.setdefault(user, len(numbers)), numbers.setdefault(key, len(numbers))) for user, key in used}
    if not edges:
        return False
    pairs = np.array(sorted(edges), dtype=np.int64)
    return bool((cycles(pairs[:, 0], pairs[:, 1], len(numbers)) != NOTHING).any())


def components(starts: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The component of every vertex: [n]; a component has a smaller number than those that lead to it.

    The edges of vertex v go to targets[starts[v] : starts[v + 1]]. Tarjan's algorithm with a stack of its own, since
    programs may be deep.
    """
    n = len(starts) - 1
    edges, first, last = targets.tolist(), starts[:-1].tolist(), starts[1:].tolist()
    number = [-1] * n  # in the order of discovery
    low, on_stack, component = [0] * n, [False] * n, [-1] * n
    stack: list[int] = []
    found = counted = 0
    for root in range(n):
        if number[root] >= 0:
            continue
        path = [(root, first[root])]
        number[root] = low[root] = counted
        counted += 1
        stack.append(root)
        on_stack[root] = True
        while path:
            vertex, edge = path[-1]
            if edge < last[vertex]:
                path[-1] = (vertex, edge + 1)
                other = edges[edge]
                if number[other] < 0:
                    number[other] = low[other] = counted
                    counted += 1
                    stack.append(other)
                    on_stack[other] = True
                    path.append((other, first[other]))
                elif on_stack[other]:
                    low[vertex] = min(low[vertex], number[other])
                continue
            path.pop()
            if path:
                low[path[-1][0]] = min(low[path[-1][0]], low[vertex])
            if low[vertex] == number[vertex]:
                while True:
                    member = stack.pop()
                    on_stack[member] = False
                    component[member] = found
                    if member == vertex:
                        break
                found += 1
    return np.array(component, dtype=np.int64)


def grouped(sources: np.ndarray, targets: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges sorted by their sources: where those of each of n vertices start [n + 1], and their targets."""
    order = np.argsort(sources, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=n))])
    return starts, targets[order]
