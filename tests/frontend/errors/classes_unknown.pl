:- include('vocabulary.pl').
:- classes([a(img), c(img), color(obj1, red), b(red), 3]).
a(X) :- in(O, X), color(O, red).
b(X) :- in(O, X), color(O, blue).
