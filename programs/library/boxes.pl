% Where boxes are, and how large, as rules over the numbers of a perception that has boxes. A program includes this file
% with :- include('boxes.pl'). It needs the types object and image and :- neural(in(object, image)).
%
% Numbers go from 0 to 1 across the picture, x to the right and y downwards: the top of the picture is y = 0. Each
% comparison has a temperature of its own, which training can learn; the distances below are a start. What a program
% does not use of this file costs it nothing.

:- use_module(library(nsfr)).

% Two objects: left of, right of, above and below compare the centres.

:- pred(left_of(object, object)).
:- pred(right_of(object, object)).
:- pred(above(object, object)).
:- pred(below(object, object)).

left_of(A, B) :- x(A) < x(B).
right_of(A, B) :- x(A) > x(B).
above(A, B) :- y(A) < y(B).
below(A, B) :- y(A) > y(B).

% One box within the other; boxes with a common part; boxes with a gap of at most 0.02 between them.

:- pred(inside(object, object)).
:- pred(contains(object, object)).
:- pred(overlaps(object, object)).
:- pred(touching(object, object)).

inside(A, B) :- x1(A) >= x1(B), y1(A) >= y1(B), x2(A) =< x2(B), y2(A) =< y2(B).
contains(A, B) :- inside(B, A).
overlaps(A, B) :- x1(A) < x2(B), x1(B) < x2(A), y1(A) < y2(B), y1(B) < y2(A).
touching(A, B) :-
    x1(A) < x2(B) + 0.02, x1(B) < x2(A) + 0.02,
    y1(A) < y2(B) + 0.02, y1(B) < y2(A) + 0.02.

% Centres less than a fifth of the picture apart; on one height; one below the other.

:- pred(near(object, object)).
:- pred(same_row(object, object)).
:- pred(same_column(object, object)).

near(A, B) :- sqrt((x(A) - x(B)) ** 2 + (y(A) - y(B)) ** 2) < 0.2.
same_row(A, B) :- abs(y(A) - y(B)) < 0.05.
same_column(A, B) :- abs(x(A) - x(B)) < 0.05.

% A lies between B and C, in one row with them or in one column.

:- pred(between(object, object, object)).

between(A, B, C) :- same_row(A, B), same_row(A, C), left_of(B, A), left_of(A, C).
between(A, B, C) :- same_row(A, B), same_row(A, C), left_of(C, A), left_of(A, B).
between(A, B, C) :- same_column(A, B), same_column(A, C), above(B, A), above(A, C).
between(A, B, C) :- same_column(A, B), same_column(A, C), above(C, A), above(A, B).

% Sizes.

:- pred(larger(object, object)).
:- pred(smaller(object, object)).

larger(A, B) :- area(A) > area(B).
smaller(A, B) :- area(A) < area(B).

% The one object of the picture that no other one exceeds.

:- pred(largest(object, image)).
:- pred(smallest(object, image)).
:- pred(leftmost(object, image)).
:- pred(rightmost(object, image)).
:- pred(topmost(object, image)).
:- pred(bottommost(object, image)).

largest(O, X) :- in(O, X), \+ (in(P, X), larger(P, O)).
smallest(O, X) :- in(O, X), \+ (in(P, X), smaller(P, O)).
leftmost(O, X) :- in(O, X), \+ (in(P, X), left_of(P, O)).
rightmost(O, X) :- in(O, X), \+ (in(P, X), right_of(P, O)).
topmost(O, X) :- in(O, X), \+ (in(P, X), above(P, O)).
bottommost(O, X) :- in(O, X), \+ (in(P, X), below(P, O)).
