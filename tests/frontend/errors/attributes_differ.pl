:- include('vocabulary.pl').
:- semantics(paper).
:- type(total, 2..6).
:- pred(sum(object, object, total)).
:- target(sum(obj1, obj2, 4)).
sum(O, P, N) :- size(O, S), size(P, T), N is S + T.
sum(O, P, 3) :- size(O, S), size(P, T), S < T.
