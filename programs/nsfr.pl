/*  The nsfrc language in SWI-Prolog.

    Load a program and the facts of one image (`in(obj1, img).  color(obj1, red).  ...`), then ask:

        swipl -p library=programs programs/kandinsky/twopairs.pl facts.pl
        ?- kp(img).

    `-p library=DIR` adds the folder of this file to SWI-Prolog's own library folders. Facts can be
    asserted as well; answers follow them.

    Plain Prolog would answer wrongly: in nsfrc two variables of a clause stand for two different
    objects. While a file that uses library(nsfr) is read, its declarations and clauses are set aside;
    at its end every clause is rewritten by the rules of the language and compiled:

        pair(X) :- in(O, X), in(P, X), color(O, Z), color(P, W), likes(Z, W).

        pair(X) :- in(O, X), memberchk(O, [obj1,obj2]), memberchk(X, [img]),
                   in(P, X), memberchk(P, [obj1,obj2]), O \== P,
                   color(O, Z), memberchk(Z, [red,blue]), color(P, W), memberchk(W, [red,blue]),
                   likes(Z, W).

    - all variables of a clause that stand for objects of one datatype take pairwise different constants;
    - no atom holds with the same object twice, be it in the head or in the body;
    - variables of other datatypes may share a constant, and atoms may repeat one;
    - a variable takes only constants of its datatype, and tests such as dif/2 see constants only;
    - `X = Y` makes one variable of two, and `N is X + Y` holds for constants that are those numbers;
    - what stands in `\+ Goal`, `forall(Goal, Then)` or `aggregate_all(count, Goal, N)` becomes a predicate
      of its own, whose arguments are the variables that it shares with the rest of the clause. All other
      variables in it are its own. N counts the different values of these, not the proofs, and
      `findall(_, Goal, L), length(L, N)` is the same:

        lonely(O) :- in(O, X), \+ (in(P, X), near(P, O)).

        lonely(O) :- in(O, X), ..., \+ 'inner 1'(X, O).
        'inner 1'(X, O) :- in(P, X), ..., O \== P, near(P, O).

    Objects are the constants of datatypes declared with slots(N), and of the datatype `object`.

    A program that says `:- semantics(paper).` has the rules of the paper instead of the first three:

    - variables that occur only in the body and share a datatype, of whatever kind, take pairwise
      different constants;
    - no atom holds with the same constant of a datatype twice.

    A datatype that says `from_perception` takes any constant, written as facts have it, since what a model
    calls its classes is not known here. `model`, `presence` and `perception` say nothing here.

    Predicates with clauses are tabled, so recursion such as path/2 ends. Neural predicates are dynamic.

    Numbers are facts with one more argument, `area(obj1, 0.3).`, and a comparison asks for them:

        big(A) :- area(A) > 0.3.               big(A) :- member(A, [obj1,obj2]), area(A, V), V > 0.3.

    A clause with a probability from 0.5 on counts as one without, and one below 0.5 as none.
*/
:- module(nsfr, [op(450, xfx, ..), op(990, xfx, ::)]).
:- use_module(library(aggregate)).
:- use_module(library(apply)).
:- use_module(library(filesex)).
:- use_module(library(lists)).
:- use_module(library(pairs)).

:- dynamic
    awaited/0,          % the next term comes from the file that loaded this one
    reading/1,          % Source: a file in the language is being read
    declared/3,         % Source, what, arguments
    stored/2.           % Source, Clause

:- initialization(assertz(awaited)).


%   Reading: set declarations and clauses aside, compile them at the end of the file.

begin(_, Source) :- reading(Source), !.
begin(_, Source) :- retract(awaited), !, assertz(reading(Source)).
begin((:- use_module(library(nsfr))), Source) :- assertz(reading(Source)).

read_term_of(Term, _, _) :- var(Term), !, fail.
read_term_of((:- include(File)), _, (:- include(Path))) :- !, shipped(File, Path).
read_term_of((:- Directive), Source, []) :- !, declaration(Directive, Source).
read_term_of((?- _), _, []) :- !.
read_term_of((_ --> _), _, _) :- !, fail.
read_term_of(query(_), Source, []) :- \+ signature(Source, query, 1, _), !.
read_term_of(end_of_file, Source, Expansion) :- !,
    prolog_load_context(file, Source),          % not the end of an included file
    finish(Source, Terms),
    append(Terms, [end_of_file], Expansion).
