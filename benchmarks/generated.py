"""Generated programs of any number of clauses, as Prolog text: distinct, satisfiable, the same for the same seed.

A clause says something that is true of a random figure: two to four of its objects, a few of their colours and
shapes, and how some of them compare. So each of them can hold. The pairs are compared by derived predicates, as in the
shipped programs, whose clauses count too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import permutations

OBJECTS = 4
COLOURS = ("red", "yellow", "blue")
SHAPES = ("square", "circle", "triangle")

PAIRS = (
    "same_color_pair(X, Y) :- color(X, Z), color(Y, Z).",
    "same_shape_pair(X, Y) :- shape(X, Z), shape(Y, Z).",
    "diff_color_pair(X, Y) :- color(X, Z), color(Y, W), diff_color(Z, W).",
)
SYMMETRIC = "_pair"

HEADER = f"""\
% {{clauses}} clauses, generated from seed {{seed}}.

:- use_module(library(nsfr)).
:- semantics(paper).
:- include('kandinsky.pl').

:- type(object, slots({OBJECTS})).

:- pred(kp(image)).
:- pred(same_color_pair(object, object)).
:- pred(same_shape_pair(object, object)).
:- pred(diff_color_pair(object, object)).
:- pred(diff_color(color, color)).

:- target(kp(img)).

{{facts}}

"""

# (predicate, arguments); a number is an object of the clause, a name a constant.
Condition = tuple[str, tuple[int | str, ...]]
Body = frozenset[Condition]
Figure = list[tuple[str, str]]


def program_text(clauses: int, seed: int = 0) -> str:
    """A program with this many clauses, those of the pairs included (so at least one more than they are)."""
    if clauses <= len(PAIRS):
        raise ValueError(f"a generated program has more than {len(PAIRS)} clauses, not {clauses}")
    facts = "\n".join(f"diff_color({x}, {y})." for x, y in permutations(COLOURS, 2))
    bodies = distinct_bodies(clauses - len(PAIRS), random.Random(seed))
    return HEADER.format(clauses=clauses, seed=seed, facts=facts) + "\n".join([*PAIRS, *map(clause_text, bodies), ""])


def distinct_bodies(count: int, rng: random.Random) -> Iterator[Body]:
    """Bodies of which no two are equal up to the names of their variables."""
    seen: set[tuple[Condition, ...]] = set()
    while len(seen) < count:
        body = random_body(rng)
        name = canonical(body)
        if name not in seen:
            seen.add(name)
            yield body


def random_body(rng: random.Random) -> Body:
    """Three to five conditions that hold in a random figure; each of their objects is in at least one."""
    figure = [(rng.choice(COLOURS), rng.choice(SHAPES)) for _ in range(rng.randint(2, OBJECTS))]
    true = list(conditions(figure))
    while True:
        body = frozenset(rng.sample(true, min(rng.randint(3, 5), len(true))))
        if {place for _, args in body for place in args if isinstance(place, int)} == set(range(len(figure))):
            return body


def conditions(figure: Figure) -> Iterator[Condition]:
    """Everything that a clause may say of a figure."""
    for place, (colour, shape) in enumerate(figure):
        yield "color", (place, colour)
        yield "shape", (place, shape)
        for other, (other_colour, other_shape) in enumerate(figure[:place]):
            yield ("same_color_pair" if colour == other_colour else "diff_color_pair"), (other, place)
            if shape == other_shape:
                yield "same_shape_pair", (other, place)


def canonical(body: Body) -> tuple[Condition, ...]:
    """The same for bodies that differ in the names of their variables only, or in the order of a pair."""
    objects = sorted({place for _, args in body for place in args if isinstance(place, int)})
    return min(
        (tuple(sorted((_renamed(one, dict(zip(objects, order, strict=True))) for one in body), key=str))
         for order in permutations(range(len(objects)))),
        key=str,
    )


def _renamed(condition: Condition, names: dict[int, int]) -> Condition:
    predicate, args = condition
    renamed = [names[place] if isinstance(place, int) else place for place in args]
    return predicate, tuple(sorted(renamed) if predicate.endswith(SYMMETRIC) else renamed)  # type: ignore[type-var]


def clause_text(body: Body) -> str:
    """`kp(X) :- in(O1, X), ..., color(O1, red), ....`"""
    objects = sorted({place for _, args in body for place in args if isinstance(place, int)})
    goals = [f"in(O{place + 1}, X)" for place in objects]
    for predicate, args in sorted(body, key=str):
        goals.append(f"{predicate}({', '.join(f'O{a + 1}' if isinstance(a, int) else a for a in args)})")
    return f"kp(X) :- {', '.join(goals)}."
