:- include('vocabulary.pl').
:- target(kp(img)).
:- pred(near(object, object)).
:- target(near(obj1, obj1)).
near(X, X) :- color(X, red).
near(obj1, obj1).
kp(X) :- in(O, X), closeby(O, O).
:- semantics(paper).
