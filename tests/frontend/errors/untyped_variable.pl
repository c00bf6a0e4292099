:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), Y \= red.
kp(X) :- in(O, X), Y < 3, O \== Y.
