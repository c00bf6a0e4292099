:- include('vocabulary.pl').
:- neural(near(object, object)).
:- target(kp(img)).
kp(X) :- in(O, X), wins(O).
wins(O) :- near(O, P), \+ beaten(P).
beaten(O) :- wins(O).
