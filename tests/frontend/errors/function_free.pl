:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(f(X), X).
kp(X) :- in(O, X), color(O, [red]).
kp(X) :- in(O, X), color(O, "red").
kp(X) :- in(O, X), size(O, 1 + 1).
kp(X) :- in(O, X), color(O, C), C = paint(red).
kp(X) :- in(O, X), [red].
kp(X) :- in(O, X), 3.
