:- include('vocabulary.pl').
:- target(kp(img)).
:- pred(warm(color)).
warm(red).
warm(X).
kp(X) :- in(O, X), color(O, C), warm(C).
