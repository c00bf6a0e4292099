:- include('kandinsky.pl').
:- target(kp(img)).
kp(X) :- in(O, X), color(O, red).
