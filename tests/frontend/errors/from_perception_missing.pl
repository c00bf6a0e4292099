:- type(image, [img]).
:- type(object, slots(auto)).
:- type(class, from_perception).
:- neural(in(object, image)).
:- neural(class(object, class)).
:- perception('best.pt').
:- target(kp(img)).

kp(X) :- in(O, X), class(O, person).
