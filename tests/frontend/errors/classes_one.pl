:- include('vocabulary.pl').
:- classes([a(img), a(img)]).
a(X) :- in(O, X), color(O, red).
