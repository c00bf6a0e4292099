% A constant belongs to its type: 2 the size is not 2 the row.
:- include('vocabulary.pl').
:- type(row, [1, 2, 3]).
:- neural(row(object, row)).
:- target(kp(img)).
at(O, R, S) :- row(O, R), size(O, S).
kp(X) :- in(O, X), at(O, 2, 2).
kp(X) :- in(O, X), at(O, R, S), R == S.
kp(X) :- in(O, X), row(O, R), near(R, R).
kp(X) :- in(O, X), near(2, 2), row(O, 2).
kp(X) :- in(O, X), row(O, R), near(R, 2), R = 2.
kp(X) :- in(O, X), row(O, R), near(R, 2), (R = 2 ; R = 3).
near(A, B) :- row(O, A), row(P, B), closeby(O, P).
:- semantics(paper).
