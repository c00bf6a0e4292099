"""The text of the program that is learnt from, without what it says to `nsfrc learn`, and with what was found."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nsfrc.compiler import ir
from nsfrc.compiler.check.declare import constant_name
from nsfrc.compiler.parse import find_program, read
from nsfrc.compiler.syntax import CLAUSE, DIRECTIVE, Compound, Name, Sentence, Term, calls, spine
from nsfrc.errors import Diagnostics, NsfrcError

LEARNING = ("learn", "vars", "body")


@dataclass(frozen=True)
class SourceText:
    """A program as text. path: its file, or what messages call it, beside which includes are looked for."""

    path: Path
    text: str
    sentences: tuple[Sentence, ...]

    @classmethod
    def of(cls, given: str | Path | None, source: str | None, name: str = "program") -> SourceText:
        found = Diagnostics()
        if source is not None:
            path = Path(name)
            sentences = read(path, found, source.encode("utf-8", "surrogatepass"))
            return cls(path, source, sentences)
        path = find_program(str(given))
        if path.suffix == ".nsfrc":
            raise NsfrcError(f"{path} is compiled: learn from the program's text, a .pl file")
        sentences = read(path, found)
        return cls(path, path.read_text(encoding="utf-8-sig", errors="surrogateescape"), sentences)

    def _own(self) -> list[Sentence]:
        return [one for one in self.sentences if one.span.source.included is None]

    def without(self, drop: Callable[[Sentence], bool]) -> str:
        """The text without some sentences of its own, and without lines that were nothing else."""
        lines = self.text.split("\n")
        for one in reversed(self._own()):
            if drop(one):
                _cut(lines, one)
        return "\n".join(lines).rstrip("\n") + "\n"

    def background(self, unneeded: frozenset[ir.PredicateKey] = frozenset()) -> str:
        """The text without the directives of learning, nor what defines and declares predicates that nobody needs."""
        return self.without(lambda one: _is_learning(one) or key_of(one) in unneeded)

    def moved(self, text: str, folder: Path) -> str:
        """The text for a file in another folder: files that it includes from beside this one are found from there."""
        home = self.path.resolve().parent

        def there(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            if folder.resolve() == home or not (home / name).is_file():
                return match[0]
            return f"include({ir.quoted(os.path.relpath(home / name, folder.resolve()))})"

        return re.sub(r"include\((?:'([^'\\\n]+)'|([a-z]\w*))\)", there, text)


def _is_learning(one: Sentence) -> bool:
    if one.kind != DIRECTIVE or one.term is None:
        return False
    named = [isinstance(goal, Compound) and goal.name in LEARNING for goal in spine(one.term, ",")]
    if any(named) and not all(named):
        raise NsfrcError(f"{one.span}: {' and '.join(LEARNING)} must be directives of their own, as the program that "
                         f"is written does without them")
    return any(named)


def _key(term: Term | None) -> ir.PredicateKey | None:
    if isinstance(term, Compound):
        return term.name, len(term.args)
    return (constant_name(term), 0) if isinstance(term, Name) else None


def key_of(one: Sentence) -> ir.PredicateKey | None:
    """The predicate that a fact or clause defines, or that a `pred` directive declares."""
    if one.kind == DIRECTIVE:
        return _key(one.term.args[0]) if calls(one.term, "pred", 1) else None
    if one.kind != CLAUSE:
        return None
    return _key(one.term.args[0] if calls(one.term, ":-", 2) else one.term)


def _cut(lines: list[str], one: Sentence) -> None:
    """Take a sentence out of lines of text, with a comment that is alone behind it."""
    span = one.span
    before, after = lines[span.line - 1][: span.column - 1], lines[span.end_line - 1][span.end_column - 1 :].strip()
    if not before.strip() and (not after or after.startswith("%")):
        lines[span.line - 1 : span.end_line] = []
    else:
        lines[span.line - 1 : span.end_line] = [" ".join(part for part in (before.rstrip(), after) if part.strip())]
