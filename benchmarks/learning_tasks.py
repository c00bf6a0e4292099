"""What `benchmarks/learning.py` learns: examples with labels, the program that declares them, and the true rule.

All Kandinsky tasks have one program: the same vocabulary, of which at least five entries matter to none of them, and
the same limit of six variables. Examples for tests come from a seed that nothing was learnt from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

from nsfrc.benchmarks.semantics import as_semantics
from nsfrc.compiler import ir
from nsfrc.data import kandinsky, patterns
from nsfrc.data.clevr import making
from nsfrc.data.clevr.scenes import DIMENSIONS, truth
from nsfrc.data.figures import Figure, Shape
from nsfrc.learning.evidence import Evidence, FromObjects, FromWorlds
from nsfrc.learning.results import Learnt
from nsfrc.program import Program, compile

SEEDS = (0, 1, 2, 3, 4)
TEST_SEED, TESTED, WORLDS = 99_991, 2000, 10_000
SLOTS = 9
VOCABULARY = """:- include('kandinsky.pl').
:- perception(yolo).
:- type(object, slots({slots})).
:- neural(closeby(object, object)).
:- neural(online(object, object, object, object, object)).
:- number(x(object)).
:- number(y(object)).
:- number(width(object)).
:- number(height(object)).
:- number(area(object)).
"""
KANDINSKY = VOCABULARY.format(slots=SLOTS) + ":- learn(kp(image)).\n:- vars(object, 6).\n"
CLEVR = """:- include('clevr.pl').
:- neural(front(object, object)).
:- neural(leftside(object)).
:- neural(rightside(object)).
:- learn([{targets}]).
:- vars(object, 4).
"""
GRAPH = """:- include('kandinsky.pl').
:- type(object, slots(6)).
:- neural(arrow(object, object)).
"""

Rule = Callable[[Sequence[Shape]], bool]


@dataclass(frozen=True)
class Examples:
    """Evidence with labels: booleans, or numbers of classes."""

    evidence: Evidence
    labels: np.ndarray


def _seen(figures: Sequence[Figure], labels: Sequence[bool], slots: int = SLOTS) -> Examples:
    objects = torch.from_numpy(np.stack([kandinsky.truth(one, slots) for one in figures]))
    names = [str(i) for i in range(len(figures))]
    return Examples(FromObjects(objects, kandinsky.DIMENSIONS, names), np.array(labels, dtype=float))


def figures(pattern: str, seed: int, count: int) -> tuple[list[Figure], list[bool]]:
    made = [kandinsky.figure(pattern, seed, i) for i in range(count)]
    return [one.figure for one in made], [bool(one.label) for one in made]


def pattern(name: str, seed: int, count: int) -> Examples:
    return _seen(*figures(name, seed, count))


def mixed(name: str, seed: int, count: int) -> Examples:
    """With negatives drawn at random, none of them a near miss."""
    chosen, made, labels = patterns.PATTERNS[name], [], []
    for i in range(count):
        rng = np.random.default_rng([seed, 7, i])
        shapes = chosen.positive(rng)
        while i % 2:
            placed = chosen.mixed(shapes, rng)
            if placed is not None and chosen.holds(placed) is False:
                shapes = placed
                break
        made.append(Figure(tuple(shapes[j] for j in rng.permutation(len(shapes))), chosen.style))
        labels.append(i % 2 == 0)
    return _seen(made, labels)


def flipped(examples: Examples, share: float, seed: int) -> Examples:
    """With exactly this share of the labels wrong."""
    labels = examples.labels.copy()
    some = np.random.default_rng([seed, 8]).permutation(len(labels))[: round(share * len(labels))]
    labels[some] = 1 - labels[some]
    return Examples(examples.evidence, labels)


# Rules that are no pattern of the paper: as Prolog, and in plain Python for the labels.
RULES: dict[str, tuple[str, Rule]] = {
    "two clauses": (
        "kp(X) :- in(A, X), color(A, red), shape(A, triangle).\n"
        "kp(X) :- in(A, X), in(B, X), color(A, blue), shape(A, square), color(B, blue), shape(B, square).\n",
        lambda objects: any((o.color, o.shape) == ("red", "triangle") for o in objects)
        or sum((o.color, o.shape) == ("blue", "square") for o in objects) >= 2),
    "a negation": (
        "kp(X) :- in(A, X), color(A, red), shape(A, triangle), \\+ (in(P, X), color(P, yellow), shape(P, circle)).\n",
        lambda objects: any((o.color, o.shape) == ("red", "triangle") for o in objects)
        and not any((o.color, o.shape) == ("yellow", "circle") for o in objects)),
    "more red than blue": (
        "kp(X) :- aggregate_all(count, (in(P, X), color(P, red)), N), "
        "aggregate_all(count, (in(P, X), color(P, blue)), M), N > M.\n",
        lambda objects: sum(o.color == "red" for o in objects) > sum(o.color == "blue" for o in objects)),
    "a threshold": (
        "kp(X) :- in(A, X), color(A, red), area(A) > 0.02.\n",
        lambda objects: any(o.color == "red" and _area(o) > 0.02 for o in objects)),
}


def _area(shape: Shape) -> float:
    x1, y1, x2, y2 = shape.box
    return (x2 - x1) * (y2 - y1)


def ruled(name: str, seed: int, count: int) -> Examples:
    """Figures of three to eight objects anywhere, half of them with the rule."""
    holds = RULES[name][1]
    kinds: dict[bool, list[Figure]] = {True: [], False: []}
    index = 0
    while min(map(len, kinds.values())) < count // 2:
        one = kandinsky.figure(kandinsky.FREE, seed, index).figure
        index += 1
        near = name == "a threshold" and any(abs(_area(o) - 0.02) < 1e-3 for o in one.shapes)
        if 3 <= len(one.shapes) <= 8 and not near:
            kinds[holds(one.shapes)].append(one)
    pairs = [one for both in zip(kinds[True][: count // 2], kinds[False][: count // 2], strict=True) for one in both]
    return _seen(pairs, [True, False] * (count // 2))


def graphs(seed: int, count: int) -> Examples:
    """Objects with arrows between them; true where arrows lead from a red one to a blue one, in any number of steps."""
    rng = np.random.default_rng([seed, 9])
    kept: dict[bool, list[dict[str, float]]] = {True: [], False: []}
    while min(map(len, kept.values())) < count // 2:
        arrows = (rng.random((6, 6)) < 0.17) & ~np.eye(6, dtype=bool)
        colors, shapes = rng.integers(3, size=6), rng.integers(3, size=6)
        reached = arrows.copy()
        for _ in range(6):
            reached |= (reached.astype(int) @ arrows.astype(int)) > 0
        label = any(reached[i, j] and i != j and colors[i] == 0 and colors[j] == 2 for i in range(6) for j in range(6))
        world = {f"in(obj{i + 1},img)": 1.0 for i in range(6)}
        world |= {f"color(obj{i + 1},{('red', 'yellow', 'blue')[c]})": 1.0 for i, c in enumerate(colors)}
        world |= {f"shape(obj{i + 1},{('square', 'circle', 'triangle')[s]})": 1.0 for i, s in enumerate(shapes)}
        world |= {f"arrow(obj{i + 1},obj{j + 1})": 1.0 for i, j in np.argwhere(arrows)}
        kept[label].append(world)
    worlds = [one for both in zip(kept[True][: count // 2], kept[False][: count // 2], strict=True) for one in both]
    return Examples(FromWorlds(worlds, [str(i) for i in range(len(worlds))]), np.array([1.0, 0.0] * (count // 2)))


def scenes(name: str, split: str, seed: int, count: int) -> Examples:
    """Scenes of CLEVR-Hans by their true things; labels are numbers of classes."""
    chosen: list[int] = []
    index = 0
    while len(chosen) < count:
        if making.split_of(name, index) == split:
            chosen.append(index)
        index += 1
    objects = torch.from_numpy(np.stack([truth(making.scene(name, seed, i), 10) for i in chosen]))
    labels = np.array([making.label_of(name, i) for i in chosen], dtype=float)
    return Examples(FromObjects(objects, DIMENSIONS, [str(i) for i in chosen]), labels)


@lru_cache(maxsize=16)
def tested(kind: str, name: str) -> Examples:
    """Fresh examples of a task, made once."""
    if kind == "scenes":
        return scenes(name, "test", TEST_SEED, 210)
    return {"pattern": pattern, "ruled": ruled}[kind](name, TEST_SEED, TESTED) if kind != "graphs" \
        else graphs(TEST_SEED, TESTED)


def values(program: Program, evidence: Evidence) -> np.ndarray:
    """[B, targets]"""
    with torch.no_grad():
        found: np.ndarray = program.reasoner("cpu", outputs="targets", inputs="neural")(
            evidence.valuation(program).float()).numpy()
    return found


def accuracy(learnt: Learnt, examples: Examples) -> float:
    found = values(learnt.program, examples.evidence)
    if learnt.program.classes:
        return float((found.argmax(axis=1) == examples.labels).mean())
    return float(((found[:, 0] >= 0.5) == (examples.labels == 1)).mean())


def agreement(learnt: Learnt, truth_text: str, slots: int) -> float:
    """The share of random worlds in which the learnt program says what the true rule does; below 1 they differ."""
    text = learnt.text.replace(f"slots({SLOTS})", f"slots({slots})")
    mine = compile(source=text)
    theirs = compile(source=truth_text) if ":-" in truth_text else true_program(truth_text)
    right = total = 0
    for part in random_worlds(slots):
        one, other = values(mine, part)[:, 0] > 0.5, values(theirs, part)[:, 0] > 0.5
        right, total = right + int((one == other).sum()), total + len(one)
    return right / total


def true_program(pattern: str) -> Program:
    """The rule of a pattern, as the paper has it."""
    return as_semantics(pattern, ir.ANCHORED)


def random_worlds(slots: int) -> Iterator[FromObjects]:
    """Objects of any kind and size anywhere, near each other or on a line, in pieces."""
    rng = np.random.default_rng(slots)
    for _ in range(WORLDS // 500):
        objects = np.zeros((500, slots, len(kandinsky.DIMENSIONS)), dtype=np.float32)
        centre = rng.random((500, slots, 2)) * rng.choice([1.0, 0.4], (500, 1, 1))
        along = rng.random((500, slots, 1)) * (rng.random((500, 1, 2)) - 0.5) + 0.5
        centre = np.where(rng.random((500, 1, 1)) < 0.4, along, centre)
        size = rng.uniform(0.04, 0.27, (500, slots, 1)) / 2
        objects[:, :, 0:2], objects[:, :, 2:4] = centre - size, centre + size
        for first, several in ((4, rng.integers(3, size=(500, slots))), (7, rng.integers(3, size=(500, slots)))):
            np.put_along_axis(objects, first + several[:, :, None], 1.0, axis=2)
        even = rng.random(500) < 0.3  # as many of each colour, which chance seldom gives
        order = np.stack([rng.permutation(slots) % 3 for _ in range(500)])
        objects[even, :, 4:7] = np.eye(3, dtype=np.float32)[order[even]]
        objects[:, :, -1] = 1
        yield FromObjects(torch.from_numpy(objects), kandinsky.DIMENSIONS, [str(i) for i in range(500)])


def graph_agreement(learnt: Learnt) -> float:
    """The same for arrows, on worlds that were made for nothing else."""
    examples = graphs(TEST_SEED + 1, WORLDS // 5)
    return float(((values(learnt.program, examples.evidence)[:, 0] > 0.5) == (examples.labels == 1)).mean())
