/*  The nsfrc language in SWI-Prolog.

    Load a program and the facts of one image (`in(obj1, img).  color(obj1, red).  ...`), then ask:

        swipl -p library=programs programs/kandinsky/twopairs.pl facts.pl
        ?- kp(img).

    `-p library=DIR` adds the folder of this file to SWI-Prolog's own library folders. Facts can be
    asserted as well; answers follow them.

    Plain Prolog would answer wrongly: in nsfrc two variables of a clause stand for two different
    objects. While a file that uses library(nsfr) is read, its declarations and clauses are set aside;
    at its end every clause is rewritten by the rules of the language and compiled:

        diff(X, Y) :- color(X, Z), color(Y, W), diff_color(Z, W).

        diff(X, Y) :- color(X, Z), memberchk(X, [obj1,obj2]), memberchk(Z, [red,blue]), X \== Z,
                      color(Y, W), memberchk(Y, [obj1,obj2]), memberchk(W, [red,blue]), X \== Y,
                      Z \== W, Y \== W, diff_color(Z, W).

    - variables that occur only in the body and share a datatype take pairwise different constants;
    - no atom holds with the same constant twice, be it in the head or in the body;
    - a variable takes only constants of its datatype, and tests such as dif/2 see constants only;
    - `X = Y` makes one variable of two.

    Predicates with clauses are tabled, so recursion such as path/2 ends. Neural predicates are dynamic.
*/
:- module(nsfr, []).
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
read_term_of(Clause, Source, []) :- assertz(stored(Source, Clause)).

%   A vocabulary that is not beside the including file is looked for among the shipped ones.
shipped(File, Path) :-
    prolog_load_context(directory, Here),
    \+ found(File, Here, _),
    module_property(nsfr, file(Shim)),
    file_directory_name(Shim, Programs),
    member(Folder, [kandinsky, clevr]),
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
    assertz(declared(Source, type, Name-Slots)).
declaration(type(Name, Constants), Source) :- assertz(declared(Source, type, Name-Constants)).
declaration(pred(Signature), Source) :- assertz(declared(Source, pred, Signature)).
declaration(neural(Signature), Source) :- assertz(declared(Source, neural, Signature)).
declaration(Setting, _) :- setting(Setting).

setting(target(_)).
setting(query(_)).
setting(steps(_)).
setting(gamma(_)).
setting(perception(_)).
setting(threshold(_)).

signature(Source, Name, Arity, Types) :-
    ( declared(Source, pred, Signature) ; declared(Source, neural, Signature) ),
    Signature =.. [Name|Types],
    length(Types, Arity).


%   The end of the file: from everything set aside to directives and rewritten clauses.

finish(Source, Terms) :-
    findall(Clause, (stored(Source, Stored), plain_clause(Stored, Clause)), Clauses),
    findall(Type, declared(Source, type, Type), Types),
    typed_clauses(Source, Types, Clauses, Typed),
    findall(Key-Rewritten,
            ( member(Rule, Typed), rewritten(Rule, Types, Key, Rewritten) ),
            Pairs),
    group_by_predicate(Pairs, Rewrites),
    directives(Source, Pairs, Directives),
    append(Directives, Rewrites, Terms),
    retractall(stored(Source, _)),
    retractall(declared(Source, _, _)),
    retractall(reading(Source)).

%!  plain_clause(+Clause, -Plain) is nondet.
%
%   Plain = rule(Head, Atoms, Tests); one for every way through the disjunctions of the body, with
%   its equalities solved.

plain_clause((Head :- Body), rule(Head, Atoms, Tests)) :- !,
    way(Body, Goals, []),
    convlist(as_test, Goals, Tests),
    exclude(is_test, Goals, Atoms).
plain_clause(Head, rule(Head, [], [])).

way(Goal) --> { var(Goal) }, !, [call(Goal)].
way((A, B)) --> !, way(A), way(B).
way((A ; B)) --> !, ( way(A) ; way(B) ).
way(A = B) --> !, { A = B }.
way(true) --> !, [].
way(fail) --> !, { fail }.
way(false) --> !, { fail }.
way(Goal) --> [Goal].

%   A test is decided when all variables are bound, wherever it stands in the body.
is_test(Goal) :- as_test(Goal, _).

