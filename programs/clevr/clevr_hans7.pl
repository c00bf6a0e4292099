% CLEVR-Hans7: seven classes of scenes. Class 1 has a large cube and a large cylinder; class 2 a small
% metal cube and a small sphere; class 3 a cyan object in front of two red ones; class 4 four small
% objects, among them a green, a brown and a purple one; class 5 three spheres on the left (with or
% without three metal cylinders on the right); class 6 three metal cylinders on the right; class 7 a
% large blue sphere and a small yellow sphere.

:- use_module(library(nsfr)).
:- include('clevr.pl').

:- semantics(paper).
:- perception(yolo_clevr).

:- neural(front(object, object)).
:- neural(leftside(object)).
:- neural(rightside(object)).

:- pred(kp1(image)).
:- pred(kp2(image)).
:- pred(kp3(image)).
:- pred(kp4(image)).
:- pred(kp5(image)).
:- pred(kp6(image)).
:- pred(kp7(image)).
:- pred(has_3_spheres_left(image)).
:- pred(has_3_metal_cylinders_right(image)).

:- classes([kp1(img), kp2(img), kp3(img), kp4(img), kp5(img), kp6(img), kp7(img)]).

kp1(X) :-
    in(O1, X), in(O2, X),
    size(O1, large), shape(O1, cube),
    size(O2, large), shape(O2, cylinder).

kp2(X) :-
    in(O1, X), in(O2, X),
    size(O1, small), material(O1, metal), shape(O1, cube),
    size(O2, small), shape(O2, sphere).

kp3(X) :-
    in(O1, X), in(O2, X), in(O3, X),
    color(O1, cyan), front(O1, O2), front(O1, O3),
    color(O2, red), color(O3, red).

kp4(X) :-
    in(O1, X), in(O2, X), in(O3, X), in(O4, X),
    size(O1, small), color(O1, green),
    size(O2, small), color(O2, brown),
    size(O3, small), color(O3, purple),
    size(O4, small).

kp5(X) :- has_3_spheres_left(X).
kp5(X) :- has_3_spheres_left(X), has_3_metal_cylinders_right(X).

kp6(X) :- has_3_metal_cylinders_right(X).

kp7(X) :-
    in(O1, X), in(O2, X),
    size(O1, large), color(O1, blue), shape(O1, sphere),
    size(O2, small), color(O2, yellow), shape(O2, sphere).

has_3_spheres_left(X) :-
    in(O1, X), in(O2, X), in(O3, X),
    shape(O1, sphere), shape(O2, sphere), shape(O3, sphere),
    leftside(O1), leftside(O2), leftside(O3).

has_3_metal_cylinders_right(X) :-
    in(O1, X), in(O2, X), in(O3, X),
    shape(O1, cylinder), shape(O2, cylinder), shape(O3, cylinder),
    material(O1, metal), material(O2, metal), material(O3, metal),
    rightside(O1), rightside(O2), rightside(O3).