read_term_of(Clause, Source, []) :-
    forall(likely(Clause, Source, Plain), assertz(stored(Source, Plain))).

%!  likely(+Clause, +Source, -Plain) is nondet.
%
%   The clauses without probabilities that a clause stands for; heads that are left without one are noted.

likely((Heads :- Body), Source, (Head :- Body)) :- annotated(Heads), !, likely_head(Heads, Source, Head).
likely((Head :- Body), _, (Head :- Body)) :- !.
likely(Heads, Source, Head) :- annotated(Heads), !, likely_head(Heads, Source, Head).
likely(Fact, _, Fact).

annotated(Heads) :- nonvar(Heads), ( Heads = (_ :: _) ; Heads = (Head ; _), annotated(Head) ), !.

likely_head((A ; B), Source, Head) :- !, ( likely_head(A, Source, Head) ; likely_head(B, Source, Head) ).
likely_head(P :: Head, Source, Head) :-
    functor(Head, Name, Arity),
    assertz(declared(Source, annotated, Name/Arity)),
    ( nonvar(P), P = t(Q) -> true ; Q = P ),
    ( var(Q) -> true ; Q >= 0.5 ).

%   A vocabulary that is not beside the including file is looked for among the shipped ones.
shipped(File, Path) :-
    prolog_load_context(directory, Here),
    \+ found(File, Here, _),
    module_property(nsfr, file(Shim)),
    file_directory_name(Shim, Programs),
    member(Folder, [kandinsky, clevr, library, examples]),
    directory_file_path(Programs, Folder, There),
    found(File, There, Path),
    !.

found(File, Folder, Path) :-
    absolute_file_name(File, Path, [ relative_to(Folder), extensions(['', pl]),
                                     access(read), file_errors(fail) ]).

declaration((A, B), Source) :- !, declaration(A, Source), declaration(B, Source).
declaration(type(Name, slots(N)), Source) :- integer(N), !,
    ( Name == object -> Stem = obj ; Stem = Name ),
    findall(Slot, (between(1, N, I), atom_concat(Stem, I, Slot)), Slots),
    assertz(declared(Source, type, Name-Slots)),
    ( Name == image -> true ; assertz(declared(Source, objects, Name)) ).
declaration(type(Name, slots(auto)), Source) :- !, declaration(type(Name, slots(10)), Source).
declaration(type(_, from_perception), _) :- !.  % open: nobody knows its constants here
declaration(type(Name, From..To), Source) :- !,
    findall(Number, between(From, To, Number), Numbers),
    declaration(type(Name, Numbers), Source).
declaration(type(Name, Constants), Source) :- !,
    assertz(declared(Source, type, Name-Constants)),
    ( Name == object -> assertz(declared(Source, objects, Name)) ; true ).
declaration(attributes(Pairs), Source) :- !,
    forall(member(Name-Constants, Pairs), declaration(type(Name, Constants), Source)).
declaration(semantics(Semantics), Source) :- !, assertz(declared(Source, semantics, Semantics)).
declaration(pred(Signature), Source) :- assertz(declared(Source, pred, Signature)).
declaration(neural(Signature), Source) :- assertz(declared(Source, neural, Signature)).
declaration(number(Signature), Source) :- !, assertz(declared(Source, number, Signature)).
declaration(Setting, _) :- setting(Setting).

setting(target(_)).
setting(query(_)).
setting(steps(_)).
setting(gamma(_)).
setting(perception(_)).
setting(threshold(_)).
setting(threshold(_, _)).
setting(classes(_)).
setting(model(_)).
setting(presence(_)).
setting(learn(_)).
setting(vars(_, _)).
setting(body(_)).
setting(body(_, _)).

signature(Source, Name, Arity, Types) :-
    ( declared(Source, pred, Signature) ; declared(Source, neural, Signature) ),
    Signature =.. [Name|Types],
    length(Types, Arity).


%   The end of the file: from everything set aside to directives and rewritten clauses.

