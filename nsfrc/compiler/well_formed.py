"""What makes an `ir.Program` legal when no text was checked: one built as a value, or read from a .nsfrc file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nsfrc.compiler import ir
from nsfrc.compiler.expressions import fits
from nsfrc.errors import NsfrcError

_ROLES_OF_TYPES = (ir.INPUT, ir.OBJECT, ir.ATTRIBUTE)
_ROLES_OF_PREDICATES = (*ir.INPUTS, ir.BACKGROUND, ir.DERIVED, ir.COUNTED)
_NUMERIC_TESTS = ("<", ">", "=<", ">=", "=:=", "=\\=")
_TESTS = ("==", "!=", *_NUMERIC_TESTS)


def well_formed(program: ir.Program) -> None:
    """Refuse a program whose names do not resolve or whose types disagree; raises NsfrcError. Linear time."""
    try:
        _Check(program).run()
    except _Wrong as wrong:
        raise NsfrcError(f"the program {program.name} is not well formed: {wrong}") from None


class _Wrong(Exception):
    """The rule that is broken, and where."""


def _require(condition: bool, rule: str, *about: object) -> None:
    """Raises `rule` with what it is about put into its braces, which are written out only then."""
    if not condition:
        raise _Wrong(rule.format(*about))


def _unique(names: Iterable[object], what: str) -> None:
    seen = set()
    for name in names:
        _require(name not in seen, "there are two {} {}", what, name)
        seen.add(name)


class _Check:
    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.constants: dict[str, frozenset[str]] = {}
        self.predicates: dict[ir.PredicateKey, ir.Predicate] = {}

    def run(self) -> None:
        program = self.program
        self._language()
        for fact in program.facts:
            self._ground(fact, "fact")
            role = self.predicates[fact.key].role
            _require(role not in (*ir.INPUTS, ir.COUNTED), "the fact {} is of a {} predicate", fact, role)
        for clause in program.clauses:
            self._clause(clause)
        for target in program.targets:
            self._ground(target, "target")
        self._questions()
        self._settings(program.settings)

    def _language(self) -> None:
        program = self.program
        _unique((t.name for t in program.types), "types called")
        for datatype in program.types:
            _require(datatype.role in _ROLES_OF_TYPES, "the type {} has the role {!r}",
                     datatype.name, datatype.role)
            _require(len(datatype.constants) > 0, "the type {} has no constants", datatype.name)
            _unique(datatype.constants, f"constants of {datatype.name} called")
            self.constants[datatype.name] = frozenset(datatype.constants)
        _unique((p.key for p in program.predicates), "predicates")
        for predicate in program.predicates:
            _require(predicate.role in _ROLES_OF_PREDICATES, "{} has the role {!r}", predicate, predicate.role)
            for name in predicate.types:
                _require(name in self.constants, "{} has an argument of type {}, which is not there", predicate, name)
        self.predicates = {p.key: p for p in program.predicates}
        for predicate in program.predicates:
            _require((predicate.role == ir.COUNTED) == (predicate.count is not None),
                     "{} has the role {!r}, but counts otherwise", predicate, predicate.role)
            if predicate.count is not None:
                self._count(predicate, predicate.count)
        self._inputs()

    def _count(self, predicate: ir.Predicate, count: ir.Count) -> None:
        """What is counted is there, begins with the same arguments, and the tests are on its number alone."""
        _require(self.program.anchored, "{} counts, which semantics(paper) cannot", predicate)
        shared = predicate.types if count.tests else predicate.types[:-1]
        for source in count.sources:
            _require(source.key in self.predicates, "{} counts {}/{}, which is not there", predicate, *source.key)
            _require(all(0 <= i < len(shared) for i in source.args), "{} has not so many arguments", predicate)
            same, own = tuple(shared[i] for i in source.args), self.predicates[source.key].types
            _require(own[: len(same)] == same, "{} counts atoms of other types", predicate)
        if not count.tests:
            _require(len(predicate.types) > 0, "{} has no argument for its number", predicate)
            for constant in self.constants[predicate.types[-1]]:
                _require(ir.is_number(constant), "{} counts to {}, which is not a number", predicate, constant)
        for test in count.tests:
            _require(test.op in _NUMERIC_TESTS, "{} has the test {}", predicate, test.op)
            for side in (test.left, test.right):
                self._expression(side, {ir.NUMBER: ""})
                self._numbers(side, predicate)

    def _inputs(self) -> None:
        """Numbers, comparisons of them, and probabilities."""
        program = self.program
        _unique((number.key for number in program.numbers), "numbers")
        numbers = {number.key: number for number in program.numbers}
        for number in program.numbers:
            for name in number.types:
                _require(name in self.constants, "the number {} has an argument of type {}, which is not there",
                         number.name, name)
        for predicate in program.predicates:
            for role, part in ((ir.COMPARED, predicate.comparison), (ir.CHANCE, predicate.chance)):
                _require((predicate.role == role) == (part is not None), "{} has the role {!r}, but is otherwise",
                         predicate, predicate.role)
                _require(part is None or program.anchored, "{} is {}, which semantics(paper) cannot", predicate, role)
            if predicate.comparison is not None:
                self._comparison(predicate, predicate.comparison, numbers)
            if predicate.chance is not None:
                _require(0 <= predicate.chance.value <= 1 and not predicate.types,
                         "{} is a probability of {!r}", predicate, predicate.chance.value)
                _require(not predicate.chance.learnt or 0 < predicate.chance.value < 1,
                         "{} is learnt from {!r} on", predicate, predicate.chance.value)

    def _comparison(
        self, predicate: ir.Predicate, comparison: ir.Comparison, numbers: Mapping[ir.PredicateKey, ir.Number]
    ) -> None:
        """A comparison is small, compares numbers, and its variables are the arguments of the predicate."""
        test = comparison.test
        _require(test.op in _NUMERIC_TESTS, "{} has the test {}", predicate, test.op)
        _require(fits(test.left, test.right), "{} compares expressions that are too large", predicate)
        variables = comparison.variables
        _require(len(variables) == len(predicate.types), "{} does not compare its arguments", predicate)
        types = dict(zip(variables, predicate.types, strict=True))
        for side in (test.left, test.right):
            self._compared(side, types, predicate)
        for one in test.measured:
            _require(one.key in numbers, "{} compares the number {}/{}, which is not there", predicate, *one.key)
            for term, datatype in zip(one.args, numbers[one.key].types, strict=True):
                known = self.constants[datatype]
                fine = types[term.name] == datatype if isinstance(term, ir.Var) else term.name in known
                _require(fine, "{} of {} is not of type {}", term, predicate, datatype)

    def _compared(self, side: ir.Expr, types: Mapping[str, str], predicate: ir.Predicate) -> None:
        if isinstance(side, ir.Compute):
            measured = any(True for _ in ir.measured_in(side))
            _require(len(side.args) in ir.OPERATIONS.get(side.op, ()), "{} computes {}", predicate, side.op)
            _require(side.op in ir.SMOOTH or not measured, "{} computes {} of a measured number", predicate, side.op)
            for arg in side.args:
                self._compared(arg, types, predicate)
        elif not isinstance(side, ir.Measured):
            names = self.constants[types[side.name]] if isinstance(side, ir.Var) else [side.name]
            for name in names:
                _require(ir.is_number(name), "{} compares {}, which is not a number", predicate, name)

    def _numbers(self, side: ir.Expr, predicate: ir.Predicate) -> None:
        if isinstance(side, ir.Compute):
            for arg in side.args:
                self._numbers(arg, predicate)
        elif isinstance(side, ir.Const):
            _require(ir.is_number(side.name), "{} compares its number with {}", predicate, side)

    def _questions(self) -> None:
        classes, targets = self.program.classes, self.program.targets
        _unique(targets, "targets")
        _require(len(classes) != 1, "there is one class, {}, and so nothing to choose from", *classes)
        first = len(targets) - len(classes)
        _require(classes == targets[max(first, 0) :] or not classes, "the classes are not the last of the targets")
        names = {str(target) for target in targets[:first]}
        _require(not classes or ir.CLASSES not in names, "a target beside classes is called {}", ir.CLASSES)
        _require(all(str(atom) != ir.NO_CLASS for atom in classes), "a class is called {}", ir.NO_CLASS)
        if classes:
            names.add(ir.CLASSES)
        thresholds = self.program.settings.thresholds
        _unique((name for name, _ in thresholds), "thresholds of")
        for name, value in thresholds:
            _require(name in names, "there is a threshold of {}, which is not asked", name)
            _require(type(value) is float and 0 <= value <= 1,
                     "the threshold of {} is {!r}, not a number from 0 to 1", name, value)

    def _settings(self, settings: ir.Settings) -> None:
        steps, gamma, threshold = settings.steps, settings.gamma, settings.threshold
        _require(steps is None or (type(steps) is int and 1 <= steps <= ir.MAX_STEPS),
                 "steps is {!r}, not a whole number from 1 to {}", steps, ir.MAX_STEPS)
        _require(gamma is None or (type(gamma) is float and ir.LEAST_GAMMA <= gamma <= ir.MOST_GAMMA),
                 "gamma is {!r}, not {}", gamma, ir.GAMMA_RANGE)
        _require(threshold is None or (type(threshold) is float and 0 <= threshold <= 1),
                 "the threshold is {!r}, not a number from 0 to 1", threshold)
        _require(settings.semantics in ir.SEMANTICS, "the semantics is {!r}", settings.semantics)
        _require(settings.perception is None or isinstance(settings.perception, str),
                 "the perception is {!r}, not a name", settings.perception)
        size, conf = settings.size, settings.conf
        _require(size is None or (len(size) == 2 and all(type(side) is int and 16 <= side <= 8192 for side in size)),
                 "the size of images is {!r}", size)
        _require(settings.presence in (None, ir.CRISP, ir.SOFT), "the presence is {!r}", settings.presence)
        _require(conf is None or (type(conf) is float and 0 <= conf <= 1), "the least confidence is {!r}", conf)
        _require(all(settings.names) and len(set(settings.names)) == len(settings.names),
                 "a class has no name of its own")
        types = {datatype.name: datatype.constants for datatype in self.program.types}
        for name, values in settings.attributes:
            _require(types.get(name) == values, "{} are not the values of {}", values, name)

    def _clause(self, clause: ir.Clause) -> None:
        types = dict(clause.types)
        _require(len(types) == len(clause.types), "a variable of {} has two types", clause)
        for name, datatype in types.items():
            _require(datatype in self.constants, "{} of {} has the type {}, which is not there", name, clause, datatype)
        seen: set[str] = set()
        for atom in (clause.head, *clause.body):
            self._atom(atom, types, clause)
            seen.update(v.name for v in atom.variables())
        _require(self.predicates[clause.head.key].role == ir.DERIVED,
                 "{} derives a predicate whose role is not derived", clause)
        for test in clause.filters:
            _require(test.op in _TESTS, "{} has the test {}", clause, test.op)
            self._expression(test.left, types)
            self._expression(test.right, types)
            seen.update(v.name for v in test.variables())
        _require(seen == set(types), "the types of {} are not those of its variables", clause)

    def _atom(self, atom: ir.Atom, types: Mapping[str, str], where: object) -> None:
        _require(atom.key in self.predicates, "{} names {}/{}, which is not there", where, atom.name, len(atom.args))
        for term, datatype in zip(atom.args, self.predicates[atom.key].types, strict=True):
            if isinstance(term, ir.Var):
                _require(types.get(term.name) == datatype, "{} of {} is not of type {}", term, where, datatype)
            else:
                known = self.constants[datatype]
                _require(term.name in known, "{} of {} is not a constant of {}", term, where, datatype)

    def _ground(self, atom: ir.Atom, kind: str) -> None:
        _require(not any(atom.variables()), "the {} {} has variables", kind, atom)
        self._atom(atom, {}, atom)

    def _expression(self, side: ir.Expr, types: Mapping[str, str]) -> None:
        _require(not isinstance(side, ir.Measured), "a test on constants has the measured number {}", side)
        if isinstance(side, ir.Var):
            _require(side.name in types, "a test names {}, which has no type", side)
        elif isinstance(side, ir.Compute):
            _require(len(side.args) in ir.OPERATIONS.get(side.op, ()), "a test computes {}", side)
            for arg in side.args:
                self._expression(arg, types)
