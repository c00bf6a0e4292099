:- semantics(paper).
:- include('vocabulary.pl').
:- target(kp(img)).
:- number(weight(object)).
kp(X) :- in(O, X), height(O) > 0.2.
kp(X) :- in(O, X), weight(O, W), W > 0.2.
0.5::kp(X) :- in(_, X).
0.3::kp(X); 0.4::good(X) :- in(_, X).