finish(Source, Terms) :-
    findall(Clause, (stored(Source, Stored), clause_of(Stored, Source, Clause)), Clauses),
    findall(Type, declared(Source, type, Type), Types),
    typed_clauses(Source, Types, Clauses, Typed, Signatures),
    kept_apart(Source, Apart),
    findall(Key-Rewritten,
            ( member(Rule, Typed), rewritten(Rule, Types, Signatures, Apart, Key, Rewritten) ),
            Pairs),
    group_by_predicate(Pairs, Rewrites),
    directives(Source, Typed, Pairs, Directives),
    append(Directives, Rewrites, Terms),
    retractall(stored(Source, _)),
    retractall(declared(Source, _, _)),
    retractall(reading(Source)).

%!  kept_apart(+Source, -Apart) is det.
%
%   Apart = paper, where the constants of every datatype are kept apart, or objects(Types).

kept_apart(Source, paper) :- declared(Source, semantics, paper), !.
kept_apart(Source, objects(Types)) :- findall(Type, declared(Source, objects, Type), Types).

apart(paper, _).
apart(objects(Types), Type) :- nonvar(Type), memberchk(Type, Types).

%!  clause_of(+Clause, +Source, -Plain) is nondet.
%
%   Plain = rule(Head, Atoms, Inner, Tests, Numbers); one for every way through the disjunctions of the body,
%   with its equalities solved, each followed by those of the goals within its goals. Inner are
%   none(Atom), which holds where Atom does not, and number(Shared, Atom, N): Atom has N solutions.

clause_of(Clause, Source, Plain) :-
    plain_clause(Clause, Source, Rule, Inner),
    (   Plain = Rule
    ;   member(Within, Inner),
        clause_of(Within, Source, Plain)
    ).

plain_clause((Head :- Body), Source, rule(Head, Atoms, Inner, Tests, Numbers), Clauses) :- !,
    way(Body, Goals0, []),
    lengths(Goals0, Goals),
    partition(is_inner(Source), Goals, InnerGoals, Written),
    phrase(measured(Written, Source, Plain), Measured),
    pairs_keys_values(Measured, Measurements, Numbers),
    convlist(computation(Source), Plain, Computations),
    exclude(computed(Source), Plain, Others),
    convlist(as_test, Others, OtherTests),
    append([Measurements, Computations, OtherTests], Tests),    % what is tested may have been computed
    exclude(is_test, Others, Atoms),
    convlist(counted_number, InnerGoals, CountedNumbers),
    term_variables(Head-Atoms-Tests-CountedNumbers, Bound),
    maplist(inner(Source, Bound), InnerGoals, Unsorted, Clauses),
    partition(is_number, Unsorted, Counts, Negations),
    append(Counts, Negations, Inner).
plain_clause(Head, _, rule(Head, [], [], [], []), []).

%   findall(_, Goal, List), length(List, N) counts.
lengths(Goals, [aggregate_all(count, Goal, N)|Rest]) :-
    select(findall(_, Goal, List), Goals, Goals1),
    select(length(Same, N), Goals1, Goals2),
    Same == List, !,
    lengths(Goals2, Rest).
lengths(Goals, Goals).

is_inner(_, \+ _) :- !.
is_inner(Source, Goal) :-
    memberchk(Goal, [forall(_, _), aggregate_all(count, _, _)]),
    functor(Goal, Name, Arity),
    \+ own(Source, Name, Arity).

counted_number(aggregate_all(count, _, N), N).

is_number(number(_, _, _)).

%!  inner(+Source, +Bound, +Goal, -Inner, -Clause) is det.
%
%   Clause defines a new predicate with Goal as its body; Inner is what takes the place of Goal.

inner(Source, Bound, forall(Goal, Then), Inner, Clause) :- !,
    inner(Source, Bound, \+ (Goal, \+ Then), Inner, Clause).
inner(_, Bound, \+ Goal, none(Head), (Head :- Goal)) :- !,
    shared(Bound, Goal, Shared),
    new_head(Shared, Head).
inner(Source, Bound, aggregate_all(count, Goal, N), number(Shared, Call, N), (Head :- Goal)) :-
    shared(Bound, Goal, Shared),
    assigned(Goal, Source, Mentioned, []),
    term_variables(Mentioned, Vars),
    exclude(is_bound(Shared), Vars, Own),
    append(Shared, Own, Args),
    new_head(Args, Head),
    copy_term(Shared-Head, Shared-Call).            % the clause itself has no part in what is counted

shared(Bound, Goal, Shared) :-
    term_variables(Goal, Vars),
    include(is_bound(Bound), Vars, Shared).

