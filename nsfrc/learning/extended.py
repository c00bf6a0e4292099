"""Literals that are built on others: numbers cut where labels change, negations, and counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np

from nsfrc.compiler import ir
from nsfrc.learning.relations import (
    CHAIN,
    COUNT,
    NEGATED,
    NUMBER,
    PLAIN,
    SHARED,
    Basis,
    Relation,
    distinct,
    plain,
    priced,
    with_pairs,
)
from nsfrc.learning.scoring import entropy

CUTS = 12  # thresholds that are tried of a number
JOINED = 3  # goals that a counted or negated object is described by
MOST_JOINED = 400  # descriptions of a counted object


def relations(basis: Basis, labels: Sequence[np.ndarray]) -> list[Relation]:
    """All literals of a program for its examples, without twins. labels: [B] for each target, NaN where not known."""
    found = distinct(basis.direct(), basis.seen.present)
    found = distinct([*found, *basis.shared(), *_numbers(basis, labels)], basis.seen.present)
    found += basis.chains(found)
    if basis.seen.program.anchored:
        found = [*found, *(_negated(one) for one in found if one.arity <= 2 and one.kind != NUMBER)]
        found += _nobody(basis, found)
        found += _counts(basis, found)
    return with_pairs(priced(distinct(found, basis.seen.present)), basis.seen.present)


def _negated(one: Relation) -> Relation:
    inner = f"({one.text})" if ", " in one.text and one.text.count("(") > 1 and one.kind == SHARED and not one.helpers \
        else one.text
    return replace(one, text=f"\\+ {inner}", values=~one.values, kind=NEGATED)


def _numbers(basis: Basis, labels: Sequence[np.ndarray]) -> Iterator[Relation]:
    names = [name for name in basis.seen.numbers if basis.usable((name, 1))]
    for i, name in enumerate(names):
        table, spoken = basis.seen.numbers[name], plain(ir.quoted(name))
        known = np.where(basis.seen.present, table, np.nan)
        for cut in cuts(known, labels):
            for op, values in ((">", table > cut), ("<", table < cut)):
                yield number_relation(name, op, cut, values)
        with np.errstate(invalid="ignore"):
            larger = table[:, :, None] > table[:, None, :]
            yield Relation(f"{spoken}({{0}}) > {spoken}({{1}})", larger.reshape(len(table), -1), 2, NUMBER,
                           f"compared {name}", ((name, 1),))
            for other in names[i + 1 :]:
                for one, two in ((name, other), (other, name)):
                    text = f"{plain(ir.quoted(one))}({{0}}) > {plain(ir.quoted(two))}({{0}})"
                    yield Relation(text, basis.seen.numbers[one] > basis.seen.numbers[two], 1, NUMBER,
                                   f"compared {name} {other}", ((one, 1), (two, 1)))


def number_relation(name: str, op: str, cut: float, values: np.ndarray, bits: float = 0.0) -> Relation:
    """`area({0}) > 0.04`"""
    return Relation(f"{plain(ir.quoted(name))}({{0}}) {op} {cut:g}", values, 1, NUMBER, f"{name} cut",
                    ((name, 1),), bits=bits, cut=(name, op, cut))


def cuts(known: np.ndarray, labels: Sequence[np.ndarray]) -> list[float]:
    """Where a number is cut: where its largest and smallest values tell the labels best, and evenly among all."""
    values = np.unique(known[np.isfinite(known)])
    if len(values) < 2:
        return []
    found: dict[float, None] = {}
    middle = (values[1:] + values[:-1]) / 2
    with np.errstate(all="ignore"):
        rows = np.isfinite(known).any(axis=1)
        ends = [np.nanmax(known[rows], axis=1), np.nanmin(known[rows], axis=1)] if rows.any() else []
    for label in labels:
        for end in ends:
            for cut in _best_cuts(end, label[rows]):
                found[cut] = None
    for share in np.linspace(0, 1, CUTS + 2)[1:-1]:
        found[rounded(float(middle[int(share * (len(middle) - 1))]), values)] = None
    return list(found)


def _best_cuts(values: np.ndarray, label: np.ndarray) -> list[float]:
    """The two thresholds of one number that save most bits."""
    there = np.isfinite(values) & np.isfinite(label)
    values, label = values[there], label[there]
    if len(np.unique(values)) < 2:
        return []
    order = np.argsort(values, kind="stable")
    values, label = values[order], label[order]
    below, positive = np.arange(1, len(values)), np.cumsum(label)[:-1]
    rest = entropy(positive, below) + entropy(label.sum() - positive, len(values) - below)
    rest[values[1:] == values[:-1]] = np.inf
    best = np.argsort(rest, kind="stable")[:2]
    return [rounded(float((values[i] + values[i + 1]) / 2), values) for i in best if np.isfinite(rest[i])]


def rounded(cut: float, values: np.ndarray) -> float:
    """The number with fewest digits that parts the values as `cut` does."""
    below, above = values[values <= cut], values[values > cut]
    low = float(below.max()) if len(below) else -np.inf
    high = float(above.min()) if len(above) else np.inf
    for digits in range(0, 12):
        short = round(cut, digits)
        if low < short < high and f"{short:g}" == repr(short).removesuffix(".0"):
            return short
    return cut


@dataclass(frozen=True)
class _Described:
    """An object of its own, described by some goals: which objects fit, [B, E]."""

    texts: tuple[str, ...]
    fits: np.ndarray
    uses: tuple[ir.PredicateKey, ...]
    groups: tuple[str, ...]


def _described(basis: Basis, found: Sequence[Relation], most: int) -> Iterator[_Described]:
    """Objects of the image by up to `most` properties of different groups."""
    there = basis.seen.present
    single = [one for one in found if one.arity == 1 and one.kind in (PLAIN, NUMBER) and not one.inner
              and (one.kind == PLAIN or one.cut is None)]
    yield _Described((), there, (), ())
    for size in range(1, most + 1):
        if size > 1 and len(single) ** size > MOST_JOINED * 20:
            return
        for some in combinations(single, size):
            if len({one.group for one in some}) == size:
                fits = there.copy()
                for one in some:
                    fits &= one.values
                if fits.any():
                    yield _Described(tuple(one.text for one in some), fits, sum((one.uses for one in some), ()),
                                     tuple(one.group for one in some))


def _goals(basis: Basis, who: _Described, name: str) -> str:
    goals = [f"in({name}, {{X}})"] * basis.seen.has_in + [text.replace("{0}", name) for text in who.texts]
    return ", ".join(goals)


def _nobody(basis: Basis, found: Sequence[Relation]) -> Iterator[Relation]:
    """No object such that …: of its own, or related to one of the clause. And all objects are …"""
    for who in _described(basis, found, JOINED):
        if goals := _goals(basis, who, "{P}"):
            text = f"\\+ ({goals})" if ", " in goals else f"\\+ {goals}"
            nobody = np.logical_not(who.fits.any(axis=1, keepdims=True))
            yield Relation(text, nobody, 0, COUNT, f"no {len(who.texts)}", who.uses, inner=True)
    if basis.seen.has_in:
        for one in found:
            if one.arity == 1 and one.kind == PLAIN:
                every = (one.values | ~basis.seen.present).all(axis=1)
                text = f"forall(in({{P}}, {{X}}), {one.text.replace('{0}', '{P}')})"
                yield Relation(text, every[:, None], 0, COUNT, "all", one.uses, inner=True)
    E = basis.E
    for two in (one for one in found if one.arity == 2 and one.kind in (PLAIN, SHARED, NUMBER)):
        square = two.values.reshape(-1, E, E) & ~np.eye(E, dtype=bool)
        ways = [("{0}", "{P}", square)]
        ways += [] if two.symmetric else [("{P}", "{0}", square.transpose(0, 2, 1))]
        for who in _described(basis, found, 1 if two.kind == PLAIN else 0):
            for first, second, related in ways:
                goals = ", ".join(filter(None, [_goals(basis, who, "{P}"), _placed(two.text, first, second)]))
                nobody = ~(related & who.fits[:, None, :]).any(axis=2)
                text = f"\\+ ({goals})" if ", " in goals else f"\\+ {goals}"
                yield Relation(text, nobody, 1, COUNT, f"no {two.group} {len(who.texts)}", two.uses + who.uses,
                               two.helpers, inner=True)


def _placed(text: str, first: str, second: str) -> str:
    return text.replace("{0}", "{first}").replace("{1}", second).replace("{first}", first)


def _counts(basis: Basis, found: Sequence[Relation]) -> Iterator[Relation]:
    """How many objects there are of a kind: at least, at most, exactly; and more of one kind than of another."""
    numbers: list[tuple[_Described, np.ndarray]] = []
    for who in _described(basis, found, JOINED):
        if not (goals := _goals(basis, who, "{P}")):
            continue
        number = who.fits.sum(axis=1)
        if len(who.texts) == 1:
            numbers.append((who, number))
        counted = f"aggregate_all(count, {_joined(goals)}, {{N}})"
        for size in np.unique(number).tolist():
            for op, holds in ((">=", number >= size), ("=:=", number == size), ("=<", number <= size)):
                if (op == ">=" and size < 2) or (size == 0 and op != ">="):
                    continue  # which a variable, or a negation, says more plainly
                yield Relation(f"{counted}, {{N}} {op} {size}", holds[:, None], 0, COUNT,
                               f"count {op} {len(who.texts)}", who.uses, inner=True)
    yield from _evenly(basis, numbers)
    for (one, n), (two, m) in combinations(numbers, 2):
        if one.groups == two.groups and one.groups[0] != CHAIN:
            for (a, left), (b, right) in (((one, n), (two, m)), ((two, m), (one, n))):
                yield _compared(basis, a, b, ">", left > right)
            yield _compared(basis, one, two, "=:=", n == m)


def _evenly(basis: Basis, numbers: Sequence[tuple[_Described, np.ndarray]]) -> Iterator[Relation]:
    """As many objects of each kind: three red, three yellow and three blue ones."""
    for group in dict.fromkeys(who.groups for who, _ in numbers):
        some = [(who, number) for who, number in numbers if who.groups == group]
        if not 3 <= len(some) <= 6:
            continue
        goals, even, letters = [], np.ones(basis.seen.examples, dtype=bool), iter("NMKLSTUVRQ")
        for (one, n), (two, m) in pairwise(some):
            a, b = next(letters), next(letters)
            first, second = _joined(_goals(basis, one, "{P}")), _joined(_goals(basis, two, "{P}"))
            goals += [f"aggregate_all(count, {first}, {{{a}}})", f"aggregate_all(count, {second}, {{{b}}})",
                      f"{{{a}}} =:= {{{b}}}"]
            even &= n == m
        yield Relation(", ".join(goals), even[:, None], 0, COUNT, "evenly", some[0][0].uses, inner=True)


def _compared(basis: Basis, one: _Described, two: _Described, op: str, holds: np.ndarray) -> Relation:
    first, second = _joined(_goals(basis, one, "{P}")), _joined(_goals(basis, two, "{Q}"))
    text = f"aggregate_all(count, {first}, {{N}}), aggregate_all(count, {second}, {{M}}), {{N}} {op} {{M}}"
    return Relation(text, holds[:, None], 0, COUNT, f"counts {op}", one.uses + two.uses, inner=True)


def _joined(goals: str) -> str:
    return f"({goals})" if ", " in goals else goals
