:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), color(O, C), C < 3.
kp(X) :- in(O, X), size(O, S), S < red.
kp(X) :- in(O, X), size(O, S), S << 2 < 3.
kp(X) :- in(O, X), size(O, S), 1 / 0 < S, 1 // 0 < 2.
kp(X) :- in(O, X), size(O, S), S mod 1.5 =:= 0.
kp(X) :- in(O, X), color(O, C), shape(O, S), C \== S.
kp(X) :- in(O, X), color(O, C), C == circle.
