"""Why a target has its value: the clause and substitution that contributed most, down to what perception said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from nsfrc import ir
from nsfrc.errors import NsfrcError
from nsfrc.grounded import NOTHING
from nsfrc.herbrand import FALSE, TRUE

if TYPE_CHECKING:
    import torch

    from nsfrc.program import Program

# Values count as no less than this when substitutions are compared: where nothing holds, the substitution that
# lacks the fewest atoms is the nearest. It changes nothing where the greatest product is above it.
LEAST = 0.01
HOLDS = 0.5
MAX_NODES = 5000


@dataclass(frozen=True)
class Reason:
    """A ground atom with its value, and the atoms it was derived from.

    clause: which clause of the program derived it, or None for an atom that perception or a fact decides.
    objects: the objects that the atom names.
    """

    atom: str
    value: float
    clause: int | None = None
    body: tuple[Reason, ...] = ()
    objects: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Rows:
    """The substitutions of all clauses for one head: factors [width, rows], where G stands for a constant 1."""

    clause: np.ndarray
    factors: np.ndarray


class Explainer:
    """Explains the valuations of one program; what does not depend on a valuation is prepared once."""

    def __init__(self, program: Program) -> None:
        # Not the program itself: an explainer is kept for as long as its program is there.
        self.ground, self.steps, self.atoms = program.ground, program.steps, program.atoms
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
        return _Walk(self, shown, values, self.steps if steps is None else steps).reason(target, ())

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

    @cached_property
    def _arguments(self) -> dict[ir.PredicateKey, np.ndarray]:
        herbrand = self.ground.herbrand
        return {p.key: herbrand.arguments(p.key) for p in herbrand.predicates}

    def objects(self, atom: int) -> tuple[str, ...]:
        """The object constants among the arguments of an atom."""
        if atom not in self._objects:
            self._objects[atom] = tuple(self._find_objects(atom))
        return self._objects[atom]

    def _find_objects(self, atom: int) -> Iterator[str]:
        if atom in (FALSE, TRUE):
            return
        herbrand = self.ground.herbrand
        predicate = next(p for p in herbrand.predicates if atom < herbrand.offsets[p.key][1])
        places = self._arguments[predicate.key][atom - herbrand.offsets[predicate.key][0]]
        for name, place in zip(predicate.types, places, strict=True):
            datatype = herbrand.type_by_name[name]
            if datatype.role == ir.OBJECT:
                yield ir.quoted(datatype.constants[place])


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
        name, value, objects = self.explainer.atoms[atom], float(self.shown[atom]), self.explainer.objects(atom)
        rows = self.explainer.rows(atom)
        # Nothing is derived through more steps than were taken.
        best = None if rows is None or len(path) >= self.steps or self.left < 0 else self._best(rows, path)
        if rows is None or best is None:
            return Reason(name, value, objects=objects)
        G = self.explainer.ground.G
        below = [i for i in rows.factors[:, best].tolist() if i != G]
        body = tuple(self.reason(i, (*path, atom)) for i in below)
        return Reason(name, value, int(rows.clause[best]), body, objects)

    def _best(self, rows: _Rows, path: tuple[int, ...]) -> int | None:
        """The substitution with the greatest product, of equal ones the first; None if all go round in circles."""
        products = np.multiply.reduce(self.values[rows.factors], axis=0)
        best = int(products.argmax())
        if not path or set(path).isdisjoint(rows.factors[:, best].tolist()):
            return best
        products[np.isin(rows.factors, path).any(axis=0)] = -1.0
        best = int(products.argmax())
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


def objects_of(reason: Reason) -> list[str]:
    """The objects that a reason names, in order of appearance."""
    found = dict.fromkeys(reason.objects)
    for part in reason.body:
        found.update(dict.fromkeys(objects_of(part)))
    return list(found)


def as_text(reason: Reason, depth: int = 3) -> str:
    """A line for each derived atom down to `depth`, indented below the one it explains; an atom is explained once.

    kp(img) 0.98 because in(obj1,img) 1.00, in(obj2,img) 1.00, same_shape_pair(obj1,obj2) 0.99
      same_shape_pair(obj1,obj2) 0.99 because shape(obj1,circle) 1.00, shape(obj2,circle) 0.99
    """
    return "\n".join(_lines(reason, depth, 0, set()))


def _lines(reason: Reason, depth: int, level: int, said: set[str]) -> Iterator[str]:
    said.add(reason.atom)
    yield "  " * level + _sentence(reason, depth > 0)
    if depth > 1:
        for part in reason.body:
            if part.body and part.atom not in said:
                yield from _lines(part, depth - 1, level + 1, said)


def _sentence(reason: Reason, with_body: bool) -> str:
    """What an atom rests on if it holds, else what it lacks."""
    text = _valued(reason)
    if not reason.body or not with_body:
        return text
    if reason.value >= HOLDS:
        return f"{text} because {', '.join(map(_valued, reason.body))}"
    lacking = [part for part in reason.body if part.value < HOLDS]
    there = [part for part in reason.body if part.value >= HOLDS]
    if not lacking:
        return f"{text} from {', '.join(map(_valued, there))}"
    return f"{text} for want of {', '.join(map(_valued, lacking))}" + (
        f"; given {', '.join(map(_valued, there))}" if there else ""
    )


def _valued(reason: Reason) -> str:
    return f"{reason.atom} {reason.value:.2f}"
