"""Prolog's own predicates: which are refused as goals, why, and what to write instead.

The first tables hold what Prolog reserves: a program cannot define these predicates. Those of the
libraries are refused only where the program defines no predicate of that name itself.
"""

from __future__ import annotations

from nsfrc.compiler.ir import PredicateKey, quoted
from nsfrc.records import dataclass

# Read by `goals`; the others are told apart by name there.
_HANDLED = (
    ",/2 ;/2 true/0 fail/0 false/0 =/2 \\=/2 ==/2 \\==/2 =:=/2 =\\=/2 </2 >/2 =</2 >=/2 dif/2 :-/1 :-/2 -->/2"
    " ::/2 ?-/1 is/2 \\+/1"
)
_NEVER = {
    "every clause is applied at once, so there is no search to steer":
        "!/0 ->/2 *->/2 once/1 repeat/0 catch/3 throw/1 halt/0 halt/1",
    "the facts and clauses of a program are fixed":
        "assert/1 asserta/1 assertz/1 retract/1 retractall/1 abolish/1 consult/1",
    "reasoning has no input or output":
        "write/1 write/2 writeln/1 writeq/1 print/1 write_canonical/1 write_term/2 nl/0 nl/1"
        " format/1 format/2 format/3 read/1 read/2 read_term/2 put_char/1 get_char/1 peek_char/1 open/3"
        " open/4 close/1 tab/1",
    "programs are function-free, so there are no terms to take apart":
        "=../2 functor/3 arg/3 copy_term/2 atom_length/2 atom_chars/2 atom_codes/2 number_codes/2"
        " atom_concat/3 sub_atom/5",
    "a program has one name space": ":/2",
    "it is not a goal": "{}/1 {}/0 []/0",
}
_LATER = "not/1 call/1 findall/3 findall/4 bagof/3 setof/3 @</2 @>/2 @=</2 @>=/2"
_LIBRARY_LATER = (
    "aggregate member memberchk nth0 nth1 append length last select permutation"
    " reverse sort msort sum_list sumlist max_list min_list maplist foldl exclude partition ignore"
    " numlist findnsols exists count"
)

# What to write instead; every name that is refused is in one of these rows.
_INSTEAD = {
    "write alternatives that exclude each other by their own goals":
        "! -> *-> repeat catch throw halt",
    "write the goal itself: one that holds in several ways is about as true as the best of them": "once",
    "write the goal itself: a variable that the head does not mention is 'there is'": "exists",
    "facts go into the file; what changes from image to image is a neural predicate":
        "assert asserta assertz retract retractall abolish consult",
    "the target's value is the answer; nsfrc reason and nsfrc infer print it":
        "write writeln writeq print write_canonical write_term nl format read read_term put_char get_char peek_char"
        " open close tab",
    "write what belongs together as facts, such as kind(obj1, red).":
        "=.. functor arg copy_term atom_length atom_chars atom_codes number_codes atom_concat sub_atom",
    "write the name of a predicate alone": ": {} []",
    "write \\+ in front of the goal, with several goals in parentheses: \\+ (in(O, X), color(O, red))": "not",
    "to count solutions write aggregate_all(count, Goal, N), or findall(_, Goal, L), length(L, N) with L only there":
        "findall findnsols bagof setof aggregate count length sum_list sumlist max_list min_list",
    "list the cases: (C = red ; C = blue), or facts such as warm(red).":
        "member memberchk append nth0 nth1 last select permutation reverse sort msort maplist foldl exclude partition"
        " numlist",
    "write the goal itself": "call ignore",
    "compare numbers with <, or list the order as facts": "@< @> @=< @>=",
}

_SPOKEN = {
    "!": "the cut !", "->": "if-then (->)", "*->": "soft if-then (*->)",
    "is": "'is'", "not": "negation (not)", ":": "module:goal", "{}": "{...}", "[]": "[]", "=..": "=..",
}


def _keys(table: str) -> list[PredicateKey]:
    split = (entry.rpartition("/") for entry in table.split())
    return [(name, int(arity)) for name, _, arity in split]


_REMEDY = {name: instead for instead, names in _INSTEAD.items() for name in names.split()}
_WHY_NEVER = {name: why for why, table in _NEVER.items() for name, _ in _keys(table)}
_LATER_NAMES = {name for name, _ in _keys(_LATER)} | set(_LIBRARY_LATER.split())
_CORE = frozenset(key for table in (_HANDLED, _LATER, *_NEVER.values()) for key in _keys(table))


def is_core(key: PredicateKey) -> bool:
    """Whether Prolog reserves this predicate, so that a program cannot define it."""
    return key in _CORE or (key[0] == "call" and key[1] > 0)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a predicate cannot be a goal: a diagnostic's code and message."""

    code: str
    message: str


def refusal(key: PredicateKey, defined: bool) -> Refusal | None:
    """Why this predicate cannot be a goal; None when it may be one of the program's own."""
    name, arity = key
    if defined and not is_core(key):
        return None
    spoken = _SPOKEN.get(name, f"{quoted(name)}/{arity}")
    if name in _WHY_NEVER:
        return Refusal("not-possible", f"{spoken} is not possible: {_WHY_NEVER[name]}")
    if name in _LATER_NAMES:
        return Refusal("not-supported", f"{spoken} is not supported yet")
    return None


def remedy(name: str) -> str | None:
    """What to write in the place of a goal that is refused."""
    return _REMEDY.get(name)
