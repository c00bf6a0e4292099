% Counting with both ends: two to four objects are blue. findall and length say the same as aggregate_all.

:- use_module(library(nsfr)).
:- include('kandinsky.pl').
:- perception(yolo).
:- type(object, slots(8)).
:- target(two_to_four(img)).

two_to_four(X) :- findall(O, (in(O, X), color(O, blue)), L), length(L, N), between(2, 4, N).
