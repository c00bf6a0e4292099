:- include('vocabulary.pl').
kp(X) :- in(O, X), color(O, red).
