:- include('vocabulary.pl').
:- target(kp(img)).
:- type(mood, []).
:- type(cell, slots(0)).
:- pred(feels(object, mood)).
kp(X) :- in(O, X), color(O, red).
