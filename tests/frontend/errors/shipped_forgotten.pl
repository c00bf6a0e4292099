:- type(object, slots(3)).
:- target(same_shape(obj1, obj2)).
same_shape(A, B) :- shape(A, S), shape(B, S), closeby(A, B).