new_head(Args, Head) :-
    flag(nsfr_inner, N, N + 1),
    atom_concat('inner ', N, Name),
    Head =.. [Name|Args].

%   The atoms whose variables a solution assigns: not those of goals within the goal, nor of tests.
assigned(Goal, _) --> { var(Goal) }, !.
assigned((A, B), Source) --> !, assigned(A, Source), assigned(B, Source).
assigned((A ; B), Source) --> !, assigned(A, Source), assigned(B, Source).
assigned(Goal, Source) -->
    (   { is_inner(Source, Goal) ; is_test(Goal) ; computed(Source, Goal)
        ; memberchk(Goal, [_ = _, true, fail, false, findall(_, _, _), length(_, _)]) }
    ->  []
    ;   [Goal]
    ).

way(Goal) --> { var(Goal) }, !, [call(Goal)].
way((A, B)) --> !, way(A), way(B).
way((A ; B)) --> !, ( way(A) ; way(B) ).
way(A = B) --> !, { A = B }.
way(true) --> !, [].
way(fail) --> !, { fail }.
way(false) --> !, { fail }.
way(Goal) --> [Goal].

%   Goals without measured numbers, in whose place variables stand, and Measurement-Number for each of these.
measured([], _, []) --> [].
measured([Goal|Goals], Source, Others) -->
    { relation(Source, Goal, Number, Value) }, !,
    { fact_of(Number, Found, Fact) },
    [(Fact, ( var(Value) -> Value = Found ; Value =:= Found ))-Number],
    measured(Goals, Source, Others).
measured([Goal|Goals], Source, [New|Others]) -->
    { compares(Goal) }, !,
    lifted(Goal, Source, Lifted, Are),
    { Are == some, Lifted = (Name is Value) -> New = measured_is(Name, Value) ; New = Lifted },
    measured(Goals, Source, Others).
measured([Goal|Goals], Source, [Goal|Others]) --> measured(Goals, Source, Others).

compares(Goal) :-
    compound(Goal),
    functor(Goal, Name, Arity),
    memberchk(Name/Arity, [(<)/2, (>)/2, (=<)/2, (>=)/2, (=:=)/2, (=\=)/2, (is)/2, between/3]).

%   A term with variables for numbers; Are = some if there are any.
lifted(Term, _, Term, _) --> { \+ compound(Term) }, !.
lifted(Term, Source, Value, some) -->
    { functor(Term, Name, Arity), number_of(Source, Name, Arity, _) }, !,
    { fact_of(Term, Value, Fact) },
    [Fact-Term].
lifted(Term, Source, Lifted, Are) -->
    { Term =.. [Name|Args] },
    all_lifted(Args, Source, New, Are),
    { Lifted =.. [Name|New] }.

all_lifted([], _, [], _) --> [].
all_lifted([Arg|Args], Source, [New|More], Are) -->
    lifted(Arg, Source, New, Are),
    all_lifted(Args, Source, More, Are).

%   area(A, V) is about the number area(A), unless the program has a predicate area/2.
relation(Source, Goal, Number, Value) :-
    compound(Goal),
    Goal =.. [Name|Args],
    append([Thing|Things], [Value], Args),
    length([Thing|Things], Arity),
    number_of(Source, Name, Arity, _),
    length(Args, Longer),
    \+ own(Source, Name, Longer),
    Number =.. [Name,Thing|Things].

fact_of(Number, Value, Fact) :-
    Number =.. Parts,
    append(Parts, [Value], More),
    Fact =.. More.

%   Numbers that are declared, and those of boxes, of the one type of objects.
number_of(Source, Name, Arity, Types) :-
    declared(Source, number, Signature),
    Signature =.. [Name|Types],
    length(Types, Arity), !.
number_of(Source, Name, 1, [Type]) :-
    memberchk(Name, [x, y, x1, y1, x2, y2, width, height, area, confidence]),
    \+ own(Source, Name, 1),
    findall(Objects, declared(Source, objects, Objects), [Type]).

%   A test is decided when all variables are bound, wherever it stands in the body.
is_test(Goal) :- as_test(Goal, _).

as_test(Goal, Goal) :-
    functor(Goal, Name, Arity),
    memberchk(Name/Arity, [(\=)/2, (==)/2, (\==)/2, dif/2, call/1]).
as_test(Goal, Test) :-
    functor(Goal, Name, 2),
    memberchk(Name, [<, >, =<, >=, =:=, =\=]),
    defined_numbers(Goal, Test).

