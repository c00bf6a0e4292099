:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), size(O, S), S <= 2.
kp(X) :- in(O, X), size(O, S), S != 2.
kp(X) :- in(O, X), size(O, S), S=-2.
kp(X) :- in(O, X), size(O, S), 1 < S < 3.
