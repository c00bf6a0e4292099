:- include('vocabulary.pl').
:- target(color(obj1, red)).
:- target(warm(red)).
:- target(cold(red)).
:- pred(cold(color)).
:- target(hot(red)).
:- target(kp(img)).
:- target(tone(blue)).
:- target(kp(red)).
:- target(X).
?- kp(img), kp(img).
warm(red).
tone(red) :- color(_, red).
kp(X) :- in(O, X), color(O, C), warm(C), tone(C).
