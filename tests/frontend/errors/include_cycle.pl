:- include('include_cycle.pl').
:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), color(O, red).
