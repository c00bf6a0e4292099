"""What the table-driven kernels of `anchored` do, phase after phase, and the lists that they do it with.

A list is what is summed: the rows of a head, or the uses of a factor. A thread takes a list for an example, so lists of
more than PIECE entries are cut into pieces that are lists of their own, and what they give is a shorter list:

    kp(img): 45 rows    →  parts of 16, 16 and 13 rows, then kp(img): 3 parts

Lists of a phase are sorted by falling length, so that those worked on together are of like length.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nsfrc.compiler.levels import ONE, ZERO, LevelPlan
from nsfrc.kernels.anchored_layout import AnchoredKinds

# Entries that a thread sums one after the other: enough to outweigh what a list costs besides.
PIECE = 16
GROUP = 4  # reasons that a soft-or takes up together
KIND = AnchoredKinds()
TAKE = {KIND.products: KIND.take_products, KIND.parts: KIND.take_parts, KIND.heads: KIND.take_heads}

Phase = tuple[int, int, int]  # kind, first, last
Arrays = tuple[np.ndarray, ...]


@dataclass
class Lists:
    """Lists, phase after phase: columns with an item for every list, and columns of all their entries, end to end."""

    columns: list[Arrays] = field(default_factory=list)
    entries: list[Arrays] = field(default_factory=list)
    lengths: list[np.ndarray] = field(default_factory=list)
    count: int = 0

    def add(self, columns: Arrays, entries: Arrays, owner: np.ndarray) -> tuple[int, int]:
        """The lists of a phase, longest first; owner [entries]: the list of each. Gives first and last."""
        lengths = np.bincount(owner, minlength=len(columns[0]))
        by_length = np.argsort(-lengths, kind="stable")
        order = np.argsort(np.argsort(by_length)[owner], kind="stable")
        self.columns.append(tuple(column[by_length] for column in columns))
        self.entries.append(tuple(entry[order] for entry in entries))
        self.lengths.append(lengths[by_length])
        first, self.count = self.count, self.count + len(lengths)
        return first, self.count

    def column(self, number: int) -> np.ndarray:
        return np.concatenate([np.empty(0, np.int64), *(columns[number] for columns in self.columns)])

    def entry(self, number: int) -> np.ndarray:
        return np.concatenate([np.empty(0, np.int64), *(entries[number] for entries in self.entries)])

    def starts(self) -> np.ndarray:
        return np.cumsum(np.concatenate([np.zeros(1, np.int64), *self.lengths]))


@dataclass
class Work:
    """All of it. values: rows of X, and of gradients, that lists give; pieces: rows for parts of lists of uses."""

    values: int
    choices: list[np.ndarray] = field(default_factory=list)  # of the plan, phase after phase
    sums: Lists = field(default_factory=Lists)  # row; left, right, times
    uses: Lists = field(default_factory=Lists)  # row, factor; other, less, node or sum or row of a choice, times
    adds: Lists = field(default_factory=Lists)  # row; piece
    forward: list[list[Phase]] = field(default_factory=list)  # of every block, or of all if none is recursive
    backward: list[list[Phase]] = field(default_factory=list)
    pieces: int = 0


def work_of(plan: LevelPlan, soft: bool) -> Work:
    """Phases of a plan, forwards and backwards. soft: pairs have rows of X, and heads are mixtures of them."""
    work = Work(plan.values + (len(plan.pair_clause) if soft else 0))
    rows = _rows(plan, soft)
    for block in range(plan.blocks):
        plain = _choice_phases(plan, block, work) + node_phases(plan, block)
        work.forward.append(plain + _sum_phases(plan, block, soft, rows, work))
    entries = tuple(work.sums.entry(number) for number in range(3))
    starts, parents = work.sums.starts(), np.repeat(np.arange(work.sums.count), np.diff(work.sums.starts()))
    chosen = np.concatenate([np.empty(0, np.int64), *work.choices])
    for phases in work.forward:
        back: list[Phase] = []
        for kind, first, last in reversed(phases):
            if kind == KIND.choices:
                back += _uses_of_choices(plan, chosen[first:last], work)
                continue
            back.append((TAKE[kind], first, last))
            if kind == KIND.products:
                node = np.arange(first, last)
                back += _uses_of(
                    KIND.uses_of_products, plan.node_left[node], plan.node_right[node], node, node * 0, work)
            elif kind == KIND.parts or not soft:
                mine = np.arange(starts[first], starts[last])
                left, right, times = (entry[mine] for entry in entries)
                back += _uses_of(KIND.uses_of_sums, left, right, parents[mine], times, work)
        work.backward.append(back)
    if not plan.rounds:  # one block after the other is one block
        work.forward = [[phase for block in work.forward for phase in block]]
        work.backward = [[phase for block in reversed(work.backward) for phase in block]]
    return work


def cut(owner: np.ndarray, group: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut lists of more than PIECE entries into pieces as equal as whole groups can be. owner [entries]: list of each,
    rising.

    Gives which entries are of such a list, the piece of each of those, and the list of every piece.
    """
    lists, first, length = np.unique(owner, return_index=True, return_counts=True)
    place = np.searchsorted(lists, owner)
    each = -(-length // -(-length // PIECE) // group) * group
    pieces = np.where(length > PIECE, -(-length // each), 0)
    at, whole = np.arange(len(owner)) - first[place], (length // each)[place]
    number = np.where(at < whole * each[place], at % np.maximum(whole, 1), whole)
    long = pieces[place] > 0
    return long, ((np.cumsum(pieces) - pieces)[place] + number)[long], np.repeat(lists, pieces)


def _rows(plan: LevelPlan, soft: bool) -> tuple[np.ndarray, Arrays]:
    """Left, right and times of all rows, and whose each is: a pair's if soft, else a head's."""
    runs = plan.run_start.astype(np.int64)
    of_pair = np.diff(runs[plan.pair_start])
    owner = np.repeat(np.arange(len(of_pair)), of_pair)
    if not soft:
        pairs: np.ndarray = np.diff(plan.head_start.astype(np.int64))
        owner = np.repeat(np.arange(plan.heads), pairs)[owner]
    times = np.repeat(plan.run_times, np.diff(runs))
    return owner, (plan.row_left.astype(np.int64), plan.row_right.astype(np.int64), times)


def _choice_phases(plan: LevelPlan, block: int, work: Work) -> list[Phase]:
    """Choices of a block by their depth: a phase has those that use choices of the phases before it."""
    first, last = plan.block_choices.astype(np.int64)[block: block + 2]
    used = np.stack([plan.choice_by, plan.choice_no, plan.choice_yes])[:, first:last].T.astype(np.int64)
    depth: list[int] = []
    for rows in (used - plan.first_choice - first).tolist():
        depth.append(max((depth[row] + 1 for row in rows if row >= 0), default=0))
    found, start = [], sum(map(len, work.choices))
    for number in range(max(depth, default=-1) + 1):
        mine = first + np.flatnonzero(np.array(depth) == number)
        work.choices.append(mine)
        found.append((KIND.choices, start, start + len(mine)))
        start += len(mine)
    return found


def node_phases(plan: LevelPlan, block: int) -> list[Phase]:
    """Products of a block: a phase ends where a node uses one of its nodes."""
    found, first, last = [], int(plan.block_nodes[block]), int(plan.block_nodes[block + 1])
    factors = np.stack([plan.node_left, plan.node_right]).astype(np.int64) - plan.first_node
    highest = np.where(factors < plan.nodes, factors, -1).max(axis=0)  # choices come before all nodes
    for node in range(first, last):
        if highest[node] >= first:
            found.append((KIND.products, first, node))
            first = node
    return [*found, (KIND.products, first, last)] if first < last else found


def _sum_phases(plan: LevelPlan, block: int, soft: bool, rows: tuple[np.ndarray, Arrays], work: Work) -> list[Phase]:
    """Soft-ors of a block: of parts of parts, of parts, then of what is whole."""
    heads = plan.block_heads.astype(np.int64)[block : block + 2]
    low, high = plan.head_start.astype(np.int64)[heads] if soft else heads
    owner, columns = rows
    mine = slice(*np.searchsorted(owner, (low, high)))
    owner, entries, found = owner[mine] - low, tuple(column[mine] for column in columns), []
    while np.bincount(owner, minlength=1).max() > PIECE:
        long, piece, whole = cut(owner, GROUP)
        parts = work.values + np.arange(len(whole))
        work.values += len(parts)
        found.append((KIND.parts, *work.sums.add((parts,), tuple(entry[long] for entry in entries), piece)))
        owner = np.append(owner[~long], whole)
        order = np.argsort(owner, kind="stable")
        added: Arrays = (parts, np.full(len(parts), ONE), np.ones(len(parts), np.float32))
        entries = tuple(np.append(old[~long], new)[order] for old, new in zip(entries, added, strict=True))
        owner = owner[order]
    if low < high:
        row = (plan.values if soft else plan.first_head) + np.arange(low, high)
        found.append((KIND.parts if soft else KIND.heads, *work.sums.add((row,), entries, owner)))
    return [*found, (KIND.heads, int(heads[0]), int(heads[1]))] if soft and low < high else found


def _uses_of(
    kind: int, left: np.ndarray, right: np.ndarray, of: np.ndarray, times: np.ndarray, work: Work
) -> list[Phase]:
    """Who gathers from products left·right, which are nodes or reasons of sums."""
    factor, other = np.concatenate([left, right]), np.concatenate([right, left])
    return _uses(kind, factor, (other, other * 0, np.tile(of, 2), np.tile(times, 2)), work)


def _uses_of_choices(plan: LevelPlan, choice: np.ndarray, work: Work) -> list[Phase]:
    """Who gathers from choices: no + by·(yes − no) gives `by` times yes − no, `no` times 1 − by, `yes` times by − 0."""
    by, no, yes = (table[choice].astype(np.int64) for table in (plan.choice_by, plan.choice_no, plan.choice_yes))
    more, less = np.concatenate([yes, no * 0 + ONE, by]), np.concatenate([no, by, yes * 0 + ZERO])
    of = np.tile(plan.first_choice + choice, 3)
    return _uses(KIND.uses_of_choices, np.concatenate([by, no, yes]), (more, less, of, of * 0), work)


def _uses(kind: int, factor: np.ndarray, entries: Arrays, work: Work) -> list[Phase]:
    """Lists of uses by factor [uses], with their entries; constants gather nothing."""
    order = np.argsort(factor.astype(np.int64), kind="stable")
    order = order[factor[order] > ONE]
    if not len(order):
        return []
    rows, factors, owner, waiting = _with_pieces(factor[order].astype(np.int64), work.values)
    found = [(kind, *work.uses.add((rows, factors), tuple(entry[order] for entry in entries), owner))]
    pieces = 0
    while len(waiting):
        mine = pieces + np.arange(len(waiting))
        pieces += len(waiting)
        rows, _, owner, waiting = _with_pieces(waiting, work.values + pieces)
        found.append((KIND.add, *work.adds.add((rows,), (mine,), owner)))
    work.pieces = max(work.pieces, pieces)
    return found


def _with_pieces(owner: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Lists as they are gathered: row that each gives (of its owner, or from `first` on for a piece), whose it is, the
    list of every entry, and the owners of the pieces. owner [entries]: rising."""
    long, piece, whole = cut(owner)
    short, place = np.unique(owner[~long], return_inverse=True)
    lists = np.empty(len(owner), dtype=np.int64)
    lists[~long], lists[long] = place, len(short) + piece
    return np.append(short, first + np.arange(len(whole))), np.append(short, whole), lists, whole
