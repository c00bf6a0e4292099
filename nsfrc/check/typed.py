"""Names and types of every atom: predicates exist, constants belong, variables have one type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nsfrc.check import arithmetic
from nsfrc.check.alternatives import Draft
from nsfrc.check.infer import Signatures
from nsfrc.check.vocabulary import Vocabulary, a, listed, name_span, text, where
from nsfrc.errors import Span
from nsfrc.ir import Atom, Clause, Compute, Const, DataType, Expr, Filter, PredicateKey, Var, quoted


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
            self._found.error(variables[0].span, f"a fact must be ground, but {names} {what}", hint)

    def clause(self, draft: Draft) -> Clause:
        """The clause with the types of its variables (as far as they are known, after errors)."""
        self._definition(draft.head, "clauses")
        uses: dict[str, Use] = {}
        self.atom(draft.head, uses)
        for atom in draft.body:
            self._call(atom, draft.head.key)
            self.atom(atom, uses)
        bound = {variable.name for atom in draft.body for variable in atom.variables()} | draft.doubtful
        for variable in draft.head.variables():
            if variable.name not in bound:
                where_not = f"the alternative {_goals(draft)}" if draft.alternative else "the body"
                message = f"unbound head variable: {_spoken(variable)} does not occur in {where_not}"
                self._found.error(variable.span, message, "every head variable needs a goal that binds it")
        self._report_untyped(draft, bound)
        self._warn_of_blanks(draft, uses)
        for test in draft.filters:
            if all(variable.name in bound for variable in test.variables()):
                self._filter(test, uses)
        types = tuple((name, use.type) for name, use in uses.items())
        return Clause(draft.head, draft.body, draft.filters, types, draft.span)

    def _definition(self, head: Atom, what: str) -> bool:
        """Report a definition of a neural predicate, which may have none; whether it is one."""
        declared = self._vocabulary.declared
        if head.key not in declared or not declared[head.key].neural:
            return False
        place = where(declared[head.key].span, head.span) if head.span else ""
        message = f"{text(head.key)} is neural (declared {place}), so it cannot have {what}"
        self._found.error(name_span(head), message, "its values come from the image")
        return True

    def _call(self, atom: Atom, head: PredicateKey) -> None:
        """Whether a predicate in a body can hold at all; `head`: what its clause defines."""
        vocabulary = self._vocabulary
        if not vocabulary.knows(atom.key):
            vocabulary.unknown_predicate(atom.key, name_span(atom), head)
        elif atom.key not in vocabulary.defined and not vocabulary.may_be_lost(atom.name):
            declared = vocabulary.declared[atom.key]
            if not declared.neural:
                hint = f"if the image tells, declare it as :- neural({declared})."
                self._found.error(name_span(atom), f"{text(atom.key)} has no facts and no clauses", hint)

    def atom(self, atom: Atom, uses: dict[str, Use]) -> None:
        """Check the arguments of an atom; `uses` gains the types of its variables."""
        for index, name in enumerate(self._signatures.get(atom.key, ())):
            arg = atom.args[index]
            if name is None:
                continue
            if isinstance(arg, Const):
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
        self._found.error(variable.span, message)

    def _constant(self, constant: Const, datatype: DataType, what: str) -> None:
        homes = self._vocabulary.homes.get(constant.name, ())
        if datatype.name in homes or not datatype.constants:
            return
        if homes:
            message = f"{constant} is {a(' or '.join(homes))}, but {what} is {a(datatype.name)}"
            hint = f"type {datatype.name} has {listed(datatype.constants)}"
            self._found.error(constant.span, message, hint)
        else:
            self._vocabulary.unknown_constant(constant.name, datatype, constant.span)

    def _report_untyped(self, draft: Draft, bound: set[str]) -> None:
        """Report the variables of comparisons that no goal of the body binds, each once."""
        seen = set(bound)
        for variable in (variable for test in draft.filters for variable in test.variables()):
            if variable.name not in seen:
                seen.add(variable.name)
                message = f"untyped variable {_spoken(variable)}: it occurs in no goal that gives it a type"
                self._found.error(variable.span, message, "comparisons test variables that other goals bind")

    def _warn_of_blanks(self, draft: Draft, uses: dict[str, Use]) -> None:
        """Two `_` of one type in different goals are two different things, which is seldom meant."""
        first: dict[str, Atom] = {}
        for atom in draft.body:
            for variable in atom.variables():
                use = uses.get(variable.name)
                if use is None or _spoken(variable) != "_":
                    continue
                other = first.setdefault(use.type, atom)
                if other is not atom and variable.span not in self._blanks:
                    self._blanks.add(variable.span)
                    message = f"the _ of {text(other.key)} and the _ of {text(atom.key)} are never the same {use.type}"
                    hint = f"write one name for one {use.type}, or _A and _B where two are meant"
                    self._found.warn(variable.span, message, hint)
                    return

    def _filter(self, test: Filter, uses: dict[str, Use]) -> None:
        if test.op in ("==", "!="):
            self._identity(test, uses)
        else:
            self._numbers(test.left, test.op, uses)
            self._numbers(test.right, test.op, uses)

    def _identity(self, test: Filter, uses: dict[str, Use]) -> None:
        """Both sides of `==` or `\\==` must be able to be the same constant."""
        types = [self._type_of(side, uses) for side in (test.left, test.right)]
        for side, other in ((test.left, types[1]), (test.right, types[0])):
            if isinstance(side, Const) and other:
                self._constant(side, other, "the other side")
        left, right = types
        if left and right and left != right and set(left.constants).isdisjoint(right.constants):
            sides = f"{test.left} is {a(left.name)} and {test.right} is {a(right.name)}"
            self._found.error(test.span, f"{sides}: they are never the same")

    def _type_of(self, side: Expr, uses: dict[str, Use]) -> DataType | None:
        use = uses.get(side.name) if isinstance(side, Var) else None
        return self._vocabulary.types[use.type] if use else None

    def _numbers(self, expr: Expr, op: str, uses: dict[str, Use]) -> None:
        """Every constant that an expression can meet must be a number, for // and mod a whole one."""
        if isinstance(expr, Compute):
            for arg in expr.args:
                self._numbers(arg, expr.op, uses)
            divisor = expr.args[-1]
            zero = isinstance(divisor, Const) and arithmetic.number(divisor.name) == 0
            if zero and expr.op in ("/", "//", "mod"):
                self._found.error(expr.span, "division by zero")
            return
        datatype = self._type_of(expr, uses)
        constants: Sequence[str] = datatype.constants if datatype else ()
        if isinstance(expr, Const):
            constants = (expr.name,)
        values = {name: arithmetic.number(name) for name in constants}
        other = next((name for name, value in values.items() if value is None), None)
        if other is not None:
            whose = f"{_spoken(expr)} is {a(datatype.name)}, and " if datatype else ""
            what = f"{whose}{quoted(other)}"
            self._found.error(expr.span, f"'{op}' needs numbers, but {what} is not a number")
        elif op in ("//", "mod") and not all(isinstance(value, int) for value in values.values()):
            self._found.error(expr.span, f"'{op}' needs whole numbers")


def _goals(draft: Draft) -> str:
    return ", ".join(map(str, (*draft.body, *draft.filters))) or "true"


def _spoken(term: Var | Const) -> str:
    """How messages call a variable: the text's `_` has been given a name that nobody wrote."""
    span = term.span
    is_blank = term.name.startswith("_") and span is not None and span.end_column - span.column == 1
    return "_" if is_blank and isinstance(term, Var) else str(term)
