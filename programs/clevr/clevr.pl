% The vocabulary that the CLEVR-Hans programs share: ten slots for the objects of a scene, their
% attributes, and the neural predicates that read them.

:- use_module(library(nsfr)).

:- type(image, [img]).
:- type(object, slots(10)).
:- type(color, [cyan, blue, yellow, purple, red, green, gray, brown]).
:- type(shape, [sphere, cube, cylinder]).
:- type(size, [large, small]).
:- type(material, [rubber, metal]).

:- neural(in(object, image)).
:- neural(color(object, color)).
:- neural(shape(object, shape)).
:- neural(size(object, size)).
:- neural(material(object, material)).
