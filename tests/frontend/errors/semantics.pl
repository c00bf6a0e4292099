:- include('vocabulary.pl').
:- semantics(fuzzy).
:- type(digit, 9..0).
:- type(letter, a..z).
:- target(kp(img)).
kp(X) :- in(O, X), size(O, S), S is red + 1.
kp(X) :- in(O, X), size(O, S), between(1, T, S).
same(O, O) :- size(O, 1).
kp(X) :- in(O, X), same(O, O).
