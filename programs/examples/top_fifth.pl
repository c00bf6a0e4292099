% A number and a constant: some triangle begins in the top fifth of the figure.

:- use_module(library(nsfr)).
:- include('kandinsky.pl').
:- perception(yolo).
:- type(object, slots(6)).
:- target(top_fifth(img)).

top_fifth(X) :- in(O, X), shape(O, triangle), y1(O) < 0.2.
