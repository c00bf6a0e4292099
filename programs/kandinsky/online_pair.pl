% Online pair: the five objects of the figure lie on one straight line, and two of them agree in both
% shape and colour. When objects count as lying on a line is learnt (the neural predicate online/5).

:- use_module(library(nsfr)).
:- include('kandinsky.pl').

:- semantics(paper).
:- perception(yolo).

:- type(object, slots(5)).

:- neural(online(object, object, object, object, object)).

:- pred(kp(image)).
:- pred(same_shape_pair(object, object)).
:- pred(same_color_pair(object, object)).

:- target(kp(img)).

kp(X) :-
    in(O1, X), in(O2, X), in(O3, X), in(O4, X), in(O5, X),
    online(O1, O2, O3, O4, O5),
    same_shape_pair(O1, O2), same_color_pair(O1, O2).

same_shape_pair(X, Y) :- shape(X, Z), shape(Y, Z).

same_color_pair(X, Y) :- color(X, Z), color(Y, Z).
