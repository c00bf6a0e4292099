:- include('vocabulary.pl').
:- classes([]).
a(X) :- in(O, X), color(O, red).
b(X) :- in(O, X), color(O, blue).
