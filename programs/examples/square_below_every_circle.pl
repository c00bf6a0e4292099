% For all with "there is" inside: every circle has a square below it.

:- use_module(library(nsfr)).
:- include('kandinsky.pl').
:- include('boxes.pl').
:- perception(yolo).
:- type(object, slots(6)).
:- target(square_below_every_circle(img)).

square_below_every_circle(X) :- in(_, X), forall((in(C, X), shape(C, circle)), square_below(C, X)).

square_below(C, X) :- in(S, X), shape(S, square), below(S, C).
