:- include('vocabulary.pl').
:- classes([a(img) | Rest]).
a(X) :- in(O, X), color(O, red).
b(X) :- in(O, X), color(O, blue).
