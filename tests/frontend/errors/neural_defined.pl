:- include('vocabulary.pl').
:- target(kp(img)).
color(obj1, red).
shape(X, circle) :- color(X, red).
kp(X) :- in(O, X), color(O, red).
