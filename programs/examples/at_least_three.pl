% Counting: the figure has at least three triangles.

:- use_module(library(nsfr)).
:- include('kandinsky.pl').
:- perception(yolo).
:- type(object, slots(8)).
:- target(at_least_three(img)).

at_least_three(X) :- aggregate_all(count, (in(O, X), shape(O, triangle)), N), N >= 3.
