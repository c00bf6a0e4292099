:- type(image, [img]). :- type(color, [red, blue]). :- type(shape, [square, circle]).
:- neural(in(object, image)). :- neural(color(object, color)). :- neural(shape(object, shape)).
:- type(object, slots(4)).
:- vars(object, 2).
:- pred(pair(object, object)).
:- learn([pair(image, image), f(X)]).
pair(A, B) :- color(A, C), color(B, C).
