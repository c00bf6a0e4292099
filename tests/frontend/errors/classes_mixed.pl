:- include('vocabulary.pl').
:- target([b(img), classes]).
:- classes([a(img), b(img), none, (a(img), b(img))]).
a(X) :- in(O, X), color(O, red).
b(X) :- in(O, X), color(O, blue).
classes :- b(img).
none :- a(img).
