:- include('vocabulary.pl').
:- target(kp(img)).
:- pred(kp/1).
:- pred(near(object, X)).
:- pred("kp").
:- neural(write(object)).
kp(X) :- in(O, X), color(O, red).
