"""Small programs under `anchored`, each with something that lowering must get right."""

from __future__ import annotations

VOCABULARY = """
:- type(image, [img]).
:- type(object, slots(3)).
:- type(color, [red, blue]).
:- type(number, 0..4).
:- neural(in(object, image)).
:- neural(color(object, color)).
:- neural(near(object, object)).
:- neural(goes(color, color)).
"""

RULES = {
    "one reason": ":- target(kp(img)). kp(X) :- in(obj1, X).",
    "a few reasons": ":- target(kp(img)). kp(X) :- in(O, X), color(O, red). kp(X) :- in(O, X), near(O, _P).",
    "attributes that may be equal": """
        :- target(kp(img)). :- target(twice(red)).
        match(red, red). match(red, blue).
        kp(X) :- in(O, X), in(P, X), color(O, C), color(P, D), match(C, D).
        twice(C) :- goes(C, C).
        same(C, C) :- color(_O, C).
        :- target(same(blue, blue)).
    """,
    "two orders of one pair": """
        :- target(kp(img)).
        pair(X, Y) :- color(X, C), color(Y, C).
        kp(X) :- in(O, X), in(P, X), pair(O, P).
    """,
    "levels": """
        :- target(kp(img)). :- target(d(obj1)).
        a(O) :- in(O, img), color(O, red).
        b(O) :- a(O), near(O, P), a(P).
        c(O) :- b(O), near(P, O), a(P).
        d(O) :- c(O). d(O) :- a(O), b(O).
        kp(X) :- in(O, X), d(O), c(P), near(O, P).
    """,
    "paths": """
        :- target(kp(img)). :- target(path(obj1, obj3)).
        path(X, Y) :- near(X, Y).
        path(X, Z) :- near(X, Y), path(Y, Z).
        kp(X) :- in(O, X), in(P, X), path(O, P), path(P, O).
    """,
    "products shared with what is recursive": """
        :- target(kp(img)). :- target(other(obj1)).
        lit(X) :- color(X, red).
        lit(X) :- near(X, Y), near(Y, X), lit(Y), lit(Z), color(Z, blue).
        kp(X) :- in(O, X), lit(Y), lit(Z), color(Z, blue), near(O, Y).
        other(X) :- near(X, Y), near(Y, X), lit(Y), in(X, img).
    """,
    "two that need each other": """
        :- target(even(obj1)). :- target(kp(img)).
        even(X) :- color(X, red).
        even(X) :- near(X, Y), odd(Y).
        odd(X) :- near(X, Y), even(Y).
        kp(X) :- in(O, X), odd(O), even(O).
    """,
    "products shared by components": """
        :- target(d(red, red)). :- target(d(blue, red)).
        d(C, D) :- color(O, C), color(O, D).
        d(C, D) :- in(obj2, img), near(_O, _P), d(blue, D), d(C, C).
    """,
    "by itself": ":- target(p(red)). p(C) :- goes(C, C). p(C) :- p(C), goes(C, D), p(D).",
    "what follows from facts": """
        :- target(kp(img)). :- pred(even(number)). :- neural(size(object, number)).
        even(N) :- N mod 2 =:= 0.
        small(N) :- even(N), N < 3.
        :- target(small(2)).
        kp(X) :- in(O, X), size(O, N), small(N).
    """,
    "paths along facts": """
        :- target(kp(img)). :- neural(size(object, number)). :- pred(next(number, number)).
        next(0, 1). next(1, 2). next(2, 3).
        way(N, M) :- next(N, M).
        way(N, M) :- next(N, K), way(K, M).
        seen(N) :- size(_O, N).
        seen(N) :- next(M, N), seen(M).
        kp(X) :- in(O, X), size(O, N), way(N, M), seen(M).
        :- target(seen(3)).
    """,
    "facts that cut half of a cycle": """
        :- target(kp(img)). :- target(seen(4)). :- neural(size(object, number)). :- pred(next(number, number)).
        next(0, 1). next(1, 0). next(1, 2). next(2, 3). next(3, 4).
        seen(0) :- in(obj1, img).
        seen(N) :- next(M, N), seen(M), size(_O, M).
        kp(X) :- in(O, X), size(O, N), seen(N).
    """,
    "facts of what is derived": """
        :- target(kp(img)). :- target(good(red)).
        good(blue).
        good(C) :- color(_O, C), good(D), goes(C, D).
        kp(X) :- in(O, X), color(O, C), good(C).
    """,
    "nothing but facts": """
        :- target(kp(img)). :- pred(given(color)). :- pred(kp(image)).
        given(red).
        kp(_X) :- given(_C).
    """,
    "clauses that nothing needs": """
        :- target(kp(img)).
        kp(X) :- in(O, X), color(O, red).
        idle(O) :- near(O, P), idle(P), color(P, C), goes(C, _D).
        idle(O) :- in(O, img).
    """,
}

