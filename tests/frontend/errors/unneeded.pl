:- include('vocabulary.pl').
:- target(kp(img)).
:- pred(warm(color)).
warm(red).
warm(blue).
spare(O) :- color(O, red).
kp(X) :- in(O, X), tone(O, red).
tone(O, red) :- color(O, red).
tone(O, blue) :- color(O, blue).
