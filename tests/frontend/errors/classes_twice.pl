:- include('vocabulary.pl').
:- classes([a(img), b(img)]).
:- classes([b(img), a(img)]).
a(X) :- in(O, X), color(O, red).
b(X) :- in(O, X), color(O, blue).
