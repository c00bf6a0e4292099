:- include('vocabulary.pl').
:- target(kp(img)).
:- type(color, [green]).
:- type(mood, [good, bad, good]).
kp(X) :- in(O, X), color(O, red).
