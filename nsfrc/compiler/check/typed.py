"""Names and types of every atom: predicates exist, constants belong, variables have one type."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from nsfrc.compiler.check import arithmetic
from nsfrc.compiler.check.alternatives import Draft
from nsfrc.compiler.check.infer import Signatures
from nsfrc.compiler.check.measures import Comparisons, refuse_rough
from nsfrc.compiler.check.vocabulary import Vocabulary, a, either, listed, name_span, text, where
from nsfrc.compiler.ir import (
    ATTRIBUTE,
    INNER,
    PAPER,
    Atom,
    Clause,
    Compute,
    Const,
    DataType,
    Expr,
    Filter,
    Measured,
    PredicateKey,
    Var,
    quoted,
)
from nsfrc.errors import Span
from nsfrc.records import dataclass


@dataclass(frozen=True, slots=True)
class Use:
    """The first place that gives a variable its type."""

    type: str
    key: PredicateKey
    span: Span | None


class Typing:
    """Checks facts, clauses and targets against the vocabulary and the signatures."""

    def __init__(self, vocabulary: Vocabulary, signatures: Signatures):
        self._vocabulary, self._signatures, self._found = vocabulary, signatures, vocabulary.found
        self._blanks: set[Span | None] = set()  # that were warned of: alternatives share goals
        self._odd: dict[str, tuple[str | None, bool]] = {}
        self.comparisons = Comparisons(vocabulary)
        # How many arguments of what is negated or counted come from the clause around it.
        self._shared = {source.key: len(source.args) for count in vocabulary.counted.values()
                        for source in (count.of, count.less) if source and INNER in source.key[0]}

    def fact(self, atom: Atom) -> None:
        """A fact must be ground, well typed and about a predicate that may have facts."""
        neural = self._definition(atom, "facts")
        variables = list(atom.variables())
        if not variables:
            self.atom(atom, {})
        elif not neural:
            names = " and ".join(_spoken(variable) for variable in variables)
            what, them = ("are variables", "them") if len(variables) > 1 else ("is a variable", "it")
            hint = f"name constants, or give it a body that binds {them}: {atom} :- ..."
            self._found.error("fact-not-ground", variables[0].span, f"a fact must be ground, but {names} {what}", hint)

    def clause(self, draft: Draft) -> Clause:
        """The clause with the types of its variables (as far as they are known, after errors)."""
        self._definition(draft.head, "clauses")
        uses: dict[str, Use] = {}
        self.atom(draft.head, uses)
        for atom in draft.body:
            for called in self._called(atom):
                self._call(called, draft.head.key)
            self.atom(atom, uses)
        for number in draft.measured:
            self.atom(number, uses)
        goals = (*draft.body, *draft.measured)
        bound = {variable.name for atom in goals for variable in atom.variables()} | draft.doubtful
        for variable in draft.head.variables():
            if variable.name not in bound:
                self._unbound(variable, draft, uses)
        self._report_untyped(draft, bound | uses.keys())
        self._warn_of_blanks(draft, uses)
        self._warn_of_attributes(draft, uses)
        for test in draft.filters:
            if all(variable.name in uses for variable in test.variables()):
                self._filter(test, uses)
        types = {name: use.type for name, use in uses.items()}
        compared = [test for test in draft.filters if test.measured and all(v.name in types for v in test.variables())]
        body = (*draft.body, *(self.comparisons.atom(test, types) for test in compared))
        filters = tuple(test for test in draft.filters if not test.measured)
        return Clause(draft.head, body, filters, tuple(types.items()), draft.span)

    def _unbound(self, variable: Var, draft: Draft, uses: dict[str, Use]) -> None:
        """A head variable that no atom of the body mentions runs over its type, where that is known."""
        where_not = f"the alternative {_goals(draft)}" if draft.alternative else "the body"
        use = uses.get(variable.name)
        if use is not None:
            tested = any(variable.name == other.name for test in draft.filters for other in test.variables())
            shared = draft.head.args.index(variable) < self._shared.get(draft.head.key, 0)
            if not tested and not shared and not variable.name.startswith("_"):
                message = f"{variable} does not occur in {where_not}, so it stands for every {use.type}"
                hint = f"write _{variable} if that is meant" if not draft.alternative else None
                self._found.warn("unbound-head-variable", variable.span, message, hint)
        elif not self._vocabulary.no_types(variable.span):
            message = f"cannot tell the type of {_spoken(variable)}: it does not occur in {where_not}"
            types = ", ".join(quoted(name) if name else "..." for name in self._signatures[draft.head.key])
            hint = f"declare it: :- pred({quoted(draft.head.name)}({types}))., or bind it with a goal"
            self._found.error("untyped-head-variable", variable.span, message, hint)

    def _definition(self, head: Atom, what: str) -> bool:
        """Report a definition of a neural predicate, which may have none; whether it is one."""
        declared = self._vocabulary.declared
        if head.key not in declared or not declared[head.key].neural:
            return False
        place = where(declared[head.key].span, head.span) if head.span else ""
        message = f"{text(head.key)} is neural (declared {place}), so it cannot have {what}"
        self._found.error("neural-defined", name_span(head), message, "its values come from the image")
        return True

    def _called(self, atom: Atom) -> tuple[Atom, ...]:
        """The atom itself, or what a negation or count looks at, in the place where it was written."""
        count = self._vocabulary.counted.get(atom.key)
        return (atom,) if count is None else count.looks_at(atom)

    def _call(self, atom: Atom, head: PredicateKey) -> None:
        """Whether a predicate in a body can hold at all; `head`: what its clause defines."""
        vocabulary = self._vocabulary
        if atom.key in vocabulary.chances:
            return
        if not vocabulary.knows(atom.key):
            vocabulary.unknown_predicate(atom.key, name_span(atom), head)
        elif atom.key not in vocabulary.defined and not vocabulary.may_be_lost(atom.name):
            declared = vocabulary.declared[atom.key]
            if not declared.neural:
                hint = f"if its values come from the image, declare it: :- neural({declared})."
                message = f"{text(atom.key)} has no facts and no clauses"
                self._found.error("no-definition", name_span(atom), message, hint)

    def atom(self, atom: Atom, uses: dict[str, Use]) -> None:
        """Check the arguments of an atom; `uses` gains the types of its variables."""
        for index, name in enumerate(self._signatures.get(atom.key, ())):
            arg = atom.args[index]
            if name is None:
                continue
            if isinstance(arg, Const):
                if name not in self._vocabulary.homes.get(arg.name, ()):
                    self._constant(arg, self._vocabulary.types[name], f"argument {index + 1} of {text(atom.key)}")
            else:
                self._variable(arg, Use(name, atom.key, arg.span), uses)

    def _variable(self, variable: Var, use: Use, uses: dict[str, Use]) -> None:
        first = uses.setdefault(variable.name, use)
        if first.type == use.type:
            return
        place = ""
        if first.span and use.span:
            place = f" {where(first.span, use.span)}, column {first.span.column}"
        message = (f"{_spoken(variable)} is {a(first.type)} in {text(first.key)}{place},"
                   f" but {a(use.type)} in {text(use.key)} here")
        self._found.error("type-conflict", variable.span, message)

    def _constant(self, constant: Const, datatype: DataType, what: str) -> None:
        homes = self._vocabulary.homes.get(constant.name, ())
        if datatype.name in homes or not datatype.constants:
            return
        if homes:
            message = f"{constant} is {a(either(homes))}, but {what} is {a(datatype.name)}"
            hint = f"type {datatype.name} has {listed(datatype.constants)}"
            self._found.error("wrong-type", constant.span, message, hint)
        else:
            self._vocabulary.unknown_constant(constant.name, datatype, constant.span)

    def _report_untyped(self, draft: Draft, bound: set[str]) -> None:
        """Report the variables of comparisons that no goal of the body binds, each once."""
        seen = set(bound)
        for variable in (variable for test in draft.filters for variable in test.variables()):
            if variable.name not in seen:
                seen.add(variable.name)
                message = f"untyped variable {_spoken(variable)}: it occurs in no goal that gives it a type"
                hint = "comparisons test variables that other goals bind"
                self._found.error("untyped-variable", variable.span, message, hint)

    def _warn_of_blanks(self, draft: Draft, uses: dict[str, Use]) -> None:
        """Two `_` of one type in different goals are two different things, which is seldom meant."""
        first: dict[str, Atom] = {}
        for atom in draft.body:
            for variable in atom.variables():
                use = uses.get(variable.name)
                if use is None or _spoken(variable) != "_" or not self._vocabulary.apart(use.type):
                    continue
                other = first.setdefault(use.type, atom)
                if other is not atom and variable.span not in self._blanks:
                    self._blanks.add(variable.span)
                    message = f"the _ of {text(other.key)} and the _ of {text(atom.key)} are never the same {use.type}"
                    hint = f"write one name for one {use.type}, or _A and _B where two are meant"
                    self._found.warn("blanks-differ", variable.span, message, hint)
                    return

    def _warn_of_attributes(self, draft: Draft, uses: dict[str, Use]) -> None:
        """Under `paper` two free variables of an attribute type never share a value, which is seldom meant."""
        if self._vocabulary.semantics != PAPER:
            return
        head = {variable.name for variable in draft.head.variables()}
        together = [{variable.name for variable in atom.variables()} for atom in draft.body]
        unequal = [test for test in draft.filters if test.op in ("!=", "=\\=", "<", ">")]
        together += [{variable.name for variable in test.variables()} for test in unequal]
        free = [(name, use) for name, use in uses.items()
                if name not in head and self._vocabulary.types[use.type].role == ATTRIBUTE]
        for (one, use), (other, second) in combinations(free, 2):
            blank = one.startswith("_") or other.startswith("_")
            if use.type == second.type and not blank and not any({one, other} <= names for names in together):
                message = (f"{one} and {other} are never the same {use.type} under semantics(paper), so that cases in "
                           "which they are equal are lost")
                hint = "leave out :- semantics(paper)., or write \\= between them if that is meant"
                self._found.warn("attributes-differ", second.span, message, hint)
                return

    def _filter(self, test: Filter, uses: dict[str, Use]) -> None:
        if test.op in ("==", "!="):
            self._identity(test, uses)
        else:
            self._numbers(test.left, test.op, uses)
            self._numbers(test.right, test.op, uses)
            refuse_rough(test, self._vocabulary)

    def _identity(self, test: Filter, uses: dict[str, Use]) -> None:
        """Both sides of `==` or `\\==` must be able to be the same constant."""
        types = [self._type_of(side, uses) for side in (test.left, test.right)]
        for side, other in ((test.left, types[1]), (test.right, types[0])):
            if isinstance(side, Const) and other:
                self._constant(side, other, "the other side")
        left, right = types
        if left and right and left.name != right.name:
            sides = f"{test.left} is {a(left.name)} and {test.right} is {a(right.name)}"
            share = not set(left.constants).isdisjoint(right.constants)
            hint = "constants of two types differ even if they have the same name; compare numbers with =:="
            self._found.error("never-same", test.span, f"{sides}: they are never the same", hint if share else None)

    def _type_of(self, side: Expr, uses: dict[str, Use]) -> DataType | None:
        use = uses.get(side.name) if isinstance(side, Var) else None
        return self._vocabulary.types[use.type] if use else None

    def _type_as_numbers(self, datatype: DataType | None) -> tuple[str | None, bool]:
        if datatype is None:
            return None, True
        if datatype.name not in self._odd:
            self._odd[datatype.name] = _as_numbers(datatype.constants)
        return self._odd[datatype.name]

    def _numbers(self, expr: Expr, op: str, uses: dict[str, Use]) -> None:
        """Every constant that an expression can meet must be a number, for // and mod a whole one."""
        if isinstance(expr, Measured):
            return
        if isinstance(expr, Compute):
            for arg in expr.args:
                self._numbers(arg, expr.op, uses)
            divisor = expr.args[-1]
            zero = isinstance(divisor, Const) and arithmetic.number(divisor.name) == 0
            if zero and expr.op in ("/", "//", "mod", "rem", "div"):
                self._found.error("division-by-zero", expr.span, "division by zero")
            return
        datatype = self._type_of(expr, uses)
        other, whole = _as_numbers([expr.name]) if isinstance(expr, Const) else self._type_as_numbers(datatype)
        if other is not None:
            whose = f"{_spoken(expr)} is {a(datatype.name)}, and " if datatype else ""
            what = f"{whose}{quoted(other)}"
            self._found.error("not-a-number", expr.span, f"'{op}' needs numbers, but {what} is not a number")
        elif op in ("//", "mod", "rem", "div", "gcd", "^") and not whole:
            self._found.error("not-a-number", expr.span, f"'{op}' needs whole numbers")


def _as_numbers(constants: Iterable[str]) -> tuple[str | None, bool]:
    """The first constant that is not a number, and whether all of them are whole numbers."""
    values = {name: arithmetic.number(name) for name in constants}
    other = next((name for name, value in values.items() if value is None), None)
    return other, all(isinstance(value, int) for value in values.values())


def _goals(draft: Draft) -> str:
    goals = (*draft.body, *draft.filters)
    return ", ".join(map(str, goals[:5])) + (", ..." if len(goals) > 5 else "") or "true"


def _spoken(term: Var | Const) -> str:
    """How messages call a variable: the text's `_` has been given a name that nobody wrote."""
    span = term.span
    is_blank = term.name.startswith("_") and span is not None and span.end_column - span.column == 1
    return "_" if is_blank and isinstance(term, Var) else str(term)
