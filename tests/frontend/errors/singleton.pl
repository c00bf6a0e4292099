:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), color(Q, red), shape(_, _P).
kp(X) :- in(_, X), (color(_, red) ; shape(_, circle)).
kp(X) :- in(O, X), color(O, red), closeby(_, _).
