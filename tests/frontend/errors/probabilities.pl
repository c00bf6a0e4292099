:- include('vocabulary.pl').
:- target(kp(img)).
1.5::kp(X) :- in(_, X).
-0.5::kp(X) :- in(_, X).
p::kp(X) :- in(_, X).
P::kp(X) :- in(_, X), size(_, P).
t(1)::kp(X) :- in(_, X).
t(half)::kp(X) :- in(_, X).
1/0::kp(X) :- in(_, X).
0.6::kp(X); 0.5::good(X) :- in(_, X).
0.6::kp(X); good(X) :- in(_, X).
0.5::(kp(X), good(X)) :- in(_, X).
0.5::0.5::good(X) :- in(_, X).
0.5::color(obj1, red).
kp(X) :- 0.5::in(_, X).
0.5::wram(obj1).
