"""A checked program as plain data, for the header of a .nsfrc file, and back; spans stay behind.

A variable is {"var": "X"}, a constant its name, arithmetic {"op": "+", "args": [...]}, a measured number
{"number": "area", "args": [...]}, an atom [name, term, ...].
What comes back is looked at twice: here that every value is of its kind, in `well_formed` that the parts agree.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from nsfrc.compiler import ir


class Misshapen(Exception):
    """A value is of another kind than it should be; the message names it."""


def to_data(program: ir.Program) -> dict[str, Any]:
    return {
        "name": program.name,
        "types": [{"name": t.name, "constants": t.constants, "role": t.role, "slots": t.slots, "auto": t.auto}
                  for t in program.types],
        "predicates": [
            {"name": p.name, "types": p.types, "role": p.role,
             "count": None if p.count is None else _count_data(p.count),
             "comparison": None if p.comparison is None else _filter_data(p.comparison.test),
             "chance": None if p.chance is None else [p.chance.value, p.chance.learnt]}
            for p in program.predicates
        ],
        "numbers": [{"name": n.name, "types": n.types} for n in program.numbers],
        "facts": [_atom_data(fact) for fact in program.facts],
        "clauses": [
            {"head": _atom_data(c.head), "body": [_atom_data(atom) for atom in c.body],
             "filters": [_filter_data(f) for f in c.filters], "types": c.types}
            for c in program.clauses
        ],
        "targets": [_atom_data(target) for target in program.targets],
        "settings": asdict(program.settings),
        "classes": len(program.classes),
    }


def _count_data(count: ir.Count) -> dict[str, Any]:
    of, less = ([*source.key, source.args] if source else None for source in (count.of, count.less))
    return {"of": of, "less": less, "tests": [_filter_data(test) for test in count.tests]}


def _filter_data(test: ir.Filter) -> list[Any]:
    return [test.op, _term_data(test.left), _term_data(test.right)]


def _atom_data(atom: ir.Atom) -> list[Any]:
    return [atom.name, *(_term_data(arg) for arg in atom.args)]


def _term_data(term: ir.Expr) -> Any:
    if isinstance(term, ir.Var):
        return {"var": term.name}
    if isinstance(term, ir.Const):
        return term.name
    if isinstance(term, ir.Measured):
        return {"number": term.name, "args": [_term_data(arg) for arg in term.args]}
    return {"op": term.op, "args": [_term_data(arg) for arg in term.args]}


def from_data(data: Any) -> ir.Program:
    """The program that `to_data` was given; raises Misshapen, or LookupError where something is missing."""
    whole = _dict(data, "the program")
    targets = tuple(_atom(target) for target in _list(whole["targets"], "the targets"))
    return ir.Program(
        name=_text(whole["name"], "the name"),
        types=tuple(
            ir.DataType(_text(t["name"], "the name of a type"), _texts(t["constants"], "the constants of a type"),
                        _text(t["role"], "the role of a type"), _flag(t["slots"], "whether a type has slots"),
                        auto=_flag(t["auto"], "whether slots are auto"))
            for t in _dicts(whole["types"], "the types")
        ),
        predicates=tuple(
            ir.Predicate(_text(p["name"], "the name of a predicate"), _texts(p["types"], "the types of a predicate"),
                         _text(p["role"], "the role of a predicate"),
                         count=None if p["count"] is None else _count(_dict(p["count"], "a count")),
                         comparison=None if p["comparison"] is None else ir.Comparison(_filter(p["comparison"])),
                         chance=None if p["chance"] is None else _chance(p["chance"]))
            for p in _dicts(whole["predicates"], "the predicates")
        ),
        facts=tuple(_atom(fact) for fact in _list(whole["facts"], "the facts")),
        clauses=tuple(_clause(c) for c in _dicts(whole["clauses"], "the clauses")),
        targets=targets,
        settings=_settings(whole["settings"]),
        classes=_last(targets, whole["classes"]),
        numbers=tuple(
            ir.Number(_text(n["name"], "the name of a number"), _texts(n["types"], "the types of a number"))
            for n in _dicts(whole["numbers"], "the numbers")
        ),
    )


def _clause(data: dict[str, Any]) -> ir.Clause:
    types = []
    for pair in _list(data["types"], "the types of a clause"):
        name, datatype = _several(pair, 2, "a variable with its type")
        types.append((_text(name, "a variable"), _text(datatype, "the type of a variable")))
    filters = tuple(_filter(test) for test in _list(data["filters"], "the tests of a clause"))
    body = tuple(_atom(atom) for atom in _list(data["body"], "a body"))
    return ir.Clause(_atom(data["head"]), body, filters, tuple(types))


def _count(data: dict[str, Any]) -> ir.Count:
    less = None if data["less"] is None else _source(data["less"])
    tests = tuple(_filter(test) for test in _list(data["tests"], "the tests of a count"))
    return ir.Count(_source(data["of"]), less, tests)


def _source(data: Any) -> ir.Source:
    name, arity, args = _several(data, 3, "what is counted")
    if any(type(number) is not int for number in [arity, *_list(args, "the arguments of what is counted")]):
        raise Misshapen("the arguments of what is counted are not whole numbers")
    return ir.Source((_text(name, "the name of a predicate"), arity), tuple(args))


def _chance(data: Any) -> ir.Chance:
    value, learnt = _several(data, 2, "a probability")
    if type(value) not in (int, float):
        raise Misshapen("a probability is not a number")
    return ir.Chance(float(value), _flag(learnt, "whether a probability is learnt"))


def _filter(data: Any) -> ir.Filter:
    op, left, right = _several(data, 3, "a test")
    return ir.Filter(_text(op, "a test"), _term(left), _term(right))


def _atom(data: Any) -> ir.Atom:
    name, *args = _list(data, "an atom") or [None]
    return ir.Atom(_text(name, "the name of an atom"), _terms(args))


def _terms(args: list[Any]) -> tuple[ir.Term, ...]:
    """Variables and constants."""
    terms = []
    for arg in args:
        term = _term(arg)
        if isinstance(term, ir.Compute | ir.Measured):
            raise Misshapen("an atom has arithmetic among its arguments")
        terms.append(term)
    return tuple(terms)


def _term(data: Any) -> ir.Expr:
    if isinstance(data, str):
        return ir.Const(data)
    term = _dict(data, "a term")
    if "var" in term:
        return ir.Var(_text(term["var"], "a variable"))
    if "number" in term:
        return ir.Measured(_text(term["number"], "a number"), _terms(_list(term["args"], "what a number is of")))
    return ir.Compute(_text(term["op"], "an operator"), tuple(_term(arg) for arg in _list(term["args"], "operands")))


def _settings(data: Any) -> ir.Settings:
    settings = _dict(data, "the settings")
    if settings.keys() != {f.name for f in fields(ir.Settings)}:
        raise Misshapen("the settings are not those of this version")
    thresholds = []
    for pair in _list(settings["thresholds"], "the thresholds"):
        name, value = _several(pair, 2, "a target with its threshold")
        thresholds.append((_text(name, "a target with a threshold"), value))
    size = settings["size"]
    attributes = [_several(pair, 2, "an attribute") for pair in _list(settings["attributes"], "the attributes")]
    return ir.Settings(**{
        **settings, "thresholds": tuple(thresholds), "names": _texts(settings["names"], "the names of classes"),
        "size": None if size is None else tuple(_several(size, 2, "the size of images")),
        "attributes": tuple((_text(name, "an attribute"), _texts(values, "the values of an attribute"))
                            for name, values in attributes),
    })


def _last(targets: tuple[ir.Atom, ...], count: Any) -> tuple[ir.Atom, ...]:
    """The classes, which are the last of the targets."""
    if type(count) is not int or not 0 <= count <= len(targets):
        raise Misshapen("the number of classes is not one of the targets")
    return targets[len(targets) - count :]


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise Misshapen(f"{what} is not text")
    return value


def _flag(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise Misshapen(f"{what} is neither true nor false")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise Misshapen(f"{what} is not a list")
    return value


def _several(value: Any, count: int, what: str) -> list[Any]:
    if len(_list(value, what)) != count:
        raise Misshapen(f"{what} has {len(value)} parts, not {count}")
    return value


def _texts(value: Any, what: str) -> tuple[str, ...]:
    return tuple(_text(one, what) for one in _list(value, what))


def _dict(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Misshapen(f"{what} is not an object")
    return value


def _dicts(value: Any, what: str) -> list[dict[str, Any]]:
    return [_dict(one, what) for one in _list(value, what)]
