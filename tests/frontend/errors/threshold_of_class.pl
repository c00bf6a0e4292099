:- include('vocabulary.pl').
:- classes([a(img), b(img)]).
:- threshold(classes, 0.5).
:- threshold(a(img), 0.5).
a(X) :- in(O, X), color(O, red).
b(X) :- in(O, X), color(O, blue).
