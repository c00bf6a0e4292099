:- include('kandinsky.pl').
:- type(object, slots(3)).
:- target(kp(img)).
kp(X) :- in(O, X), not color(O, red).
kp(X) :- in(O, X), not (color(O, red), shape(O, circle)).
kp(X) :- in(O, X), not(color(O, red)).
kp(X) :- in(O, X), ~color(O, red).
kp(X) :- in(O, X), !color(O, red).
kp(X) :- in(O, X), color(O, C), C != red.
kp(X) :- in(O, X), color(O, C), C <> red.
kp(X) <- in(O, X).
?::kp(X) :- in(_, X).
evidence(kp(img)).
evidence(kp(img), true).
evidence(\+ kp(img)).
nn(net, [X], Y, [red, blue])::tint(X, Y).
nn(net, [X])::round(X) :- in(X, img).
kp(X) :- #count{O : color(O, red)} >= 2, in(_, X).
kp(X) :- in(O, X), count(color(O, red)) > 2.
:- color(O, red), color(O, blue).
:- \+ kp(img).
rel kp(x) = in(o, x).
kp(X) :- once(in(_, X)).
kp(X) :- in(_, X), exists(O, color(O, red)).
