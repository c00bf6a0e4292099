:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), \+ color(O, red).
kp(X) :- findall(O, in(O, X), L), length(L, 3).
kp(X) :- aggregate_all(count, in(_, X), 3).
kp(X) :- forall(in(O, X), color(O, red)).
kp(X) :- in(O, X), size(O, S), between(1, 2, S).
kp(X) :- in(O, X), color(O, C), member(C, [red, blue]).
kp(X) :- call(in, _, X).
kp(X) :- in(O, X), size(O, S), 2 is S + 1.
kp(X) :- X.
kp --> [x].
