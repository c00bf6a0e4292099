:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), !, color(O, red).
kp(X) :- in(O, X), (color(O, red) -> shape(O, circle) ; true).
kp(X) :- in(O, X), (color(O, red) *-> true ; true).
kp(X) :- in(O, X), assertz(seen(O)).
kp(X) :- in(O, X), retract(seen(O)).
kp(X) :- in(O, X), write(O), nl.
kp(X) :- in(O, X), format("~w", [O]).
kp(X) :- lists:member(X, [img]).
