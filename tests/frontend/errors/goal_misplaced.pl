:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(_, X), (color(O, red) :- shape(O, circle)).
kp(X) :- in(O, X), (0.5 :: color(O, red)).