%   X / 0 is no number at all.
defined_numbers(Goal, catch(Goal, error(evaluation_error(_), _), fail)).

%   Goals that compute whole numbers, unless the program has predicates of these names.
computed(Source, Goal) :- computation(Source, Goal, _).

computation(_, N is Value, Test) :- !, defined_numbers(N is Value, Test).
computation(_, measured_is(N, Value), Test) :- !,
    defined_numbers((Found is Value, ( var(N) -> N = Found ; N =:= Found )), Test).
computation(Source, Goal, Test) :-
    number_goal(Goal, Meaning),
    functor(Goal, Name, Arity),
    \+ own(Source, Name, Arity),
    defined_numbers(Meaning, Test).

number_goal(succ(M, N), N is M + 1).
number_goal(plus(L, M, N), N is L + M).
number_goal(between(L, H, N), (L =< N, N =< H)).

own(Source, Name, Arity) :- signature(Source, Name, Arity, _), !.
own(Source, Name, Arity) :-
    functor(Head, Name, Arity),
    ( stored(Source, Head) ; stored(Source, (Head :- _)) ), !.

%   Rules of one predicate together, predicates in order of appearance.
group_by_predicate([], []).
group_by_predicate([Key-Rule|Pairs], Rules) :-
    partition(has_key(Key), Pairs, Same, Others),
    pairs_values(Same, More),
    append([Rule|More], Rest, Rules),
    group_by_predicate(Others, Rest).

has_key(Key, Key-_).

directives(Source, Within, Pairs, [(:- dynamic(Open, [incremental(true), multifile(true), discontiguous(true)])),
                           (:- dynamic(Empty, [incremental(true)]))|Tables]) :-
    findall(Name/Arity, ( declared(Source, neural, S), functor(S, Name, Arity)
                        ; fact_key(Source, Name, Arity) ), Open),
    findall(Key, (member(Key-_, Pairs), \+ memberchk(Key, Open)), Defined),
    findall(Name/Arity, ( named(Source, Within, Name, Arity), \+ memberchk(Name/Arity, Defined) ), Empty),
    findall((:- table(as(Key, incremental))),
            ( member(Key-(_ :- _), Pairs), \+ memberchk(Key, Open) ), Repeated),
    list_to_set(Repeated, Tabled),
    findall((:- redefine_system_predicate(Head)),       % between/3 of objects, in the place of Prolog's own
            ( member(Name/Arity, Defined), functor(Head, Name, Arity), predicate_property(system:Head, defined) ),
            Again),
    list_to_set(Again, Redefined),
    append(Redefined, Tabled, Tables).


%   Predicates that are asked about whether or not something defines them.
named(Source, _, Name, Arity) :- declared(Source, annotated, Name/Arity).
named(Source, _, Name, Arity) :- declared(Source, pred, Signature), functor(Signature, Name, Arity).
named(_, Typed, Name, Arity) :-
    member(typed(_, _, Inner, _, _), Typed),
    member(One, Inner),
    looks_at(One, Atom),
    functor(Atom, Name, Arity).

%   Which facts say numbers: area/2.
fact_key(Source, Name, Longer) :-
    (   declared(Source, number, Signature),
        functor(Signature, Name, Arity)
    ;   Arity = 1,
        member(Name, [x, y, x1, y1, x2, y2, width, height, area, confidence]),
        number_of(Source, Name, 1, _)
    ),
    Longer is Arity + 1,
    \+ own(Source, Name, Longer).


%   Datatypes of variables. Types are logic variables until known: all occurrences of a predicate share
%   its argument types, all occurrences of a variable share its type, so unification infers the rest.

typed_clauses(Source, Types, Clauses, Typed, Signatures) :-
    findall(key(Name, Arity)-Ts, ( signature(Source, Name, Arity, Ts)
                                 ; member(rule(_, _, _, _, Numbers), Clauses), member(Number, Numbers),
                                   functor(Number, Name, Arity), number_of(Source, Name, Arity, Ts) ), Known),
    foldl(type_clause, Clauses, Typed, Known, Signatures),
    maplist(type_constants(Types, Signatures), Typed).

