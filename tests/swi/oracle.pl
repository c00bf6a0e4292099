% Answers for many worlds in one process. Standard input: a list of targets, then one list of true
% neural atoms for each world. Standard output: one line of 0s and 1s for each world.

answer_worlds :-
    read(Targets),
    repeat,
    read(World),
    (   World == end_of_file
    ->  !
    ;   answer(World, Targets),
        fail
    ).

answer(World, Targets) :-
    abolish_all_tables,
    forall(member(Atom, World), assertz(user:Atom)),
    forall(member(Target, Targets), ( user:Target -> write(1) ; write(0) )),
    nl,
    forall(member(Atom, World), retract(user:Atom)).
