:- include('vocabulary.pl').
:- type(place, slots(8)).
:- neural(linked(place, place)).
:- target(kp(img)).
kp(X) :- in(_, X), connected(place1, place8).
connected(A, B) :- linked(A, B).
connected(A, B) :- linked(A, C), connected(C, B).
:- semantics(paper).
