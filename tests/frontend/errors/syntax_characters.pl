:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), size(O, 3rd).
kp(X) :- in(O, X) §.
kp(X):-in(O,X).kp(X):-in(O,X).
