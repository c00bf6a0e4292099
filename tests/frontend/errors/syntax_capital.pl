:- include('vocabulary.pl').
:- target(kp(img)).
Kp(X) :- in(O, X).
kp(X) :- in (O, X).