type_clause(rule(Head, Atoms, Inner, Tests, Numbers), typed(Head, Atoms, Inner, Tests, VarTypes), Known, Signatures) :-
    term_variables(Head-Atoms-Inner-Tests, Vars),
    maplist(with_type, Vars, VarTypes),
    maplist(looks_at, Inner, Within),
    append([[Head|Atoms], Within, Numbers], All),
    foldl(type_atom(VarTypes), All, Known, Signatures).

looks_at(none(Atom), Atom).
looks_at(number(_, Atom, _), Atom).

with_type(Var, Var-_).

type_atom(VarTypes, Atom, Known, Signatures) :-
    Atom =.. [Name|Args],
    length(Args, Arity),
    (   memberchk(key(Name, Arity)-Types, Known)
    ->  Signatures = Known
    ;   length(Types, Arity),
        Signatures = [key(Name, Arity)-Types|Known]
    ),
    maplist(type_argument(VarTypes), Args, Types).

type_argument(VarTypes, Arg, Type) :-
    (   var(Arg), type_of(Arg, VarTypes, Type0), Type0 = Type -> true ; true ).

%   A constant of one datatype only types the argument it stands at.
type_constants(Types, Signatures, typed(Head, Atoms, _, _, _)) :-
    constants_of([Head|Atoms], Types, Signatures).

constants_of([], _, _).
constants_of([Atom|Atoms], Types, Signatures) :-
    Atom =.. [Name|Args],
    length(Args, Arity),
    memberchk(key(Name, Arity)-ArgTypes, Signatures),
    maplist(type_constant(Types), Args, ArgTypes),
    constants_of(Atoms, Types, Signatures).

type_constant(Types, Arg, Type) :-
    (   nonvar(Arg), var(Type),
        findall(Name, (member(Name-Constants, Types), memberchk(Arg, Constants)), [Only])
    ->  Type = Only
    ;   true
    ).

type_of(Var, [V-Type|Rest], Found) :- ( V == Var -> Found = Type ; type_of(Var, Rest, Found) ).


%   Rewriting one clause.

%!  rewritten(+Typed, +Types, +Signatures, +Apart, -Key, -Clause) is semidet.
%
%   Fails for a clause that can never fire because one of its atoms repeats an argument.

rewritten(typed(Head, [], [], [], _), _, Signatures, Apart, Name/Arity, Head) :-
    ground(Head), !,
    functor(Head, Name, Arity),
    different_arguments(Signatures, Apart, Head, _).
rewritten(typed(Head, Atoms, Inner, Tests, VarTypes), Types, Signatures, Apart, Name/Arity, (Head :- Body)) :-
    functor(Head, Name, Arity),
    maplist(different_arguments(Signatures, Apart), [Head|Atoms], PairLists),
    append(PairLists, ArgumentPairs),
    term_variables(Head-Atoms-Tests, Own),          % objects whose numbers are compared, too
    include(typed_one_of(Own), VarTypes, OwnTypes),
    different_variables(Apart, Head, OwnTypes, VariablePairs),
    append(ArgumentPairs, VariablePairs, AllPairs),
    distinct_pairs(AllPairs, Pairs),
    guarded(Atoms, [], Bound, Pairs, Left, VarTypes, Types, Goals, Tail),
    maplist(outside, Inner, Outside),
    term_variables(Head-Tests-Outside, Vars),
    exclude(is_bound(Bound), Vars, Free),
    maplist(inner_goal, Inner, InnerGoals),
    include(has_type(VarTypes), Free, Generated),
    append(Bound, Generated, Known),
    in_order(Known, InnerGoals, Tests, After),
    generated(Generated, VarTypes, Types, Left, Tail, After),
    conjunction(Goals, Body).

typed_one_of(Vars, Var-_) :- is_bound(Vars, Var).

has_type(VarTypes, Var) :- type_of(Var, VarTypes, Type), nonvar(Type).

%   The variables of the clause that an inner goal has to know.
outside(none(Atom), Atom).
outside(number(Shared, _, N), Shared-N).

inner_goal(none(Atom), \+ Atom).
inner_goal(number(_, Atom, N), aggregate_all(count, Atom, N)).       % a table has every answer once

%   What is computed of constants, then counts, which give numbers, what is computed of these, and negations,
%   which may ask about all of it.
in_order(Bound, InnerGoals, Tests, Goals) :-
    partition(is_negation, InnerGoals, Negations, Counts),
    numbers_of(Counts, Numbers),
    exclude(is_bound(Bound), Numbers, Late),
    partition(mentions(Late), Tests, LateTests, EarlyTests),
    append([EarlyTests, Counts, LateTests, Negations], Goals).

