:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), colour(O, red).
kp(X) :- in(O, X), wobbly(O).
