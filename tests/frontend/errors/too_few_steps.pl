:- include('vocabulary.pl').

:- target(kp(img)).
:- steps(2).

kp(X) :- in(O, X), bright(O).
bright(O) :- vivid(O).
vivid(O) :- color(O, yellow).
:- semantics(paper).
