:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), linked(O, _).
linked(_, Y) :- color(_, red).
