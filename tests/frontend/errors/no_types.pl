:- neural(in(object, image)).
:- neural(color(object, color)).
:- target(kp(img)).
kp(X) :- in(O, X), color(O, red), warm(red), cold(_, blue).
warm(red).
warm(orange).
cold(blue, blau).
