:- include('vocabulary.pl').

:- target(kp(img)).
:- pred(warm(color)).
:- pred(matches(color, color)).
warm(red).
matches(red, yellow).

kp(X) :- in(O1, X), in(O2, X), in(O3, X), in(O4, X), closeby(O1, O2), closeby(O3, O4).
kp(X) :- in(O, X), color(O, yellow), warm(yellow).
kp(X) :- in(O, X), color(O, C), color(O, D), matches(C, D), C == yellow.
kp(X) :- in(O, X), color(O, red).
kp(X) :- in(A, X), in(B, X), A == B.
