% Red triangle: among the six objects of the figure there is a red triangle, and close to it an object
% that differs from it in both shape and colour.

:- use_module(library(nsfr)).
:- include('kandinsky.pl').

:- semantics(paper).
:- perception(yolo).

:- type(object, slots(6)).

:- neural(closeby(object, object)).

:- pred(kp(image)).
:- pred(diff_shape_pair(object, object)).
:- pred(diff_color_pair(object, object)).
:- pred(diff_color(color, color)).
:- pred(diff_shape(shape, shape)).

:- target(kp(img)).

diff_color(red, yellow).
diff_color(red, blue).
diff_color(yellow, red).
diff_color(yellow, blue).
diff_color(blue, red).
diff_color(blue, yellow).

diff_shape(square, circle).
diff_shape(square, triangle).
diff_shape(circle, square).
diff_shape(circle, triangle).
diff_shape(triangle, square).
diff_shape(triangle, circle).

kp(X) :-
    in(O1, X), in(O2, X), closeby(O1, O2),
    color(O1, red), shape(O1, triangle),
    diff_shape_pair(O1, O2), diff_color_pair(O1, O2).

diff_shape_pair(X, Y) :- shape(X, Z), shape(Y, W), diff_shape(Z, W).

diff_color_pair(X, Y) :- color(X, Z), color(Y, W), diff_color(Z, W).
