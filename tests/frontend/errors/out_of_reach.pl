:- include('vocabulary.pl').

:- target(kp(img)).
:- pred(near(object, object)).

kp(X) :- in(O1, X), near(O1, _O2).
near(X, Y) :- near(Y, X).
