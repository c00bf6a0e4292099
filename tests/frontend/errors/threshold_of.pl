:- include('vocabulary.pl').
:- target(a(img)).
:- target(warm(_)).
:- threshold(0.4).
:- threshold(a(img), 0.3).
:- threshold(warm(_), 0.3).
:- threshold(warm(red), 0.2).
:- threshold(b(img), 0.3).
:- threshold(kp9(img), 0.3).
:- threshold(X, 0.3).
:- threshold(a(img), high).
:- threshold(a(img), 2).
:- threshold(a(img), 0.1, 0.2).
:- threshold(classes, 0.5).
a(X) :- in(O, X), color(O, red).
b(X) :- in(O, X), color(O, blue).
warm(C) :- color(_, C).
