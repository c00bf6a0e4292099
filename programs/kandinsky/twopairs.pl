% Two pairs: the figure has four objects that form two disjoint pairs. Both pairs have equal shapes
% within the pair; in one pair the two colours are equal, in the other they differ.

:- use_module(library(nsfr)).
:- include('kandinsky.pl').

:- semantics(paper).
:- perception(yolo).

:- type(object, slots(4)).

:- pred(kp(image)).
:- pred(same_shape_pair(object, object)).
:- pred(same_color_pair(object, object)).
:- pred(diff_color_pair(object, object)).
:- pred(diff_color(color, color)).

:- target(kp(img)).

diff_color(red, yellow).
diff_color(red, blue).
diff_color(yellow, red).
diff_color(yellow, blue).
diff_color(blue, red).
diff_color(blue, yellow).

kp(X) :-
    in(O1, X), in(O2, X), in(O3, X), in(O4, X),
    same_shape_pair(O1, O2), same_color_pair(O1, O2),
    same_shape_pair(O3, O4), diff_color_pair(O3, O4).

same_shape_pair(X, Y) :- shape(X, Z), shape(Y, Z).

same_color_pair(X, Y) :- color(X, Z), color(Y, Z).

diff_color_pair(X, Y) :- color(X, Z), color(Y, W), diff_color(Z, W).
