% Arithmetic over two objects: one object is at least twice as wide as another of its colour.

:- use_module(library(nsfr)).
:- include('kandinsky.pl').
:- perception(yolo).
:- type(object, slots(6)).
:- target(twice_as_wide(img)).

twice_as_wide(X) :- in(A, X), in(B, X), color(A, C), color(B, C), width(A) >= 2 * width(B).
