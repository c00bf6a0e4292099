"""What an editor shows of a name: what it is, where it is said, and what might be meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from nsfrc.compiler import ir
from nsfrc.compiler.ground import GroundProgram
from nsfrc.compiler.parse.files import locate
from nsfrc.compiler.stages import Checked, rows_by_clause
from nsfrc.compiler.syntax import CLAUSE, DIRECTIVE, QUERY
from nsfrc.describe import sentence as in_words
from nsfrc.describe.account import signature
from nsfrc.editor.document import Document
from nsfrc.editor.occurrences import CONSTANT, DECLARED, DEFINED, PREDICATE, TYPE, VARIABLE, Occurrence, occurrences
from nsfrc.errors import Diagnostic, Span
from nsfrc.records import dataclass
from nsfrc.vocabulary import NUMBERS, find

MAX_CLAUSES = 5  # of a predicate that hover puts into words
_ROLES = {
    ir.NEURAL: "neural: perception gives its values", ir.BACKGROUND: "facts of the program",
    ir.DERIVED: "derived by clauses", ir.COUNTED: "counts others",
}
_MEANT = re.compile(r"^did you mean (.+)\?$")
_INCLUDE = re.compile(r":-\s*include\(\s*(?:'([^'\n]*)'|(\w+))\s*\)")


def hover(document: Document, offset: int, checked: Checked | None) -> str | None:
    """What is at an offset, as Markdown. checked: the last program without errors that the text made."""
    name = document.at(offset)
    if name is None or name.kind == VARIABLE:
        return None
    if name.kind == PREDICATE:
        return _predicate(document, name, checked)
    if checked is None:
        return None
    if name.kind == TYPE:
        of_name = [kind for kind in checked.program.types if kind.name == name.name]
        return "\n\n".join(f"type `{kind.name}`: {_some(kind.constants)}" for kind in of_name) or None
    homes = [kind.name for kind in checked.program.types if ir.quoted(name.name) in map(str, kind.constants)
             or name.name in map(str, kind.constants)]
    return f"constant `{name.name}` of {', '.join(f'`{home}`' for home in homes)}" if homes else None


def _predicate(document: Document, name: Occurrence, checked: Checked | None) -> str | None:
    key = name.name, name.arity
    known = find(*key)
    lines = []
    program = None if checked is None else checked.program
    predicate = None if program is None else next((p for p in program.predicates if p.key == key), None)
    if predicate is not None and checked is not None:
        lines.append(f"`{signature(predicate)}` · {_ROLES.get(predicate.role, predicate.role)}")
        lines += _clauses(key, checked.program, checked.ground)
    elif known is None and name.arity == 1 and name.name in NUMBERS:
        lines.append(f"`{name.name}(object)` · a number of perception: {NUMBERS[name.name]}")
    else:
        said = [found for found in document.same(name, 0) if found.how != "used"]
        if not said and known is None:
            return None
        lines.append(f"`{name.name}/{name.arity}`")
    if known is not None and known.learns:
        lines.append(f"Learnt: {known.learns}.")
    return "\n\n".join(lines)


def _clauses(key: ir.PredicateKey, program: ir.Program, ground: GroundProgram) -> Iterator[str]:
    """The clauses of a predicate in words, with their rows."""
    own = [(place, clause) for place, clause in enumerate(program.clauses) if clause.head.key == key]
    facts = sum(fact.key == key for fact in program.facts)
    if facts:
        yield f"{facts:,} fact{'s' if facts > 1 else ''}"
    rows = rows_by_clause(ground) if own else ()
    for place, clause in own[:MAX_CLAUSES]:
        count = f" *{rows[place]:,} row{'s' if rows[place] != 1 else ''}*" if place < len(rows) else ""
        yield f"{in_words(clause, program).words}{count}"
    if len(own) > MAX_CLAUSES:
        yield f"… and {len(own) - MAX_CLAUSES:,} more clauses"


def _some(constants: tuple[object, ...]) -> str:
    shown = ", ".join(f"`{constant}`" for constant in constants[:20])
    return f"{shown}, … ({len(constants):,} constants)" if len(constants) > 20 else shown


def definitions(document: Document, offset: int) -> list[Span] | Path:
    """Where what is at an offset is declared and defined, across includes; a file, of an `include`."""
    for match in _INCLUDE.finditer(document.text):
        if match.start() <= offset <= match.end() and (path := locate(match[1] or match[2], document.path.parent)):
            return path
    name = document.at(offset)
    if name is None:
        return []
    found = document.same(name, offset)
    if name.kind == VARIABLE:
        return [found[0].span] if found else []
    if name.kind == PREDICATE:
        return [place.span for place in found if place.how in (DECLARED, DEFINED)]
    return [place.span for place in found if place.how == DECLARED]


@dataclass(frozen=True)
class Symbol:
    """A sentence that says what something is: its name, what it is (a kind of occurrence), and both places."""

    name: str
    kind: str
    detail: str
    span: Span
    name_span: Span


def symbols(document: Document) -> list[Symbol]:
    """The declarations and clauses of a text, in its order."""
    result = []
    for sentence in document.own():
        if sentence.kind not in (CLAUSE, DIRECTIVE, QUERY):
            continue
        first = next((o for o in occurrences(sentence) if o.how in (DECLARED, DEFINED) and o.kind != CONSTANT), None)
        if first is not None:
            spoken = f"{first.name}/{first.arity}" if first.kind == PREDICATE else first.name
            detail = "" if first.how == DEFINED else getattr(sentence.term, "name", "")
            result.append(Symbol(spoken, first.kind, detail, sentence.span, first.span))
    return result


def replacement(document: Document, finding: Diagnostic) -> str | None:
    """What to put in the place of a finding whose hint says what might be meant; None where it does not say."""
    meant = _MEANT.match(finding.hint or "")
    if meant is None or finding.span is None or not document.is_own(finding.span):
        return None
    start, end = document.lines.offsets(finding.span)
    word = re.sub(r"/\d+$", "", meant[1])
    if document.text[start:end].startswith("'") and not word.startswith("'"):
        return "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return word
