:- include('vocabulary.pl').
:- target(kp(img)).
write(X) :- color(X, red).
X = Y :- closeby(X, Y).
true.
(kp(X), kp2(X)) :- in(_, X).
3 :- fail.
kp(X) :- in(O, X), color(O, red).
