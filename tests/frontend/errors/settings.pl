:- include('vocabulary.pl').
:- target(kp(img)).
:- steps(0).
:- steps(2.5).
:- gamma(0).
:- gamma(small).
:- threshold(2).
:- perception(3).
:- gamma(0.01).
:- gamma(0.02).
kp(X) :- in(O, X), color(O, red).
