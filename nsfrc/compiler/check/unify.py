"""Which clauses can derive an instance of an atom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from nsfrc.compiler.ir import Atom, Clause, Const, PredicateKey, Var

_Place = tuple[PredicateKey, int, str | None]  # an argument of a predicate, and its constant (None: a variable)


def unifiable(first: Atom, second: Atom) -> bool:
    """Whether two atoms of one predicate agree wherever both have a constant."""
    pairs = zip(first.args, second.args, strict=True)
    return all(isinstance(x, Var) or isinstance(y, Var) or x.name == y.name for x, y in pairs)


class Heads:
    """Clauses by the constants in their heads, so that a call looks only at those that have its own."""

    def __init__(self, clauses: Iterable[Clause]):
        self._all: dict[PredicateKey, list[Clause]] = defaultdict(list)
        self._at: dict[_Place, list[Clause]] = defaultdict(list)
        for clause in clauses:
            self._all[clause.head.key].append(clause)
            for index, arg in enumerate(clause.head.args):
                self._at[clause.head.key, index, arg.name if isinstance(arg, Const) else None].append(clause)

    def __contains__(self, key: PredicateKey) -> bool:
        return key in self._all

    def matching(self, atom: Atom) -> list[Clause]:
        """The clauses whose head unifies with an atom."""
        candidates = self._all.get(atom.key, [])
        for index, arg in enumerate(atom.args):
            if isinstance(arg, Const):
                same = self._at.get((atom.key, index, arg.name), [])
                anything = self._at.get((atom.key, index, None), [])
                if len(same) + len(anything) < len(candidates):
                    candidates = [*same, *anything]
        return [clause for clause in candidates if unifiable(atom, clause.head)]
