:- include('vocabulary.pl').
:- target(kp(img)).
:- tagret(kp(img)).
:- steps(1, 2).
:- 3.
:- op(700, xfx, near).
kp(X) :- in(O, X), color(O, red).
