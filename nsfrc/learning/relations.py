"""What literals can be made of: everything a program's declarations offer, as truth over the objects of each example.

A relation of arity a has a bit for every a objects, [B, E ** a]. Whatever a literal says, an attribute, a comparison of
numbers, a negation, a count, it ends as one of these, so that the search knows of nothing else:

    color({0}, red)                                                      arity 1
    same_color({0}, {1})                                                 arity 2, with the helper that defines it
    area({0}) > 0.04                                                     arity 1
    \\+ (in({P}, {X}), closeby({0}, {P}))                                 arity 1
    aggregate_all(count, (in({P}, {X}), color({P}, red)), {N}), {N} >= 3     arity 0: it speaks of the whole image
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product

import numpy as np

from nsfrc import vocabulary
from nsfrc.compiler import ir
from nsfrc.learning.seen import IN, Seen

MOST_ARITY = 5
MOST_PAIRED = 40  # properties of an object that are tried in pairs
MOST_INSTANCES = 64  # constants of attributes that one predicate is tried with

PLAIN, NEGATED, SHARED, NUMBER, COUNT, CHAIN = "plain", "negated", "shared", "number", "count", "chain"
# How many bits rarer people write a kind of literal than the first.
RARER = {PLAIN: 0.0, SHARED: 0.5, NUMBER: 1.0, NEGATED: 1.0, COUNT: 2.0, CHAIN: 3.0}


@dataclass(frozen=True)
class Helper:
    """A predicate that the result defines: its name and the text of its clauses."""

    name: str
    text: str


@dataclass(frozen=True, eq=False)
class Relation:
    """See above. text: {0} … stand for objects, {X} for the image, other names for variables of its own.

    group: those that it is one choice among; uses: the predicates it is made of.
    """

    text: str
    values: np.ndarray
    arity: int
    kind: str
    group: str
    uses: tuple[ir.PredicateKey, ...] = ()
    helpers: tuple[Helper, ...] = ()
    symmetric: bool = False
    bits: float = 0.0
    cut: tuple[str, str, float] | None = None  # number, operator, threshold
    inner: bool = False  # it has objects of its own, as a negation or count has
    parts: tuple[int, ...] = ()  # of a pair of literals that is tried as one

    def goals(self, objects: list[str], image: str, own: dict[str, str]) -> str:
        """Its text with names filled in; own: names for its own variables."""
        return self.text.format(*objects, X=image, **own)


def plain(text: str) -> str:
    """Text for a template: braces of names that need quotes are no places."""
    return text.replace("{", "{{").replace("}", "}}")


@dataclass(eq=False)
class Basis:
    """The relations that predicates and numbers give by themselves; `extended` builds the others on them."""

    seen: Seen
    learning: ir.Learning
    helpers: dict[str, Helper] = field(default_factory=dict)

    @cached_property
    def E(self) -> int:
        return self.seen.present.shape[1]

    @cached_property
    def allowed(self) -> dict[ir.PredicateKey, ir.Allowed]:
        return {one.key: one for one in self.learning.allowed}

    def usable(self, key: ir.PredicateKey) -> bool:
        return not self.allowed or key in self.allowed

    @cached_property
    def predicates(self) -> list[ir.Predicate]:
        """What literals may name, in the order of the program."""
        program = self.seen.program.source
        learnt = {target.key for target in self.learning.targets}
        defined = {fact.key for fact in program.facts} | {clause.head.key for clause in program.clauses}
        return [
            p for p in program.predicates
            if p.role in (ir.NEURAL, ir.BACKGROUND, ir.DERIVED) and ir.INNER not in p.name and p.key not in learnt
            and (p.role == ir.NEURAL or p.key in defined) and not (self.seen.has_in and p.key == (IN, 2))
            and self.usable(p.key)
        ]

    def roles(self, predicate: ir.Predicate) -> list[str]:
        return [self.seen.program.source.type(name).role for name in predicate.types]

    @cached_property
    def attributes(self) -> list[ir.Predicate]:
        """color(object, color) and the like: one object and one attribute."""
        return [p for p in self.predicates if self.roles(p) == [ir.OBJECT, ir.ATTRIBUTE]]

    def atoms(self, predicate: ir.Predicate) -> np.ndarray:
        """[B, ...]: which atoms hold, over the constants of each argument."""
        index = self.seen.program.ground.herbrand.tables[predicate.key]
        return np.asarray(self.seen.holds[:, index] & (index > 0))

    def direct(self) -> Iterator[Relation]:
        """Predicates with variables for objects and constants for attributes."""
        for predicate in self.predicates:
            roles = self.roles(predicate)
            arity = roles.count(ir.OBJECT)
            types = [self.seen.program.source.type(name) for name in predicate.types]
            chosen = [range(len(t.constants)) for t, role in zip(types, roles, strict=True) if role == ir.ATTRIBUTE]
            instances = int(np.prod([len(one) for one in chosen], dtype=np.int64))
            if arity > MOST_ARITY or instances > MOST_INSTANCES or (not arity and predicate.role == ir.BACKGROUND):
                continue
            truth = self.atoms(predicate)
            for constants in product(*chosen):
                yield self._instance(predicate, roles, types, constants, truth, arity)

    def _instance(self, predicate: ir.Predicate, roles: list[str], types: list[ir.DataType],
                  constants: tuple[int, ...], truth: np.ndarray, arity: int) -> Relation:
        fixed, place = iter(constants), 0
        args, cell = [], []
        for role, datatype in zip(roles, types, strict=True):
            if role == ir.OBJECT:
                args.append(f"{{{place}}}")
                cell.append(slice(None))
                place += 1
            elif role == ir.INPUT:
                args.append("{X}")
                cell.append(slice(0, 1))
            else:
                i = next(fixed)
                args.append(plain(ir.quoted(datatype.constants[i])))
                cell.append(slice(i, i + 1))
        values = truth[(slice(None), *cell)].reshape(self.seen.examples, -1)
        text = plain(ir.quoted(predicate.name)) + (f"({', '.join(args)})" if args else "")
        return Relation(text, values, arity, PLAIN, str(predicate), (predicate.key,),
                        symmetric=arity > 1 and self._symmetric(predicate, values, arity))

    def _symmetric(self, predicate: ir.Predicate, values: np.ndarray, arity: int) -> bool:
        known = vocabulary.find(predicate.name, len(predicate.types))
        if (known is not None and known.symmetric) or (predicate.key in self.allowed
                                                       and self.allowed[predicate.key].symmetric):
            return True
        return arity == 2 and mirrored(values, self.E)

    def shared(self) -> Iterator[Relation]:
        """Attributes as variables: same_color(A, B), and what the program's facts say of attributes."""
        for i, p in enumerate(self.attributes):
            for q in self.attributes[i:]:
                if p.types[1] == q.types[1]:
                    yield from self._same(p, q)
        facts = [p for p in self.predicates if p.types and set(self.roles(p)) == {ir.ATTRIBUTE}]
        for fact in facts:
            holds = self.atoms(fact)[0] if self.seen.examples else self.atoms(fact)
            for p in self.attributes:
                if fact.types == (p.types[1],):
                    values = (self.atoms(p) & holds).any(axis=2)
                    text = f"{_call(p, '{0}', '{Z}')}, {_call(fact, '{Z}')}"
                    yield Relation(text, values, 1, SHARED, f"{p} {fact}", (p.key, fact.key))
                for q in self.attributes:
                    if fact.types == (p.types[1], q.types[1]):
                        values = np.einsum("bic,cd,bjd->bij", self.atoms(p), holds, self.atoms(q)) > 0
                        flat = values.reshape(self.seen.examples, -1)
                        text = f"{_call(p, '{0}', '{Z}')}, {_call(q, '{1}', '{W}')}, {_call(fact, '{Z}', '{W}')}"
                        yield Relation(text, flat, 2, SHARED, f"{p} {q} {fact}", (p.key, q.key, fact.key),
                                       symmetric=mirrored(flat, self.E))

    def _same(self, p: ir.Predicate, q: ir.Predicate) -> Iterator[Relation]:
        one, other = self.atoms(p), self.atoms(q)
        name = p.name if p.key == q.key else f"{p.name}_{q.name}"
        same = np.einsum("bic,bjc->bij", one, other) > 0
        differ = np.einsum("bi,bj->bij", one.sum(2), other.sum(2)) > np.einsum("bic,bjc->bij", one.astype(int), other)
        for word, values, test in (("same", same, ""), ("different", differ, ", Z \\== W")):
            if test and not self.seen.program.anchored:
                continue
            second = "Z" if word == "same" else "W"
            helper = self.helper(f"{word}_{name}", "{name}(A, B) :- " + plain(
                f"{_call(p, 'A', 'Z')}, {_call(q, 'B', second)}{test}."))
            flat = values.reshape(self.seen.examples, -1)
            yield Relation(f"{plain(ir.quoted(helper.name))}({{0}}, {{1}})", flat, 2, SHARED, f"same {p.types[1]}",
                           (p.key, q.key), (helper,), symmetric=mirrored(flat, self.E))

    def helper(self, name: str, text: str) -> Helper:
        """A helper with a name that nothing else has; text: with {name} in it."""
        taken = {key[0] for key in self.seen.program.ground.herbrand.offsets} | {t.name for t in self.learning.targets}
        free = name
        for number in range(2, 1000):
            made = Helper(free, text.format(name=ir.quoted(free)))
            if free not in taken and self.helpers.setdefault(free, made) == made:
                return made
            free = f"{name}_{number}"
        raise AssertionError(name)

    def chains(self, relations: Iterable[Relation]) -> Iterator[Relation]:
        """What a relation between two objects reaches in any number of steps: the only recursion that is tried."""
        for one in relations:
            if one.arity != 2 or one.kind != PLAIN:
                continue
            step = one.values.reshape(-1, self.E, self.E)
            reached = step.copy()
            for _ in range(max(1, int(np.ceil(np.log2(max(self.E, 2)))))):
                reached = reached | (np.einsum("bij,bjk->bik", reached.astype(np.uint8), reached.astype(np.uint8)) > 0)
            apart = ~np.eye(self.E, dtype=bool)
            if (reached[:, apart] == step[:, apart]).all():
                continue
            name = one.text.partition("(")[0].strip("'")
            first, again = one.text.format("A", "B", X="X"), one.text.format("A", "C", X="X")
            helper = self.helper(f"{name}_chain", "{name}(A, B) :- " + plain(first) + ".\n{name}(A, B) :- "
                                 + plain(again) + ", {name}(C, B).")
            flat = reached.reshape(len(step), -1)
            yield Relation(f"{plain(ir.quoted(helper.name))}({{0}}, {{1}})", flat, 2, CHAIN, "chain", one.uses,
                           (helper,), symmetric=mirrored(flat, self.E))


