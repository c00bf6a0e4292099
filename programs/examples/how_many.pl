% A count as an argument: which number of circles the figure has. `classes` asks for the likeliest.

:- use_module(library(nsfr)).
:- include('kandinsky.pl').
:- perception(yolo).
:- type(object, slots(4)).
:- type(number, 0..4).
:- pred(circles(image, number)).
:- classes([circles(img, 0), circles(img, 1), circles(img, 2), circles(img, 3), circles(img, 4)]).

circles(X, N) :- aggregate_all(count, (in(O, X), shape(O, circle)), N).
