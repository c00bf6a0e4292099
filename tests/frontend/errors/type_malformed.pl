:- include('vocabulary.pl').
:- target(kp(img)).
:- type(Mood, [a]).
:- type(mood, good).
:- type(cell, slots(many)).
:- type(weather, [sun, f(rain), "snow"]).
:- type(grain, slots(1000000000)).
kp(X) :- in(O, X), color(O, red).
