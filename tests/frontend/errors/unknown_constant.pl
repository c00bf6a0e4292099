:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), color(O, rad).
kp(X) :- in(O, X), color(O, purple).
kp(X) :- in(O, X), color(O, C), C \= grey.
