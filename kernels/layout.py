"""What a kernel is compiled for: sizes of a plan, where its tables lie, and what each row of work holds.

A kernel receives two arrays of tables, `indices` (int32) and `floats` (float32), and a workspace of
rows, one value an example (a lane): `work [rows, lanes]`. Everything about their layout is a
constant when it is compiled. Soft-ors are taken with base 2, so `bits` are values times
k = log2(e)/gamma, and `unit` is 1/k.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple


class Band(NamedTuple):
    """Segments first … last, in order of falling length, that are worked on `width` entries at a time."""

    width: int
    first: int
    last: int
    entries: int  # that a tile goes through, a multiple of width; 0 where tiles differ, and the first segment says


class Power(NamedTuple):
    """A power of `true` that rows have: its place among them, its exponent n, and n - 1, or 0 where that is less."""

    place: int
    n: int
    less: int


class Sizes(NamedTuple):
    """How many there are of everything."""

    atoms: int
    slots: int
    active: int  # slots that rows read, heads write or targets name; the others are passive
    kept: int  # slots with a row of V: all, or the active ones and one for the largest passive
    nodes: int
    levels: int  # nodes of a level read only those before it
    powers: int  # different powers of `true`
    pairs: int  # (clause, head) pairs
    parts: int  # pairs, or pieces of them where their rows are shared out
    clauses: int
    heads: int
    mixtures: int  # M
    outputs: int


class Indices(NamedTuple):
    """Where tables begin in `indices`. The first ones have two or four numbers an entry, which one load brings."""

    row: int  # [rows, 4]: factors, which power of `true`, multiplicity
    part: int  # [parts, 4]: parts by falling length, first row, rows, and all-false rows of its pair
    node: int  # [nodes, 2]: factors
    level: int  # [levels, 2]: nodes of a level, first and last + 1
    pair: int  # [pairs, 2]: clause, head
    head: int  # [heads + 1, 2]: its places in head_pair, first and last + 1; none of atoms that head nothing
    head_pair: int  # [pairs, 2]: pair and clause, by head
    clause: int  # [clauses, 4]: clauses by falling number of pairs, first pair, pairs, nothing
    use: int  # [n, 4]: rows of X that rows use, by falling number of uses, first use, uses, nothing
    use_of: int  # [uses, 4]: the other factor, pair, and as of `row` power and multiplicity
    fed: int  # [n, 4]: rows of X that nodes use, highest level first, then by uses; first use, uses, nothing
    fed_level: int  # [levels, 2]: ranges of `fed`, first and last + 1
    fed_by: int  # [uses, 2]: rows of X of the node and of its other factor
    member: int  # [slots]: atom that a slot starts as
    head_of: int  # [slots]: number of the head it is, or `heads`
    rank: int  # [slots]: place in atom order
    output: int  # [outputs]: slot
    asked_start: int  # [kept + 1]: outputs of a slot
    asked: int
    gradient: int  # [atoms]: slot that starts as an atom and receives its gradient; -1: passive, -2: none
    part_pair: int
    pair_parts: int  # [pairs + 1]: parts of a pair
    pair_rank: int  # [pairs]: 1, 2, … within its clause


class Floats(NamedTuple):
    """Where tables begin in `floats`."""

    constant: int  # [atoms]: starting value, or -1 where neural
    padding: int  # [pairs]: all-false rows


class Rows(NamedTuple):
    """Rows of the workspace."""

    x: int  # active slots, a one, nodes
    rest: int  # passive slots, or the largest of them
    scale: int  # [powers] true^power, in bits
    slope: int  # [powers] its derivative
    bottom: int  # false^L
    pair: int  # [pairs] C before Z, in bits
    part: int  # [parts] the same of a piece
    clause_z: int  # [clauses]
    mixed: int  # [mixtures] H of atoms that head nothing
    derived: int  # [heads + 1] R before Z, in bits; the last of atoms that head nothing
    derived_z: int
    value_z: int
    start_false: int  # [1 where exact]: what V0 says of false
    # From here on for gradients only.
    g_value: int  # [kept]
    g_x: int  # active slots, a one, nodes
    g_derived: int  # [heads + 1]
    g_pair: int  # [pairs]
    g_absent: int  # [clauses]
    g_z: int  # [clauses], or one
    claim: int  # [clauses], or one: rank of the value that Z is, or -1 where Z is 1
    g_true: int
    g_false: int
    by_true: int  # [parts]: derivative by true
    g_mixed: int  # [mixtures]
    chosen: int  # [mixtures, heads + 1]
    end: int


class Layout(NamedTuple):
    """All of it. A tile is `tall` rows × `wide` examples."""

    tall: int
    wide: int
    n: Sizes
    at: Indices
    of: Floats
    row: Rows
    powers: tuple[Power, ...]
    sums: tuple[Band, ...]  # over rows, into parts
    clauses: tuple[Band, ...]  # over pairs, into clauses
    uses: tuple[Band, ...]  # over rows, into factors
    true: int
    false: int
    length: int  # L
    power_bits: int  # enough to write the largest power and L in binary
    log_s: float  # log2 S: what S equal rows add, in bits
    split: bool
    hard: bool
    neural_only: bool
    exact: bool  # hard, and false may start above 0: then R of a head may have to be summed clause by clause
    gradient: bool  # whether rows are recomputed for their gradients

    def __repr__(self) -> str:
        """Short, because Triton names functions after what they are compiled for."""
        return "Layout" + sha256(repr(tuple(self)).encode()).hexdigest()[:16]
