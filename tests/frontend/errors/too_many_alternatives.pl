:- include('vocabulary.pl').
:- target(kp(img)).
kp(X) :- in(O, X), (color(O, red) ; color(O, blue)), (color(O, red) ; color(O, blue)), (color(O, red) ; color(O, blue)), (color(O, red) ; color(O, blue)), (color(O, red) ; color(O, blue)), (color(O, red) ; color(O, blue)), (color(O, red) ; color(O, blue)), (color(O, red) ; color(O, blue)), (color(O, red) ; color(O, blue)), (color(O, red) ; color(O, blue)).
