% Several questions at once: each target has an answer of its own.

:- use_module(library(nsfr)).
:- include('kandinsky.pl').
:- perception(yolo).
:- type(object, slots(6)).
:- target(has_circle(img)).
:- target(one_colour(img)).

has_circle(X) :- in(O, X), shape(O, circle).

one_colour(X) :- in(O, X), color(O, C), \+ (in(P, X), \+ color(P, C)).
