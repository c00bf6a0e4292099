:- include('vocabulary.pl').
:- target(kp(img)).
:- pred(near(object, object)).
kp(X) :- color(O, red).
kp(_) :- color(_, red).
near(X, Y) :- color(X, C), shape(X, S), C \= S.
kp(X) :- in(A, X) ; color(A, red).
