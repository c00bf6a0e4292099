:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(_, X), fail.
kp(X) :- in(O, X), color(O, C), C = red, C = blue.
kp(X) :- in(O, X), (1 > 2 ; O \== O).
kp(X) :- in(O, X), in(P, X), closeby(O, P), O = P.
kp(X) :- in(_, X), red = bleu.
