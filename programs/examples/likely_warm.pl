% Probabilities: how warm a colour is, as a guess of the author's and one that training may learn.

:- use_module(library(nsfr)).
:- include('kandinsky.pl').
:- perception(yolo).
:- type(object, slots(4)).
:- target(likely_warm(img)).

0.9::warm(red).
0.7::warm(yellow).
t(0.1)::warm(blue).

likely_warm(X) :- in(O, X), color(O, C), warm(C).
