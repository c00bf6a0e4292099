:- include('vocabulary.pl').
:- target(kp(img)).
:- pred(near(object, object)).
kp(X) :- in(O, X), color(O).
kp(X) :- in(O, X), near(O, P, X).
near(X, Y, Z) :- closeby(X, Y), closeby(Y, Z).
near(X, Y) :- closeby(X, Y).
