:- type(image, [img]).
:- type(object, slots(auto)).
:- neural(in(object, image)).
:- semantics(paper).
:- presence(soft).
:- presence(crisp).
:- target(kp(img)).

kp(X) :- in(O, X).
