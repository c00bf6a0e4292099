"""Programs with negations and counts that the kernels are tried on.

They are texts in which `not_p(…)` stands for the negation of p, and other predicates for counts that are told beside.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import nsfrc
from nsfrc.compiler import ir
from nsfrc.program import Program

BEGINNING = """
:- type(image, [img]).
:- type(object, slots(4)).
:- type(color, [red, blue]).
:- type(number, 0..3).
:- neural(in(object, image)).
:- neural(near(object, object)).
:- neural(color(object, color)).
"""
RED = "red(I, O) :- in(O, I), color(O, red).  blue(I, O) :- in(O, I), color(O, blue)."
# What is counted, and in which numbers; the first arguments of both are the same.
COUNTS = {
    "some": ("red", ["N >= 1"]), "two": ("red", ["N =:= 2"]), "few": ("red", ["N >= 1", "N =< 2"]),
    "most": ("red", ["N >= 3"]), "more": ("red - blue", ["N > 0"]), "even": ("red", ["N mod 2 =:= 0"]),
    "exactly": ("red", []), "far": ("path", ["N >= 2"]), "lone": ("path", ["N =< 1"]), "near_to": ("near", ["N >= 2"]),
}
PROGRAMS = {
    # Negations of an input and of heads, and of what is derived from those.
    "negations": """
        :- target(kp(img)). :- target(dull(obj1)).
        :- neural(not_color(object, color)). :- neural(not_pair(object, object)). :- neural(not_dull(object)).
        pair(X, Y) :- color(X, C), color(Y, C).
        dull(X) :- not_color(X, red), not_color(X, blue).
        kp(I) :- in(X, I), in(Y, I), not_pair(X, Y), not_dull(X).
    """,
    # Eight negations, one of the other.
    "tower": "".join(f":- neural(not_s{i}(object)). s{i + 1}(X) :- not_s{i}(X). " for i in range(8)) + """
        :- target(kp(img)).
        s0(X) :- color(X, red), near(X, Y).
        kp(I) :- in(X, I), s8(X).
    """,
    # Counts of all kinds, one of them by two others; several use the same steps.
    "counts": """
        :- target(kp(img)). :- target(kq(img)). :- target(kr(obj2)).
        :- neural(some(image)). :- neural(two(image)). :- neural(few(image)). :- neural(most(image)).
        :- neural(more(image)). :- neural(even(image)). :- neural(not_blue(image, object)). :- neural(not_two(image)).
        :- neural(exactly(image, number)). :- neural(near_to(object)).
        kp(I) :- some(I), more(I). kp(I) :- even(I), few(I), in(O, I), color(O, blue). kp(I) :- most(I).
        kq(I) :- not_two(I), in(O, I), near_to(O). kq(I) :- exactly(I, N), N > 1, in(O, I), color(O, blue).
        kr(O) :- near_to(O), color(O, red).
    """ + RED,
    # A count alone, which is written out.
    "few": """
        :- target(kp(img)). :- neural(few(image)). :- neural(not_color(object, color)).
        kp(I) :- few(I), in(O, I), not_color(O, blue).
    """ + RED.split("  ")[0],
    # Recursion that uses negations of what lies below, and counts and negations of what it leaves.
    "recursion": """
        :- target(kp(img)). :- target(path(obj1, obj3)).
        :- neural(not_color(object, color)). :- neural(far(object)). :- neural(not_path(object, object)).
        path(X, Y) :- near(X, Y), not_color(Y, red).
        path(X, Z) :- near(X, Y), path(Y, Z), not_color(Y, blue).
        kp(I) :- in(X, I), in(Y, I), not_path(X, Y), far(X).
    """,
}


@cache
def counted(name: str, slots: int = 4) -> Program:
    """One of them, with so many objects."""
    text = PROGRAMS[name].replace("slots(4)", f"slots({slots})")
    return compiled(BEGINNING.replace("slots(4)", f"slots({slots})") + text, name)


def compiled(text: str, name: str = "counted", counts: dict[str, tuple[str, list[str]]] = COUNTS) -> Program:
    """A program of a text, its stand-ins made negations and counts."""
    base = nsfrc.compile(source=text, name=name).source
    predicates = {p.name: p for p in base.predicates}
    made: dict[str, ir.Predicate] = {}
    for p in base.predicates:
        if p.name.startswith("not_"):
            _add_complement(predicates[p.name.removeprefix("not_")], made)
        elif p.name in counts:
            of, _, less = counts[p.name][0].partition(" - ")
            if less:
                _add_complement(predicates[less], made)
            made[p.name] = replace(p, role=ir.COUNTED, count=_count(
                predicates[of], predicates.get(less), len(p.types) - (not counts[p.name][1]),
                tuple(map(_test, counts[p.name][1]))))
        else:
            made[p.name] = p
    clauses = tuple(replace(c, body=tuple(replace(atom, name=_spelt(atom.name)) for atom in c.body))
                    for c in base.clauses)
    program = replace(base, predicates=tuple(made.values()), clauses=clauses)
    return nsfrc.compile(program)


def _spelt(name: str) -> str:
    return "\\+ " + name.removeprefix("not_") if name.startswith("not_") else name


def _add_complement(p: ir.Predicate, made: dict[str, ir.Predicate]) -> None:
    none = ir.Filter("=:=", ir.Var(ir.NUMBER), ir.Const("0"))
    name = ir.complement_of(p.key)[0]
    made[name] = ir.Predicate(name, p.types, ir.COUNTED, count=_count(p, None, len(p.types), (none,)))


def _count(of: ir.Predicate, less: ir.Predicate | None, shared: int, tests: tuple[ir.Filter, ...]) -> ir.Count:
    """A count by the first `shared` arguments."""
    own = tuple(range(shared))
    return ir.Count(ir.Source(of.key, own), less and ir.Source(less.key, own), tests)


def _test(text: str) -> ir.Filter:
    """`N mod 2 =:= 0`, `N >= 1`."""
    *left, op, right = text.split()
    number: ir.Expr = ir.Var(ir.NUMBER)
    if len(left) > 1:
        number = ir.Compute(left[1], (number, ir.Const(left[2])))
    return ir.Filter(op, number, ir.Const(right))
