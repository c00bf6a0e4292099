:- type(image, [img]).
:- type(object, slots(auto)).
:- type(class, from_perception).
:- neural(in(object, image)).
:- neural(class(object, class)).
:- perception(yolo).
:- target(kp(img)).

kp(X) :- in(O, X), class(O, person).
