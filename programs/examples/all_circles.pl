% For all: every object of the figure is a circle.

:- use_module(library(nsfr)).
:- include('kandinsky.pl').
:- perception(yolo).
:- type(object, slots(6)).
:- target(all_circles(img)).

all_circles(X) :- in(_, X), forall(in(O, X), shape(O, circle)).
