:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), helper(O).
helper(O) :- color(O red).
kp(X) :- in(O, X), colour(O, red).