# With goals within goals, which look at finished values; some targets hold where nothing is seen.
INNER = {
    "negation": r"""
        :- target(kp(img)). :- target(alone(obj1)).
        alone(O) :- in(O, img), \+ (near(O, P), color(P, red)), \+ near(_, O).
        kp(X) :- in(O, X), \+ color(O, blue), \+ alone(O).
    """,
    "a tower of negations": r"""
        :- target(kp(img)). :- target(p(obj1)).
        p(O) :- in(O, img), \+ \+ \+ \+ \+ \+ \+ \+ color(O, red).
        kp(X) :- \+ (in(O, X), \+ (near(O, P), \+ (in(P, X), \+ (near(P, Q), \+ color(Q, red))))).
    """,
    "negation above and below recursion": r"""
        :- target(kp(img)). :- target(stuck(obj2)).
        free(X, Y) :- near(X, Y), \+ (color(X, C), color(Y, C)).
        path(X, Y) :- free(X, Y).
        path(X, Z) :- free(X, Y), path(Y, Z).
        stuck(X) :- in(X, img), \+ path(X, _).
        kp(X) :- forall((in(O, X), \+ stuck(O)), (path(O, P), in(P, X))).
    """,
    "counts": r"""
        :- target(two(img)). :- target(few(img)). :- target(kp(img)). :- pred(many(image, number)).
        two(X) :- aggregate_all(count, (in(O, X), color(O, red)), N), N >= 2.
        few(X) :- findall(O, (in(O, X), \+ color(O, red)), L), length(L, N), between(1, 2, N).
        many(X, N) :- aggregate_all(count, (in(O, X), near(O, _)), N).
        kp(X) :- many(X, N), N =\= 1, \+ two(X).
    """,
    "counts compared": r"""
        :- target(kp(img)). :- target(even(img)). :- target(busy(obj1)).
        kp(X) :- aggregate_all(count, (in(O, X), color(O, red)), N),
            aggregate_all(count, (in(O, X), color(O, blue)), M), N > M.
        even(X) :- aggregate_all(count, in(_, X), N), N mod 2 =:= 0.
        busy(O) :- aggregate_all(count, near(O, _), N), aggregate_all(count, near(_, O), N), in(O, img).
    """,
    "counts of counts": r"""
        :- target(kp(img)). :- target(kq(img)). :- neural(size(object, number)).
        kp(X) :- aggregate_all(count, (in(O, X), aggregate_all(count, near(O, _), M), M >= 1), N), N =< 2.
        kq(X) :- in(O, X), size(O, N), aggregate_all(count, (near(O, P), \+ color(P, red)), N).
    """,
    "negation along numbers": r"""
        :- target(even(4)). :- target(even(3)). :- pred(even(number)). :- neural(start(number)).
        even(N) :- start(N).
        even(N) :- M is N - 1, \+ even(M).
    """,
    "what is known of what is not": r"""
        :- target(kp(img)). :- pred(dark(color)). :- pred(light(color)). :- target(light(red)).
        dark(blue).
        light(C) :- \+ dark(C).
        kp(X) :- in(O, X), color(O, C), light(C), aggregate_all(count, light(_), N), N < 2.
    """,
}
RULES |= INNER


def text(name: str) -> str:
    return VOCABULARY + RULES[name]
