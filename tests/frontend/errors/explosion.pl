:- include('vocabulary.pl').

:- type(cell, slots(100)).
:- neural(next(cell, cell)).
:- target(kp(img)).

kp(X) :- in(_, X), next(A, B), next(B, C), next(C, D), next(D, A).
