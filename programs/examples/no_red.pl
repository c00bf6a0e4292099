% Negation: no object of the figure is red.

:- use_module(library(nsfr)).
:- include('kandinsky.pl').
:- perception(yolo).
:- type(object, slots(6)).
:- target(no_red(img)).

no_red(X) :- in(_, X), \+ (in(O, X), color(O, red)).
