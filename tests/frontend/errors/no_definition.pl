:- include('vocabulary.pl').
:- target(kp(img)).
:- pred(near(object, object)).
kp(X) :- in(O, X), in(P, X), near(O, P).
