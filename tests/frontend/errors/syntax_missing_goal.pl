:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), .
kp(X) :- .