def _call(predicate: ir.Predicate, *args: str) -> str:
    return f"{plain(ir.quoted(predicate.name))}({', '.join(args)})"


def mirrored(values: np.ndarray, E: int) -> bool:
    """Whether a relation of two objects [B, E·E] holds in both orders alike; an object with itself does not count."""
    square = values.reshape(-1, E, E)
    apart = ~np.eye(E, dtype=bool)
    return bool((square == square.transpose(0, 2, 1))[:, apart].all())


def distinct(relations: Iterable[Relation], present: np.ndarray) -> list[Relation]:
    """Those that tell examples or objects apart, and of equal ones the first."""
    found: dict[tuple[int, bytes], Relation] = {}
    for one in relations:
        seen = one.values[valid(present, one.arity)]
        if not seen.size or seen.all() or not seen.any():
            continue
        digest = hashlib.blake2b(np.packbits(seen).tobytes(), digest_size=16).digest()
        found.setdefault((one.arity, digest), one)
    return list(found.values())


def valid(present: np.ndarray, arity: int) -> np.ndarray:
    """[B, E ** arity]: where all objects are there and different."""
    B, E = present.shape
    there = np.ones((B, *(1,) * arity), dtype=bool)
    for i in range(arity):
        there = there & present.reshape(B, *(E if j == i else 1 for j in range(arity)))
        for j in range(i):
            apart = ~np.eye(E, dtype=bool)
            there = there & apart.reshape([1, *(E if axis in (i, j) else 1 for axis in range(arity))])
    return there.reshape(B, -1)


