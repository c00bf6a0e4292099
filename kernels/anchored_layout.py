"""What the kernels of `anchored` are compiled for: sizes, where tables lie, and what the rows of memory hold.

X is [rows, lanes], one value an example (a lane): 0, 1, inputs, heads, nodes, choices, pairs (for soft weights) and
parts. A part is the soft-or of some rows of a long list; since softor⁰ is associative, a list is a soft-or of its
parts. A *sum* is any soft-or: of a part, of a pair or of a head. Negations and counts are made of *choices*, one value
or another by how likely a third is. All that a kernel does is a list of phases (kind, first, last), each of which needs
all results of those before it; a block is a range of phases, which a recursive one runs in rounds.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple


class AnchoredKinds(NamedTuple):
    """Kinds of phases. Backwards, gradients are taken from what a phase computed, then gathered by what it used."""

    products: int = 0
    parts: int = 1  # soft-ors of parts, and of pairs
    heads: int = 2
    take_products: int = 3
    take_parts: int = 4
    take_heads: int = 5
    uses_of_products: int = 6
    uses_of_sums: int = 7
    add: int = 8  # pieces of long lists of uses
    choices: int = 9
    uses_of_choices: int = 10  # no round comes after a choice, so its gradient stays where it is


class AnchoredSizes(NamedTuple):
    """How many there are of everything."""

    atoms: int
    clauses: int
    inputs: int
    heads: int
    nodes: int
    choices: int
    pairs: int  # (clause, head) pairs with a row of X; 0 for hard weights
    values: int  # rows of X
    sums: int
    blocks: int  # one, if none is recursive
    outputs: int
    asked: int  # rows of X that are outputs


class AnchoredInts(NamedTuple):
    """Where tables begin in `ints`. The first ones have two or four numbers an entry, which one load brings."""

    sum: int  # [sums, 4]: row of X, first group, groups, nothing
    left: int  # [groups, 4]: rows of X; the first group, and the end of others, is row 0, which adds nothing
    right: int  # [groups, 4]: rows of X that those are multiplied by
    times: int  # [groups, 4]: how often such a reason counts; none if all count once
    use: int  # [lists of uses, 4]: whose; row of gradients that is added to, or of `partial`; first use, uses
    use_of: int  # [uses, 4]: other factor, node or sum, times; of a choice, by a - b: a, its row, nothing, b
    choice: int  # [choices, 4]: rows of X: its own, by which, `no` if that is 0, `yes` if it is 1; by phases
    phase: int  # [phases, 4]: kind, first, last, nothing
    back: int  # [phases backwards, 4]
    node: int  # [nodes, 2]: factors
    input_atom: int  # [inputs]
    head_atom: int  # [heads]
    output: int  # [outputs]: row of X, or -1 - atom where V0 itself is the output
    block_phases: int  # [blocks + 1]: ranges of `phase`
    block_backs: int  # [blocks + 1]: ranges of `back`
    block_heads: int  # [blocks + 1]
    block_rounds: int  # [blocks]: 0 for a plain block
    block_members: int  # [blocks]: heads of recursive blocks before this one
    block_past: int  # [blocks]: rows that those leave behind, if each takes the rounds it needs
    pair_start: int  # [heads + 1]: pairs of a head
    pair_clause: int  # [pairs]
    pair_head: int  # [pairs]
    clause_start: int  # [clauses + 1]
    clause_pair: int  # [pairs]: by clause
    asked_row: int  # [asked]
    asked_start: int  # [asked + 1]
    asked: int  # outputs of a row
    add_row: int  # [additions]
    add_start: int  # [additions + 1]
    add_piece: int  # rows from `partial` on
    atom_row: int  # [atoms]: row of the gradient of V0, or -1
    atom_output: int  # [atoms]: output that it passes to, or -1


class AnchoredFloats(NamedTuple):
    """Where tables begin in `floats`."""

    head_value: int  # [heads]: V0, where the program declares it


class AnchoredRows(NamedTuple):
    """Rows behind those of X, and of the gradients, whose first are those of X as well."""

    fresh: int  # [heads]: values of the next round
    top: int  # [sums + mixed heads]: largest reason
    inverse: int  # [sums + mixed heads]: 1 / sum, to the scale of that reason
    past: int  # heads of recursive blocks, round after round
    partial: int  # pieces of long lists of uses
    taken: int  # [nodes + sums]: gradients that are complete
    start: int  # [heads]: gradient of V0
    chosen: int  # end of the gradients; for soft weights [M, heads] follow, those of mixtures


class AnchoredLayout(NamedTuple):
    """All of it. A tile is `tall` rows × `wide` examples, or `few` where there are no more: a value a thread."""

    tall: int
    few: int
    wide: int
    n: AnchoredSizes
    at: AnchoredInts
    of: AnchoredFloats
    row: AnchoredRows
    first_head: int
    first_node: int
    first_pair: int
    declared: bool  # whether heads start as the program says
    soft: bool
    recursive: bool
    once: bool  # every reason counts once
    warm: bool  # γ is large; see anchored_maths
    kind: AnchoredKinds = AnchoredKinds()

    def __repr__(self) -> str:
        """Short, because Triton names functions after what they are compiled for."""
        return "Anchored" + sha256(repr(tuple(self)).encode()).hexdigest()[:16]
