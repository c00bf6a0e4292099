:- type(image, [img]). :- type(color, [red, blue]). :- type(shape, [square, circle]).
:- neural(in(object, image)). :- neural(color(object, color)). :- neural(shape(object, shape)).
:- type(object, slots(4)).
:- learn([kp(image), kp(image), foo(object), in(object,image)]).
:- learn(x(image)).
:- vars(objct, 4).
:- vars(object, 40).
:- vars(X, 2).
:- body(color(object, shape)).
:- body(nothing(object)).
:- body(kp(image)).
:- body(shape(object, shape), [max(a), odd]).
:- body(shape(object, shape), symmetric).
:- body(color(object, color), [symmetric]).
:- body(3).
kp(X) :- in(O, X), color(O, red).
