:- type(image, [img]). :- type(color, [red, blue]). :- type(shape, [square, circle]).
:- neural(in(object, image)). :- neural(color(object, color)). :- neural(shape(object, shape)).
:- type(object, slots(4)).
:- vars(object, 2).
:- target(kp(img)).
kp(X) :- in(O, X), color(O, red).
