:- include('vocabulary.pl').
:- target(kp(img)).
:- type(mood, [red, calm]).
kp(X) :- in(O, X), color(O, red), linked(O, P), tone(red), loop(_).
linked(X, Y) :- linked(Y, X).
linked(X, Y) :- reaches(Y), color(X, red).
reaches(Y) :- reaches(Y).
loop(Y) :- loop(Y).
tone(red).
