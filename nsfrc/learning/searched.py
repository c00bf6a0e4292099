"""Searches that are done, as plain data: a run that was killed goes on after the last of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from nsfrc import __version__
from nsfrc.learning.covering import Theory
from nsfrc.learning.extended import number_relation
from nsfrc.learning.relations import Relation
from nsfrc.learning.search import Clause, Progress
from nsfrc.learning.tables import Tables


class Kept(Protocol):
    """Where searches are kept, by name."""

    def begin(self, mark: str) -> None:
        """Forget those that a search with another mark left."""
        ...

    def recall(self, name: str) -> Mapping[str, Any] | None: ...

    def keep(self, name: str, searched: Mapping[str, Any]) -> None: ...


def search_mark(
    relations: Sequence[Relation], present: np.ndarray, labels: Sequence[np.ndarray], *options: object
) -> str:
    """A checksum of all that decides what a search finds."""
    code = hashlib.blake2b(repr((__version__, *options)).encode("utf-8", "surrogateescape"), digest_size=16)
    for array in (present, *labels):
        code.update(np.ascontiguousarray(array).tobytes())
    for one in relations:
        code.update(one.text.encode("utf-8", "surrogateescape"))
        code.update(np.packbits(one.values).tobytes())
    return code.hexdigest()


def stored(theory: Theory, progress: Progress, added: Sequence[Relation]) -> dict[str, Any]:
    """added: comparisons that the search cut anew, which are relations of those after it as well."""
    return {
        "clauses": [_plain(one) for one in theory.clauses],
        "alternatives": [[_plain(one) for one in some] for some in theory.alternatives],
        "narrower": [[_plain(one) for one in some] for some in theory.narrower],
        "best": None if theory.best is None else _plain(theory.best),
        "saved": theory.saved, "scored": progress.scored, "seconds": progress.seconds, "variables": progress.variables,
        "added": [[*one.cut, one.bits] for one in added if one.cut is not None],
    }


def restored(
    kept: Mapping[str, Any], tables: Tables, numbers: Mapping[str, np.ndarray], progress: Progress
) -> Theory:
    """What `stored` kept; the tables get the relations that the search added. ValueError: it is something else."""
    try:
        for name, op, cut, bits in kept["added"]:
            values = numbers[name] > cut if op == ">" else numbers[name] < cut
            tables.add(number_relation(name, op, float(cut), values, float(bits)))
        progress.scored, progress.seconds = int(kept["scored"]), float(kept["seconds"])
        progress.variables = int(kept["variables"])
        others, narrower = (tuple(tuple(_clause(one, tables) for one in some) for some in kept[name])
                            for name in ("alternatives", "narrower"))
        return Theory(
            tuple(_clause(one, tables) for one in kept["clauses"]), others, narrower,
            None if kept["best"] is None else _clause(kept["best"], tables), float(kept["saved"]))
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"not a search: {error}") from None


def _plain(one: Clause) -> list[Any]:
    return [one.literals, one.k, one.cost, one.tp, one.fp, one.score, one.mark]


def _clause(plain: Sequence[Any], tables: Tables) -> Clause:
    literals, k, cost, tp, fp, score, mark = plain
    named = tuple((int(relation), tuple(int(a) for a in args)) for relation, args in literals)
    for relation, args in named:
        if not 0 <= relation < len(tables.relations) or len(args) != tables.relations[relation].arity:
            raise ValueError("a literal of another program")
    return Clause(named, int(k), float(cost), int(tp), int(fp), float(score), int(mark))
