:- type(image, [img]).
:- type(object, slots(auto)).
:- type(class, from_perception).
:- neural(in(object, image)).
:- neural(class(object, class)).
:- model([names([persn, 'traffic light'])]).
:- target(kp(img)).

kp(X) :- in(O, X), class(O, person).
