:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X) color(O, red).
kp(X) :- in(O X).
