:- include('vocabulary.pl').
:- target(kp(img)).
:- pred(warm(color)).
warm(red).
warm(X).
near(O, _).
color(O, red).
kp(X) :- in(O, X), color(O, C), warm(C), near(O, obj1).
