:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(_, X), aggregate_all(max, in(_, X), _).
kp(X) :- in(_, X), aggregate_all(count, in(_, X), many).
kp(X) :- aggregate_all(count, in(_, X), N), aggregate_all(count, color(_, red), M), N > 2 * M.
kp(X) :- in(O, X), size(O, S), aggregate_all(count, color(_, red), N), N > S.
kp(X) :- in(_, X), findall(O, in(O, X), L), length(L, N), length(L, M), N =:= M.
kp(X) :- in(O, X), \+ colour(O, red).
kp(X) :- in(O, X), \+ color(O, rde).
