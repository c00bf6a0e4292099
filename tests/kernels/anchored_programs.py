"""Programs under `anchored` that the kernels are tried on: shipped ones without their directive, and small ones."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import nsfrc
from nsfrc.program import Program
from tests.kernels.counted_programs import PROGRAMS as COUNTED
from tests.kernels.counted_programs import counted

ROOT = Path(nsfrc.__file__).parents[1] / "programs"

BEGINNING = """
:- type(image, [img]).
:- type(object, slots(4)).
:- type(color, [red, blue, green]).
:- neural(in(object, image)).
:- neural(near(object, object)).
:- neural(color(object, color)).
"""
SMALL = {
    # Recursion below two plain levels; a target that is a member of the recursion, and one above it.
    "path": BEGINNING + """
        :- target(kp(img)). :- target(path(obj1, obj3)).
        path(X, Y) :- near(X, Y).
        path(X, Z) :- near(X, Y), path(Y, Z).
        loop(X) :- path(X, Y), near(Y, X).
        kp(I) :- in(X, I), in(Y, I), loop(X), path(X, Y).
    """,
    # Two recursive components, one above the other, of different sizes.
    "two paths": BEGINNING + """
        :- target(kp(img)).
        path(X, Y) :- near(X, Y).
        path(X, Z) :- near(X, Y), path(Y, Z).
        red(X) :- color(X, red).
        red(X) :- path(X, Y), red(Y).
        kp(I) :- in(X, I), red(X).
    """,
    # Several clauses for a head, a fact that is derived as well, rows that count several times, a body that is true.
    "mixed": BEGINNING + """
        :- target(kp(img)). :- target(good(red)).
        likes(red, blue). likes(blue, green).
        good(blue).
        good(C) :- color(O, C), likes(C, _).
        kp(X) :- in(O, X), in(P, X), in(Q, X), color(O, red), color(P, red), color(Q, C), good(C).
        kp(X) :- in(O, X), near(O, P), color(P, C), likes(C, D), color(O, D).
        kp(X) :- in(O, X), sure.
        sure :- true.
    """,
    # A chain of single reasons.
    "chain": BEGINNING + """
        :- target(third(obj1)).
        first(X) :- color(X, red).
        second(X) :- first(X).
        third(X) :- second(X).
    """,
}


@cache
def anchored(name: str, objects: int | None = None) -> Program:
    """A shipped program under `anchored`, or one of the small ones, those with negations and counts included."""
    if name in COUNTED:
        return counted(name)
    if name in SMALL:
        return nsfrc.compile(source=SMALL[name], name=name)
    with tempfile.TemporaryDirectory() as folder:
        for path in (ROOT / ("clevr" if name.startswith("clevr") else "kandinsky")).glob("*.pl"):
            (Path(folder) / path.name).write_text(path.read_text().replace(":- semantics(paper).\n", ""))
        program = nsfrc.compile(Path(folder) / f"{name}.pl", slots={"object": objects} if objects else None)
    assert program.anchored
    return program
