% Close by: among the four objects of the figure there are two that lie close to each other. How close
% is close is learnt from examples (the neural predicate closeby/2).

:- use_module(library(nsfr)).
:- include('kandinsky.pl').

:- semantics(paper).
:- perception(yolo).

:- type(object, slots(4)).

:- neural(closeby(object, object)).

:- pred(kp(image)).

:- target(kp(img)).

kp(X) :- in(O1, X), in(O2, X), closeby(O1, O2).