as_test(Goal, Goal) :-
    functor(Goal, Name, Arity),
    memberchk(Name/Arity, [(\=)/2, (==)/2, (\==)/2, dif/2, (\+)/1, call/1]).
as_test(Goal, catch(Goal, error(evaluation_error(_), _), fail)) :-      % X / 0 is no number at all
    functor(Goal, Name, 2),
    memberchk(Name, [<, >, =<, >=, =:=, =\=]).

%   Rules of one predicate together, predicates in order of appearance.
group_by_predicate([], []).
group_by_predicate([Key-Rule|Pairs], Rules) :-
    partition(has_key(Key), Pairs, Same, Others),
    pairs_values(Same, More),
    append([Rule|More], Rest, Rules),
    group_by_predicate(Others, Rest).

has_key(Key, Key-_).

directives(Source, Pairs, [(:- dynamic(Open, [incremental(true), multifile(true), discontiguous(true)])),
                           (:- dynamic(Empty, [incremental(true)]))|Tables]) :-
    findall(Name/Arity, (declared(Source, neural, S), functor(S, Name, Arity)), Open),
    findall(Key, (member(Key-_, Pairs), \+ memberchk(Key, Open)), Defined),
    findall(Name/Arity, ( declared(Source, pred, S), functor(S, Name, Arity),
                          \+ memberchk(Name/Arity, Defined) ), Empty),
    findall((:- table(as(Key, incremental))),
            ( member(Key-(_ :- _), Pairs), \+ memberchk(Key, Open) ), Repeated),
    list_to_set(Repeated, Tables).


%   Datatypes of variables. Types are logic variables until known: all occurrences of a predicate share
%   its argument types, all occurrences of a variable share its type, so unification infers the rest.

typed_clauses(Source, Types, Clauses, Typed) :-
    findall(key(Name, Arity)-Ts, signature(Source, Name, Arity, Ts), Known),
    foldl(type_clause, Clauses, Typed, Known, Signatures),
    maplist(type_constants(Types, Signatures), Typed).

type_clause(rule(Head, Atoms, Tests), typed(Head, Atoms, Tests, VarTypes), Known, Signatures) :-
    term_variables(Head-Atoms-Tests, Vars),
    maplist(with_type, Vars, VarTypes),
    foldl(type_atom(VarTypes), [Head|Atoms], Known, Signatures).

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
type_constants(Types, Signatures, typed(Head, Atoms, _, _)) :-
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

%!  rewritten(+Typed, +Types, -Key, -Clause) is semidet.
%
%   Fails for a clause that can never fire because one of its atoms repeats an argument.

rewritten(typed(Head, [], [], _), _, Name/Arity, Head) :-
    ground(Head), !,
    functor(Head, Name, Arity),
    different_arguments(Head, _).
rewritten(typed(Head, Atoms, Tests, VarTypes), Types, Name/Arity, (Head :- Body)) :-
    functor(Head, Name, Arity),
    maplist(different_arguments, [Head|Atoms], PairLists),
    append(PairLists, ArgumentPairs),
    body_only_pairs(Head, VarTypes, BodyPairs),
    append(ArgumentPairs, BodyPairs, AllPairs),
    distinct_pairs(AllPairs, Pairs),
    guarded(Atoms, [], Bound, Pairs, Left, VarTypes, Types, Goals, Tail),
    term_variables(Head-Tests, Vars),
    exclude(is_bound(Bound), Vars, Free),
    generated(Free, VarTypes, Types, Left, Tail, Tests),
    conjunction(Goals, Body).

%   Pairs of arguments of an atom that must differ; fails where they never can.
different_arguments(Atom, Pairs) :-
    Atom =.. [_|Args],
    unordered_pairs(Args, All),
    \+ ( member(A-B, All), A == B ),
    exclude(ground, All, Pairs).

body_only_pairs(Head, VarTypes, Pairs) :-
    term_variables(Head, HeadVars),
    exclude(head_variable(HeadVars), VarTypes, BodyOnly),
    unordered_pairs(BodyOnly, All),
    convlist(same_type, All, Pairs).

head_variable(HeadVars, Var-_) :- is_bound(HeadVars, Var).

same_type((V-T)-(W-U), V-W) :- T == U.

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
