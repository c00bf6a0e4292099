% The vocabulary that all Kandinsky patterns share. A program includes this file and then says how
% many objects its figures have: `:- type(object, slots(4)).`

:- use_module(library(nsfr)).

:- type(image, [img]).
:- type(color, [red, yellow, blue]).
:- type(shape, [square, circle, triangle]).

:- neural(in(object, image)).
:- neural(color(object, color)).
:- neural(shape(object, shape)).
