:- include('vocabulary.pl').
:- number(score(object, color)).
:- number(area(thing)).
:- number(brightness).
:- number(max(object, object)).
:- number(score(object, color)).
:- number(3).
:- number(weight(object)).
:- target(kp(img)).
kp(X) :- in(O, X), heigth(O) > 0.2.
kp(X) :- in(O, X), loudness(O) > 0.2.
kp(X) :- in(O, X), size(O) > 2.
kp(X) :- in(O, X), sin(height(O)) > 0.2.
kp(X) :- in(O, X), height(O) mod 2 =:= 0.
kp(X) :- in(O, X), height(O) ^ 2 > 0.2.
kp(X) :- in(O, X), height(O).
kp(X) :- in(O, X), color(O, height(O)).
kp(X) :- in(O, X), height(O) == 0.2.
kp(X) :- in(O, X), height(X) > 0.2.
kp(X) :- in(O, X), height(red) > 0.2.
kp(X) :- in(O, X), color(O, C), height(O) > C.
kp(X) :- in(O, X), height(O) > N.
kp(X) :- in(O, X), height(O) > O.
kp(X) :- in(O, X), height(O, tall).
kp(X) :- in(O, X), score(O, circle) > 0.
kp(X) :- in(O, X), height(O) / 0 > 1.
kp(X) :- in(O, X), A is height(O) + height(O), B is A + A, C is B + B, D is C + C, E is D + D, F is E + E, G is F + F, H is G + G, I is H + H, J is I + I, K is J + J, K > 1.
weight(obj1, 0.3).
