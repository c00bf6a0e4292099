:- include('vocabulary.pl').
:- target(same_tones(obj1, obj2)).
same_tones(A, B) :- same_tone(A, B).
