"""Clauses that were grounded one by one, laid under each other: with padding rows or without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nsfrc.compiler.grounded import NOTHING, rows_of
from nsfrc.compiler.herbrand import FALSE
from nsfrc.records import dataclass


@dataclass(frozen=True)
class Piece:
    """One grounded clause: its heads, rows for each, and the body atoms of every row."""

    heads: np.ndarray  # [heads] atoms
    counts: np.ndarray  # [heads] rows
    body: np.ndarray  # [rows, body length] atoms, head by head


@dataclass(frozen=True)
class Rows:
    """The rows of all clauses, as `GroundProgram` has them: what does not follow from the program without grounding."""

    pair_clause: np.ndarray
    pair_head: np.ndarray
    pair_start: np.ndarray
    factors: np.ndarray
    power: np.ndarray
    multiplicity: np.ndarray


def spelt_out(pieces: Sequence[Piece], atoms: int, substitutions: int, length: int) -> Rows:
    """Lay the clauses' rows under each other, with the padding rows spelt out."""
    padded = [_with_padding(piece, atoms, substitutions, length) for piece in pieces]
    return Rows(
        pair_clause=np.repeat(np.arange(len(pieces), dtype=np.int32), atoms),
        pair_head=np.tile(np.arange(atoms, dtype=np.int32), len(pieces)),
        pair_start=np.cumsum(np.concatenate([np.zeros(1, np.int64), *(p[0] for p in padded)])),
        factors=np.concatenate([p[1] for p in padded]),
        power=np.concatenate([p[2] for p in padded]),
        multiplicity=np.concatenate([p[3] for p in padded]),
    )


class SpeltOut(NamedTuple):
    """What a program has where every pair and padding row is spelt out: ground atoms, rows and products."""

    atoms: int
    rows: int
    products: int


def counted(pieces: Sequence[Piece], atoms: int, substitutions: int, length: int) -> SpeltOut:
    """What `spelt_out` would make."""
    padding = sum(atoms - int((piece.counts == substitutions).sum()) for piece in pieces)
    products = sum(len(piece.body) * max(piece.body.shape[1] - 1, 0) for piece in pieces) + padding * (length - 1)
    return SpeltOut(atoms, sum(len(piece.body) for piece in pieces) + padding, products)


def live(pieces: Sequence[Piece], length: int) -> Rows:
    """The rows that are not all false; one that is filled up with true is not."""
    factors, clause, head = _under_each_other(pieces, length)
    all_false = rows_of(FALSE, factors)
    if len(all_false):
        keep = np.ones(len(factors), dtype=bool)
        keep[all_false] = False
        factors, clause, head = factors[keep], clause[keep], head[keep]
    power = np.array([length - piece.body.shape[1] for piece in pieces], dtype=np.int32)
    return _in_pairs(factors, clause, head, power[clause])


def possible(pieces: Sequence[Piece], length: int) -> Rows:
    """The rows that may hold: under `anchored` one with a false atom adds nothing, and none is padding."""
    factors, clause, head = _under_each_other(pieces, length)
    possible = (factors != FALSE).all(axis=1)
    if not possible.all():
        factors, clause, head = factors[possible], clause[possible], head[possible]
    return _in_pairs(factors, clause, head, np.zeros(len(factors), dtype=np.int32))


def _under_each_other(pieces: Sequence[Piece], length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Factors of all rows, filled up with NOTHING; the clause and the head of each."""
    factors = np.empty((sum(len(piece.body) for piece in pieces), length), dtype=np.int32)
    first = 0
    for piece in pieces:
        rows, n = piece.body.shape
        factors[first : first + rows, :n] = piece.body
        factors[first : first + rows, n:] = NOTHING
        first += rows
    clause = np.repeat(np.arange(len(pieces), dtype=np.int32), [len(piece.body) for piece in pieces])
    heads, counts = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("heads", "counts"))
    return factors, clause, np.repeat(heads.astype(np.int32), counts)


def _in_pairs(factors: np.ndarray, clause: np.ndarray, head: np.ndarray, power: np.ndarray) -> Rows:
    """Rows that each count once; those of one clause and head are a pair."""
    first = np.flatnonzero(np.append(True, (head[1:] != head[:-1]) | (clause[1:] != clause[:-1]))[: len(head)])
    return Rows(
        pair_clause=clause[first], pair_head=head[first], pair_start=np.append(first, len(head)).astype(np.int64),
        factors=factors, power=power, multiplicity=np.ones(len(head), dtype=np.int64),
    )


def _with_padding(
    piece: Piece, atoms: int, substitutions: int, length: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows of one clause for every ground atom: (rows per atom, factors, power, multiplicity).

    A head with fewer than S rows gets one all-false row that stands for the missing ones.
    """
    real = np.zeros(atoms, dtype=np.int64)
    real[piece.heads] = piece.counts
    missing = substitutions - real
    per_atom = real + (missing > 0)
    last = np.cumsum(per_atom)
    is_padding = np.zeros(last[-1], dtype=bool)
    is_padding[last[missing > 0] - 1] = True
    n = piece.body.shape[1]
    factors = np.full((len(is_padding), length), FALSE, dtype=np.int32)
    factors[~is_padding, :n] = piece.body
    factors[~is_padding, n:] = NOTHING
    power = np.where(is_padding, 0, length - n).astype(np.int32)
    multiplicity = np.ones(len(is_padding), dtype=np.int64)
    multiplicity[is_padding] = missing[missing > 0]
    return per_atom, factors, power, multiplicity
