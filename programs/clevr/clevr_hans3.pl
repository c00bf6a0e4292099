% CLEVR-Hans3: three classes of scenes. Class 1 has a large cube and a large cylinder; class 2 has a
% small metal cube and a small sphere; class 3 has a large blue sphere and a small yellow sphere.

:- use_module(library(nsfr)).
:- include('clevr.pl').

:- semantics(paper).
:- perception(yolo_clevr).

:- pred(kp1(image)).
:- pred(kp2(image)).
:- pred(kp3(image)).

:- classes([kp1(img), kp2(img), kp3(img)]).

kp1(X) :-
    in(O1, X), in(O2, X),
    size(O1, large), shape(O1, cube),
    size(O2, large), shape(O2, cylinder).

kp2(X) :-
    in(O1, X), in(O2, X),
    size(O1, small), material(O1, metal), shape(O1, cube),
    size(O2, small), shape(O2, sphere).

kp3(X) :-
    in(O1, X), in(O2, X),
    size(O1, large), color(O1, blue), shape(O1, sphere),
    size(O2, small), color(O2, yellow), shape(O2, sphere).