def priced(relations: list[Relation]) -> list[Relation]:
    """With what each costs in bits: the choice of its kind, of a group in that kind, then of one in the group.

    As probabilities all add up to 1. What may be said of numbers, say, makes other literals no dearer but by its kind.
    """
    sizes = Counter((one.kind, one.group) for one in relations)
    groups = Counter(kind for kind, _ in sizes)
    whole = float(np.log2(sum(2.0 ** -RARER[kind] for kind in groups)))
    return [replace(one, bits=float(whole + RARER[one.kind] + np.log2(groups[one.kind] * sizes[one.kind, one.group])))
            for one in relations]


def with_pairs(relations: list[Relation], present: np.ndarray) -> list[Relation]:
    """And pairs of literals about the same objects, tried in one step: red triangles, pairs alike in colour and shape.

    One of the two alone often tells nothing, so that a search that adds literals one by one would pass by it.
    """
    found = list(relations)
    for arity in (1, 2):
        single = [(i, one) for i, one in enumerate(relations)
                  if one.arity == arity and one.kind in (PLAIN, SHARED) and not one.inner]
        if len(single) > MOST_PAIRED:
            continue
        there = valid(present, arity)
        for (i, one), (j, two) in combinations(single, 2):
            both = one.values & two.values
            seen = both[there]
            if (one.group == two.group and arity == 1) or not seen.any():
                continue
            if not (both == one.values)[there].all() and not (both == two.values)[there].all():
                bits = one.bits + two.bits - 1  # in either order
                found.append(Relation(f"{one.text}, {two.text}", both, arity, PLAIN, "pairs", one.uses + two.uses,
                                      one.helpers + two.helpers, one.symmetric and two.symmetric, bits, parts=(i, j)))
    return found
