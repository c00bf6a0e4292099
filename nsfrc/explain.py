"""Why a target has its value: the clause and substitution that contributed most, down to what perception said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from nsfrc.compiler import ir
from nsfrc.compiler.goal_text import GoalText
from nsfrc.compiler.grounded import NOTHING
from nsfrc.compiler.herbrand import FALSE, TRUE
from nsfrc.errors import NsfrcError
from nsfrc.questions import first_of_equals
from nsfrc.reasons import HOLDS, Reason, Solutions, as_text, objects_of

if TYPE_CHECKING:
    import torch

    from nsfrc.program import Program

__all__ = ["Explainer", "Reason", "Solutions", "as_text", "explain", "first_of_equals", "objects_of"]

# Values count as no less than this when substitutions are compared: where nothing holds, the substitution that
# lacks the fewest atoms is the nearest. It changes nothing where the greatest product is above it.
LEAST = 0.01
MAX_NODES = 5000
SHOWN = 8  # so many solutions of a count are named


@dataclass(frozen=True, eq=False)
class _Rows:
    """The substitutions of all clauses for one head: factors [width, rows], where G stands for a constant 1."""

    clause: np.ndarray
    factors: np.ndarray


class Explainer:
    """Explains the valuations of one program; what does not depend on a valuation is prepared once."""

    def __init__(self, program: Program) -> None:
        # Not the program itself: an explainer is kept for as long as its program is there.
        self.ground, self.atoms = program.ground, program.atoms
        self.text = GoalText(program.source)
        self.sources = {head: sources for head, sources, _ in program.ground.counts}
        # Under `anchored` a derivation is as deep as it needs to be, however many rounds recursion takes.
        self.anchored = program.anchored
        self.steps = MAX_NODES if program.anchored else program.steps
        self._rows: dict[int, _Rows | None] = {}
        self._objects: dict[int, tuple[str, ...]] = {}

    def __call__(
        self, V_T: np.ndarray, target: int, V0: np.ndarray | None = None, steps: int | None = None
    ) -> Reason:
        """The reason of one ground atom in a valuation V_T [G]; see `explain`."""
        if V_T.shape != (self.ground.G,):
            raise NsfrcError(
                f"V_T has shape {list(V_T.shape)}; an explanation needs the values of all {self.ground.G} ground atoms "
                f"for one image (a reasoner with outputs=\"all\" gives them)"
            )
        values = np.append(np.maximum(V_T, LEAST).astype(np.float64), 1.0)
        shown = V_T if V0 is None else np.where(self.ground.neural | (self.ground.initial == 1), V0, V_T)
        limit = self.steps if steps is None or self.anchored else steps
        return _Walk(self, shown, values, limit).reason(target, ())

    @cached_property
    def _pairs_of(self) -> dict[int, list[int]]:
        """Which pairs (clause with head) there are for each head."""
        pairs: dict[int, list[int]] = {}
        for pair, head in enumerate(self.ground.pair_head.tolist()):
            pairs.setdefault(head, []).append(pair)
        return pairs

    def rows(self, atom: int) -> _Rows | None:
        """What may derive an atom; None where perception or a fact decides, or no clause does."""
        if atom not in self._rows:
            self._rows[atom] = self._find_rows(atom)
        return self._rows[atom]

    def _find_rows(self, atom: int) -> _Rows | None:
        ground = self.ground
        if ground.neural[atom] or ground.initial[atom] == 1 or atom not in self._pairs_of:
            return None
        pairs = self._pairs_of[atom]
        spans = [np.arange(ground.pair_start[pair], ground.pair_start[pair + 1]) for pair in pairs]
        clause = np.repeat(ground.pair_clause[pairs], [len(span) for span in spans])
        factors = ground.factors[np.concatenate(spans)]
        possible = ~(factors == FALSE).any(axis=1)
        if not possible.any():
            return None
        factors = np.where(factors == NOTHING, ground.G, factors)[possible]
        return _Rows(clause[possible], np.ascontiguousarray(factors.T))

    def objects(self, atom: int) -> tuple[str, ...]:
        """The object constants among the arguments of an atom."""
        if atom not in self._objects:
            self._objects[atom] = tuple(self._find_objects(atom))
        return self._objects[atom]

    def _find_objects(self, atom: int) -> Iterator[str]:
        if atom in (FALSE, TRUE):
            return
        herbrand = self.ground.herbrand
        for name, argument in zip(herbrand.predicate_of(atom).types, herbrand.atom(atom).args, strict=True):
            if herbrand.type_by_name[name].role == ir.OBJECT:
                yield str(argument)

    def counted(self, atom: int) -> Iterator[tuple[str, int, list[int]]]:
        """Of what a count counts, and what it takes away: the goal, how many arguments are given, and the solutions."""
        term, offsets = self.ground.herbrand.atom(atom), self.ground.herbrand.offsets
        count, sources = self.text.count_of(term), self.sources[atom].tolist()
        assert count is not None
        for goal, source, key in zip(self.text.counted(term), (count.of, count.less), (s.key for s in count.sources),
                                     strict=False):
            first, last = offsets[key]
            atoms = [i for i in sources if first <= i < last]
            if source is count.less:  # it looks at the complements of these
                atoms = [int(self.sources[i][0]) for i in atoms]
            yield self.text.body(goal), len(source.args) if source else 0, atoms

    def is_inner(self, atom: int) -> bool:
        """Whether it stands for a solution of a goal that is negated or counted."""
        return atom not in (FALSE, TRUE) and self.ground.herbrand.predicate_of(atom).key in self.text.inner


class _Walk:
    """One explanation on its way down.

    shown [G]: values to show; values [G + 1]: to compare, and a constant 1; steps: how many were taken.
    """

    def __init__(self, explainer: Explainer, shown: np.ndarray, values: np.ndarray, steps: int) -> None:
        self.explainer, self.shown, self.values, self.steps = explainer, shown, values, steps
        self.left = MAX_NODES

    def reason(self, atom: int, path: tuple[int, ...]) -> Reason:
        """The reason of an atom; `path` holds those above it, which it must not be explained by."""
        self.left -= 1
        explainer = self.explainer
        if atom in explainer.sources:
            return self._counted(atom, path)
        name, value, objects = explainer.atoms[atom], float(self.shown[atom]), explainer.objects(atom)
        rows = explainer.rows(atom)
        best = None if rows is None or not self._goes_on(path) else self._best(rows, path)
        inner = explainer.is_inner(atom)
        if rows is None or best is None:
            name = explainer.text.goal(explainer.ground.herbrand.atom(atom)) if inner else name
            return Reason(name, value, objects=objects)
        below = [i for i in rows.factors[:, best].tolist() if i != explainer.ground.G]
        body = tuple(self.reason(i, (*path, atom)) for i in below)
        if inner and len(body) == 1:  # the goal is one atom
            return body[0]
        name = ", ".join(part.atom for part in body) if inner else name
        return Reason(name, value, int(rows.clause[best]), body, objects)

    def _goes_on(self, path: tuple[int, ...]) -> bool:
        """Nothing is derived through more steps than were taken."""
        return len(path) < self.steps and self.left >= 0

    def _counted(self, atom: int, path: tuple[int, ...]) -> Reason:
        """A negation with what breaks it, or a count with its solutions."""
        explainer, path = self.explainer, (*path, atom)
        term, sources = explainer.ground.herbrand.atom(atom), explainer.sources[atom]
        said = Reason(explainer.text.goal(term), float(self.shown[atom]), objects=explainer.objects(atom))
        if not self._goes_on(path):
            return said
        if explainer.text.negated(term) is not None:
            source = int(sources[0])
            more = source in explainer.sources or explainer.rows(source) is not None
            return replace(said, body=(self.reason(source, path),)) if more and said.value < HOLDS else said
        found = [self._solutions(*counted, path) for counted in explainer.counted(atom)]
        body = tuple(part for _, parts in found for part in parts)
        return replace(said, body=body, solutions=tuple(solutions for solutions, _ in found))

    def _solutions(
        self, goal: str, own: int, atoms: list[int], path: tuple[int, ...]
    ) -> tuple[Solutions, list[Reason]]:
        """How many of the atoms hold, and the reasons of the likeliest. They differ from argument `own` on."""
        held = [atom for atom in atoms if self.shown[atom] >= HOLDS]
        left = list(held)
        likeliest: list[int] = []
        while left and len(likeliest) < SHOWN:
            likeliest.append(left.pop(first_of_equals([self.shown[atom] for atom in left])))
        which = tuple((self._named(atom, own), float(self.shown[atom])) for atom in sorted(likeliest))
        return Solutions(goal, len(held), len(atoms), which), [self.reason(atom, path) for atom in sorted(likeliest)]

    def _named(self, atom: int, own: int) -> str:
        names = [str(argument) for argument in self.explainer.ground.herbrand.atom(atom).args[own:]]
        return names[0] if len(names) == 1 else f"({','.join(names)})" if names else ""

    def _best(self, rows: _Rows, path: tuple[int, ...]) -> int | None:
        """The substitution with the greatest product, of equal ones the first; None if all go round in circles."""
        products = np.multiply.reduce(self.values[rows.factors], axis=0)
        best = first_of_equals(products)
        if not path or set(path).isdisjoint(rows.factors[:, best].tolist()):
            return best
        products[np.isin(rows.factors, path).any(axis=0)] = -1.0
        best = first_of_equals(products)
        return best if products[best] >= 0 else None


_explainers: WeakKeyDictionary[Program, Explainer] = WeakKeyDictionary()


def explain(
    program: Program,
    V_T: np.ndarray | torch.Tensor,
    target: str,
    V0: np.ndarray | torch.Tensor | None = None,
    steps: int | None = None,
) -> Reason:
    """Why `target` has its value in the valuation V_T [G] that `program` gave after `steps`, by default its own.

    Of all clauses and substitutions the one with the greatest product of its body is taken, then one for each
    derived atom of that body, and so on. Where a target does not hold, it is the one that comes nearest.
    V0 [G]: where given, neural atoms and facts are shown as they started, which reasoning blurs a little.
    """
    index = program.index(target)
    if program not in _explainers:
        _explainers[program] = Explainer(program)
    return _explainers[program](_array(V_T), index, None if V0 is None else _array(V0), steps)


def _array(values: np.ndarray | torch.Tensor) -> np.ndarray:
    """A valuation as numpy has it; a tensor may have gradients, or be on another device."""
    return values if isinstance(values, np.ndarray) else np.asarray(values.detach().cpu().float())
