:- include('vocabulary.pl').
:- type(cell, slots(200)).
:- pred(path(cell, cell)).
:- neural(edge(cell, cell)).
:- target(path(X, Y)).
path(X, Y) :- edge(X, Y).
