:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(A, X), in(B, X), front(A, B).
kp(X) :- in(A, X), in(B, X), front(B, A), color(A, red).
kp(X) :- in(A, X), in(B, X), front(A, B), color(A, blue).
kp(X) :- in(A, X), online(A, _, _, _), leftside(A).
kp(X) :- in(A, X), material(A, rubber).
