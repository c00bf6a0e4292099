% The largest object is red: `largest` of the library says that no other object is larger.

:- use_module(library(nsfr)).
:- include('kandinsky.pl').
:- include('boxes.pl').
:- perception(yolo).
:- type(object, slots(6)).
:- target(largest_is_red(img)).

largest_is_red(X) :- largest(O, X), color(O, red).
