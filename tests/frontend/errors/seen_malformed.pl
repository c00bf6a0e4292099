:- type(image, [img]).
:- type(object, slots(some)).
:- type(color, [red]).
:- neural(in(object, image)).
:- neural(color(object, color)).
:- model([names([person, 'traffic light', person]), size(4), colour(3)]).
:- presence(crisp(25)).
:- attributes([color-[red, blue], shape, size-[big, big]]).
:- target(kp(img)).

kp(X) :- in(O, X), color(O, red).
