:- include('vocabulary.pl').
:- target(kp(img)).
:- pred(diff(color, color)).
kp(X) :- in(O, X), color(O, square), diff(red, blue).
diff(red, circle).
