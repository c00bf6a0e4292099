:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), alarm(_, O).
alarm(purple, P) :- closeby(_, P).
alarm(yelow, P) :- closeby(P, _).
