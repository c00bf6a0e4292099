"""What is wrong with a program, as a value: for `nsfrc check`, for editors and pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nsfrc.compiler.ground import MAX_ROWS
from nsfrc.compiler.parse import read
from nsfrc.compiler.stages import DEFAULT, Checked, Options, check_sentences, uncollected
from nsfrc.compiler.syntax import Sentence
from nsfrc.errors import CompileError, Diagnostic, Diagnostics, NsfrcError
from nsfrc.records import dataclass


@dataclass(frozen=True)
class Findings:
    """What was found in a program: diagnostics, and how many errors and warnings there are, listed or not.

    clauses, atoms: of a program without errors, else None.
    """

    diagnostics: tuple[Diagnostic, ...]
    errors: int
    warnings: int
    clauses: int | None = None
    atoms: int | None = None


@uncollected()
def findings(source: Path, data: bytes | None = None, options: Options = DEFAULT) -> Findings:
    """Read and check a program as far as it can be refused. data: its text, where that is not in the file `source`."""
    found = Diagnostics()
    try:
        sentences = read(source, found, data)
    except NsfrcError as error:
        return Findings((Diagnostic(None, str(error)),), 1, 0)
    return findings_and_program(sentences, source, found, options)[0]


@uncollected()
def findings_and_program(
    sentences: tuple[Sentence, ...], source: Path, found: Diagnostics, options: Options = DEFAULT
) -> tuple[Findings, Checked | None]:
    """As `findings`, of what has been read, with the program if it has no errors. found: what was wrong so far."""
    try:
        done = check_sentences(sentences, source, found, options)
    except CompileError as error:
        return Findings(error.diagnostics, found.errors, found.warned), None
    except NsfrcError as error:  # too many ground atoms, say: it has no place in the text
        return Findings((*found.found, Diagnostic(None, str(error))), found.errors + 1, found.warned), None
    written = sum(clause.span is not None for clause in done.program.clauses)
    return Findings(done.warnings, 0, found.warned, written, done.ground.G), done


def check(
    text: str, name: str = "program", *, slots: Mapping[str, int] | None = None, max_rows: int = MAX_ROWS
) -> tuple[Diagnostic, ...]:
    """All that is wrong with the text of a program, errors and warnings; nothing is raised and nothing written.

    name: what to call the text; what it includes is looked for beside a file of that name. slots, max_rows: as for
    `nsfrc.compile`.
    """
    if not isinstance(text, str) or not isinstance(name, str):
        raise NsfrcError("check takes the text of a program, and what to call it: nsfrc.check(text, \"rules.pl\")")
    data = text.encode("utf-8", "surrogatepass")
    return findings(Path(name), data, Options(slots or {}, max_rows=max_rows)).diagnostics
