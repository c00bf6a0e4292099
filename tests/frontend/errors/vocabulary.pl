% Included by the other files here.
:- type(image, [img]).
:- type(object, slots(3)).
:- type(color, [red, yellow, blue]).
:- type(shape, [square, circle]).
:- type(size, [1, 2, 3]).
:- neural(in(object, image)).
:- neural(color(object, color)).
:- neural(shape(object, shape)).
:- neural(size(object, size)).
:- neural(closeby(object, object)).
