"""Mutated .nsfrc files, with a checksum that fits: each is refused in a message, or a program that runs.

    python -m nsfrc.benchmarks.fuzz_artifacts --count 10000 --seed 0
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from nsfrc.compiler import artifact
from nsfrc.describe import account, as_text, of_artifact
from nsfrc.errors import NsfrcError
from nsfrc.program import compile as compile_program
from nsfrc.program import load

PROGRAMS = ("twopairs", "closeby", "clevr_hans3")
# Under `anchored`: levels, and what depends on itself.
ANCHORED = """
:- type(image, [img]). :- type(object, slots(3)). :- type(color, [red, blue]).
:- neural(in(object, image)). :- neural(color(object, color)). :- neural(near(object, object)).
:- target(kp(img)).
path(X, Y) :- near(X, Y).
path(X, Z) :- near(X, Y), path(Y, Z).
kp(X) :- in(O, X), in(P, X), color(O, C), color(P, C), path(O, P), likes(C).
likes(red).
"""
# Negations and counts, below and above what depends on itself.
INNER = r"""
:- type(image, [img]). :- type(object, slots(3)). :- type(color, [red, blue]). :- type(number, 0..3).
:- neural(in(object, image)). :- neural(color(object, color)). :- neural(near(object, object)).
:- target(kp(img)). :- target(many(img, 2)). :- pred(many(image, number)).
free(X, Y) :- near(X, Y), \+ (color(X, C), color(Y, C)).
path(X, Y) :- free(X, Y).
path(X, Z) :- free(X, Y), path(Y, Z).
many(X, N) :- aggregate_all(count, (in(O, X), \+ path(O, _)), N).
kp(X) :- aggregate_all(count, (in(O, X), color(O, red)), N), aggregate_all(count, (in(O, X), color(O, blue)), M),
    N >= M + 1, forall(in(O, X), near(O, _)), N mod 2 =:= 1.
"""
JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 10**9, 10**30, 0.5, -0.5, 1e300, "", "x", "X", "img", "obj1", "object", "==",
    "a" * 1000, "\0", "é", [], [[]], {}, [0], ["x"], {"var": "X"}, {"var": 1}, {"op": "+", "args": ["1", "2"]},
    ["kp", "img"], {"name": "x"},
)
DTYPES = (np.float16, np.float32, np.float64, np.int8, np.uint8, np.int64, np.uint16, np.bool_)

Tensors = dict[str, np.ndarray]


def outcomes(count: int, seed: int) -> Counter[str]:
    """How many mutated files were refused and how many used; whatever else happens is raised."""
    rng = random.Random(seed)
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        programs = [*map(compile_program, PROGRAMS), compile_program(source=ANCHORED),
                    compile_program(source=INNER, name="inner")]
        originals = [_contents(program.save(Path(scratch) / f"{program.name}.nsfrc")) for program in programs]
        path = Path(scratch) / "mutated.nsfrc"
        for _ in range(count):
            text, tensors = rng.choice(originals)
            header, tensors = json.loads(text), dict(tensors)
            for _ in range(rng.choice((1, 1, 1, 2, 5))):
                _mutate(header, tensors, rng)
            path.write_bytes(artifact._pack(header, {name: np.ascontiguousarray(t) for name, t in tensors.items()}))
            found[_use(path)] += 1
    return found


def _use(path: Path) -> str:
    try:
        program = load(path)
    except NsfrcError:
        return "refused"
    as_text(account(of_artifact(program, str(path))))
    if program.anchored:
        program.level_plan(declared_start=False, targets_only=False)
    else:
        program.unmerged_plan()
    return "used"


def _contents(path: Path) -> tuple[str, Tensors]:
    with safe_open(path, framework="numpy") as file:
        return file.metadata()["nsfrc"], {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def _mutate(header: dict[str, Any], tensors: Tensors, rng: random.Random) -> None:
    if rng.random() < 0.6:
        _mutate_header(header, rng)
    elif tensors:
        name = rng.choice(sorted(tensors))
        tensors[name] = _mutated_table(tensors[name], rng)


def _mutate_header(header: dict[str, Any], rng: random.Random) -> None:
    """Replace, drop or repeat a value somewhere in the header, but for the format's number."""
    places = [place for place in _places(header) if place[1] != "format"]
    if not places:
        return
    parent, key = rng.choice(places)
    kind = rng.random()
    if kind < 0.7:
        parent[key] = copy.deepcopy(rng.choice(JUNK))
    elif kind < 0.85:
        del parent[key]
    elif isinstance(parent, list):
        parent.append(parent[key])


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in (list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()):
        yield value, key
        yield from _places(value[key])


def _mutated_table(table: np.ndarray, rng: random.Random) -> np.ndarray:
    kind = rng.random()
    if kind < 0.2:
        with np.errstate(invalid="ignore"):
            return table.astype(rng.choice(DTYPES))
    if kind < 0.3:
        return table[: rng.randrange(len(table) + 1)] if table.ndim else table[None]
    if kind < 0.4:
        return table.reshape(-1) if rng.random() < 0.5 else table[None]
    changed = table.copy().reshape(-1)
    if changed.size:
        largest = np.iinfo(changed.dtype).max if changed.dtype.kind in "iu" else 1e30
        changed[rng.randrange(changed.size)] = rng.choice((0, 1, 2, largest))
    return changed.reshape(table.shape)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    found = outcomes(options.count, options.seed)
    print(f"{options.count} mutated files in {time.perf_counter() - start:.1f} s: {dict(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
