kp(X) :- in(O, X)
same(X, Y) :- color(X, Z), color(Y, Z).
other(X) :- in(X Y).
