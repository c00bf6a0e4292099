% Two counts compared: there are more red objects than blue ones.

:- use_module(library(nsfr)).
:- include('kandinsky.pl').
:- perception(yolo).
:- type(object, slots(8)).
:- target(more_red_than_blue(img)).

more_red_than_blue(X) :-
    aggregate_all(count, (in(O, X), color(O, red)), N),
    aggregate_all(count, (in(O, X), color(O, blue)), M),
    N > M.
