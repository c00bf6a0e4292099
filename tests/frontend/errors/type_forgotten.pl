% The vocabulary leaves the number of objects to the program.
:- include('kandinsky.pl').
:- neural(moves(object, way)).
:- neural(turns(object, way)).
:- target(kp(img)).
kp(X) :- in(O, X), color(O, red).
