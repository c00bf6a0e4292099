"""Ground atoms that match a pattern: `digit(a, X)` is ten columns of a valuation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsfrc.compiler.check.declare import constant_name
from nsfrc.compiler.ir import quoted
from nsfrc.compiler.parse import parse
from nsfrc.compiler.syntax import Compound, Name, Number, Term, Variable
from nsfrc.errors import CompileError, Diagnostics, NsfrcError, Source, did_you_mean

if TYPE_CHECKING:
    from nsfrc.program import Program


def matching(program: Program, pattern: str) -> list[int]:
    """See `Program.columns`; raises NsfrcError for what is not an atom of the program."""
    term = _read(pattern)
    args = term.args if isinstance(term, Compound) else ()
    language = program.ground.herbrand
    key = term.name, len(args)
    if key not in language.offsets:
        known = [f"{quoted(name)}/{arity}" for name, arity in language.offsets]
        hint = did_you_mean(f"{quoted(term.name)}/{len(args)}", known)
        raise NsfrcError(f"{program.name} has no predicate {quoted(term.name)}/{len(args)}"
                         + (f"; {hint}" if hint else ""))
    first, last = language.offsets[key]
    places = language.arguments(key)
    keep = np.ones(last - first, dtype=bool)
    seen: dict[str, int] = {}
    for column, (arg, datatype) in enumerate(zip(args, language.predicate_by_key[key].types, strict=True)):
        if isinstance(arg, Variable):
            if arg.name != "_":
                keep &= places[:, column] == places[:, seen.setdefault(arg.name, column)]
            continue
        constants = language.type_by_name[datatype].constants
        name = constant_name(arg) if isinstance(arg, Name | Number) else str(arg)
        if name not in constants:
            hint = did_you_mean(name, constants)
            raise NsfrcError(f"{arg} is not a constant of {datatype}, in {pattern!r}" + (f"; {hint}" if hint else ""))
        keep &= places[:, column] == constants.index(name)
    return [int(atom) for atom in np.flatnonzero(keep) + first]


def _read(pattern: str) -> Name | Compound:
    """A pattern as a term."""
    found = Diagnostics()
    try:
        sentences = parse(Source("the pattern", f"{pattern} ."), found)
        found.stop()
    except CompileError as error:
        raise NsfrcError(f"{pattern!r} is not an atom such as digit(a, X)") from error
    term: Term | None = sentences[0].term if len(sentences) == 1 else None
    if not isinstance(term, Name | Compound):
        raise NsfrcError(f"{pattern!r} is not an atom such as digit(a, X)")
    return term
