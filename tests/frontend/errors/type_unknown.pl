:- include('vocabulary.pl').
:- target(kp(img)).
:- pred(near(object, colour)).
:- neural(texture(object, texture)).
kp(X) :- in(O, X), color(O, red).
