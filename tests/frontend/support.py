"""Short ways to run the front end on a text."""

from __future__ import annotations

from nsfrc.compiler import ir
from nsfrc.compiler.check import check
from nsfrc.compiler.parse import parse
from nsfrc.compiler.syntax import Sentence
from nsfrc.errors import CompileError, Diagnostics, Source

VOCABULARY = """
:- type(image, [img]).
:- type(object, slots(3)).
:- type(color, [red, yellow, blue]).
:- type(size, [1, 2, 3]).
:- neural(in(object, image)).
:- neural(color(object, color)).
:- neural(size(object, size)).
:- neural(closeby(object, object)).  :- semantics(paper).
"""


def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text that must be free of syntax errors."""
    found = Diagnostics()
    result = parse(Source("test.pl", text), found)
    found.stop()
    return result


def compile_text(text: str, found: Diagnostics | None = None, **slots: int) -> ir.Program:
    """The program of a text; raises CompileError."""
    found = Diagnostics() if found is None else found
    return check(parse(Source("test.pl", text), found), "test", found, slots or None)


def program(text: str, **slots: int) -> ir.Program:
    """A program with the vocabulary above."""
    return compile_text(VOCABULARY + text, **slots)


def clauses(text: str) -> list[str]:
    """The clauses of a program with the vocabulary above, as text."""
    return [str(clause) for clause in program(text).clauses]


def messages(text: str, **slots: int) -> list[str]:
    """The messages of a program with the vocabulary above, errors and warnings."""
    found = Diagnostics()
    try:
        compile_text(VOCABULARY + text, found, **slots)
    except CompileError as refused:
        return [diagnostic.message for diagnostic in refused.diagnostics]
    return [diagnostic.message for diagnostic in found.found]
