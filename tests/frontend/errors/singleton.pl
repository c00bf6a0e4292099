:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), color(Q, red), shape(_, _P).
