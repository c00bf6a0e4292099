:- include('vocabulary.pl').
:- target(kp(img)).
:- neural(color(object, color)).
:- pred(closeby(object, object)).
kp(X) :- in(O, X), color(O, red).
