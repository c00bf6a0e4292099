"""Programs that tests share: the shipped ones, and small ones that each show a corner of the language."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from nsfrc.compiler import ir
from nsfrc.compiler.check import check
from nsfrc.compiler.ground import ground
from nsfrc.compiler.grounded import GroundProgram
from nsfrc.compiler.parse import parse
from nsfrc.compiler.stages import Compilation, compile_file
from nsfrc.errors import Diagnostics, Source
from tests.random_programs import random_program

SHIPPED = (
    "twopairs", "threepairs", "closeby", "red_triangle", "online_pair", "nine_circles", "clevr_hans3", "clevr_hans7",
)

VOCABULARY = """
:- type(image, [img]).
:- type(object, slots(3)).
:- type(color, [red, blue]).
:- type(size, [1, 2, 3]).
:- neural(in(object, image)).
:- neural(color(object, color)).
:- neural(size(object, size)).
:- neural(near(object, object)).  :- semantics(paper).
"""

SMALL = {
    "one body variable": ":- target(kp(img)). kp(X) :- in(O, X), color(O, red).",
    "two datatypes free": ":- target(kp(img)). kp(X) :- in(O, X), in(P, X), color(O, C), size(P, N), size(O, M).",
    "constants in heads": """
        :- target(kp(img, red)).
        kp(img, red) :- color(O, red).
        kp(X, blue) :- in(O, X), color(O, blue).
        kp(X, C) :- in(obj2, X), color(obj2, C).
    """,
    "head and body may share a constant": """
        :- target(first(obj1)).
        first(X) :- near(X, Y), near(Y, Z).
    """,
    "constants in bodies": ":- target(p(obj1)). p(X) :- near(X, obj2), near(obj3, Y), color(Y, red).",
    "filters": """
        :- target(kp(img)).
        kp(X) :- in(O, X), size(O, N), size(P, M), N + 1 < M, P \\= obj1.
        small(O) :- size(O, N), N mod 2 =:= 1, N =< 2.
        :- target(small(obj2)).
    """,
    "no arguments": """
        :- target(alarm).
        alarm :- warm, near(X, Y).
        warm :- color(X, red).
        warm :- true.
    """,
    "background and absent facts": """
        :- target(kp(img)).
        likes(red, 1). likes(blue, 3). likes(red, 2).
        kp(X) :- in(O, X), color(O, C), size(O, N), likes(C, N).
        other(C) :- likes(C, N), size(O, N).
        :- target(other(red)).
    """,
    "constants of two types that share a name": """
        :- type(row, [1, 2]).
        :- type(column, [1, 2, 3]).
        :- neural(row(object, row)).
        :- neural(column(object, column)).
        :- target(kp(img)).
        at(O, R, C) :- row(O, R), column(O, C).
        corner(1, 1).
        kp(X) :- in(O, X), at(O, R, C), R =:= C, corner(R, C).
        kp(X) :- in(O, X), at(O, 2, 2), at(P, R, 3).
    """,
    "head variables that the body leaves free": """
        :- pred(any(object, color)).
        :- pred(less(size, size)).
        :- target([any(obj1, red), kp(img)]).
        any(_X, C) :- color(_Y, C), near(_Z, _W).
        any(_X, red) :- true.
        less(M, N) :- M < N.
        kp(X) :- in(O, X), size(O, M), less(M, N), size(_P, N).
        kp(_X) :- any(_O, _C).
    """,
    "recursion": """
        :- target(path(obj1, obj3)).
        path(X, Y) :- near(X, Y).
        path(X, Y) :- near(X, Z), path(Z, Y).
    """,
    "a derived fact": """
        :- target(good(red)).
        good(blue).
        good(C) :- color(O, C), good(D).
    """,
    "alternatives": ":- target(kp(img)). kp(X) :- in(O, X), (color(O, red) ; size(O, 3), near(O, _)).",
    "several clauses, one head": """
        :- target(kp(img)).
        kp(X) :- in(O, X).
        kp(X) :- in(O, X), in(P, X), near(O, P), near(P, O).
        kp(X) :- in(O, X), in(P, X), near(P, O), near(O, P).
    """,
}


def typed(text: str, found: Diagnostics | None = None, **slots: int) -> ir.Program:
    """The checked program of a text; raises CompileError."""
    found = Diagnostics() if found is None else found
    return check(parse(Source("test.pl", text), found), "test", found, slots or None)


def small(name: str) -> ir.Program:
    return typed(VOCABULARY + SMALL[name])


@cache
def shipped(name: str) -> Compilation:
    return compile_file(name)


def grounded(program: ir.Program) -> GroundProgram:
    """Every pair spelt out, before any pass."""
    return ground(program, Diagnostics())


def random_typed(seed: int) -> ir.Program:
    return typed(random_program(random.Random(seed)))


def write(folder: Path, text: str, name: str = "rules.pl") -> Path:
    """A program with the vocabulary above, as a file."""
    path = folder / name
    path.write_text(VOCABULARY + text)
    return path
