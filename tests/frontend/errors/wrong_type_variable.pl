:- include('vocabulary.pl').
:- target(kp(img)).
:- pred(kp(image)).
kp(X) :- in(O, X), color(O, C), shape(C, O).
kp(X) :- in(X, X2), color(X2, red).
