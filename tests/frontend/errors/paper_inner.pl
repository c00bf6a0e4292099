:- include('vocabulary.pl').
:- semantics(paper).
:- target(kp(img)).
kp(X) :- in(O, X), \+ color(O, red).
kp(X) :- in(_, X), forall(in(O, X), color(O, red)).
kp(X) :- in(_, X), aggregate_all(count, in(_, X), N), N >= 2.
kp(X) :- in(_, X), findall(O, in(O, X), L), length(L, 2).