is_negation(\+ _).

numbers_of(Counts, Numbers) :-
    maplist(arg(3), Counts, Terms),
    term_variables(Terms, Numbers).

mentions(Vars, Term) :-
    term_variables(Term, Mentioned),
    member(Var, Mentioned),
    is_bound(Vars, Var), !.

%   Pairs of arguments of an atom that must differ, those of one datatype; fails where they never can.
different_arguments(Signatures, Apart, Atom, Pairs) :-
    Atom =.. [Name|Args],
    length(Args, Arity),
    memberchk(key(Name, Arity)-Types, Signatures),
    pairs_keys_values(Typed, Args, Types),
    unordered_pairs(Typed, All),
    convlist(same_type(Apart), All, Same),
    \+ ( member(A-B, Same), A == B ),
    exclude(ground, Same, Pairs).

%   Pairs of variables of a clause that must differ; under `paper` those of the head may take any constants.
different_variables(Apart, Head, VarTypes, Pairs) :-
    (   Apart == paper
    ->  term_variables(Head, HeadVars),
        exclude(head_variable(HeadVars), VarTypes, Chosen)
    ;   Chosen = VarTypes
    ),
    unordered_pairs(Chosen, All),
    convlist(same_type(Apart), All, Pairs).

head_variable(HeadVars, Var-_) :- is_bound(HeadVars, Var).

same_type(Apart, (V-T)-(W-U), V-W) :- T == U, apart(Apart, T).

%   Pairs once each, whichever way round, without binding a variable.
distinct_pairs([], []).
distinct_pairs([A-B|Pairs], [A-B|Distinct]) :-
    exclude(same_pair(A-B), Pairs, Others),
    distinct_pairs(Others, Distinct).

same_pair(A-B, C-D) :- ( A-B == C-D ; A-B == D-C ), !.

unordered_pairs([], []).
unordered_pairs([X|Xs], Pairs) :-
    maplist(pair(X), Xs, Here),
    unordered_pairs(Xs, Rest),
    append(Here, Rest, Pairs).

pair(X, Y, X-Y).

%   Every goal binds its variables; what is asked of them follows at once.
guarded([], Bound, Bound, Pairs, Pairs, _, _, Goals, Goals).
guarded([Atom|Atoms], Bound0, Bound, Pairs0, Pairs, VarTypes, Types, [Atom|Goals], Tail) :-
    term_variables(Atom, Vars),
    exclude(is_bound(Bound0), Vars, New),
    append(Bound0, New, Bound1),
    convlist(membership(memberchk, VarTypes, Types), New, Members),
    partition(pair_bound(Bound1), Pairs0, Ready, Pairs1),
    maplist(difference, Ready, Differences),
    append(Members, Differences, Guards),
    append(Guards, Rest, Goals),
    guarded(Atoms, Bound1, Bound, Pairs1, Pairs, VarTypes, Types, Rest, Tail).

%   Variables that no body atom binds run through their datatype.
generated(Free, VarTypes, Types, Pairs, Goals, Tests) :-
    convlist(membership(member, VarTypes, Types), Free, Members),
    maplist(difference, Pairs, Differences),
    append([Members, Differences, Tests], Goals).

membership(How, VarTypes, Types, Var, Goal) :-
    type_of(Var, VarTypes, Type),
    nonvar(Type),
    memberchk(Type-Constants, Types),
    Goal =.. [How, Var, Constants].

difference(A-B, A \== B).

pair_bound(Bound, A-B) :-
    term_variables(A-B, Vars),
    forall(member(Var, Vars), is_bound(Bound, Var)).

is_bound(Bound, Var) :- member(B, Bound), B == Var, !.

conjunction([], true).
conjunction([Goal], Goal) :- !.
conjunction([Goal|Goals], (Goal, Rest)) :- conjunction(Goals, Rest).


%   The hook comes last: SWI-Prolog calls it from the next term on.

:- multifile user:term_expansion/2.
:- dynamic user:term_expansion/2.

user:term_expansion(Term, Expansion) :-
    prolog_load_context(source, Source),
    nsfr:begin(Term, Source),
    nsfr:read_term_of(Term, Source, Expansion).
