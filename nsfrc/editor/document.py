"""A text in an editor: its sentences and those it includes, what is wrong with it, and which name is where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from nsfrc.compiler.findings import Findings, findings_and_program
from nsfrc.compiler.parse import read
from nsfrc.compiler.stages import DEFAULT, Checked, Options, uncollected
from nsfrc.compiler.syntax import Sentence
from nsfrc.editor.occurrences import VARIABLE, Occurrence, occurrences
from nsfrc.editor.positions import Lines
from nsfrc.errors import Diagnostic, Diagnostics, Span


class Document:
    """One version of a text. Reading it takes milliseconds; checking it is for when there is time.

    path: where it is or would be saved; what it includes is looked for beside that. within: as for `read`.
    """

    def __init__(self, path: Path, text: str, encoding: str = "utf-16", within: Sequence[Path] | None = None):
        self.path, self.text, self.encoding = path, text, encoding
        self.lines = Lines(text, encoding)
        self._found, data = Diagnostics(), text.encode("utf-8", "surrogatepass")
        with uncollected():
            self.sentences: tuple[Sentence, ...] = read(path, self._found, data, within)
        self.syntax_errors: tuple[Diagnostic, ...] = tuple(self._found.found)

    def check(self, options: Options = DEFAULT) -> tuple[Findings, Checked | None]:
        """All that `nsfrc check` finds, and the program if it has no errors."""
        return findings_and_program(self.sentences, self.path, self._found.copy(), options)

    @cached_property
    def names(self) -> tuple[Occurrence, ...]:
        """All names of the text and of what it includes, in the order of the text."""
        return tuple(found for sentence in self.sentences for found in occurrences(sentence))

    def is_own(self, span: Span) -> bool:
        return span.source.name == str(self.path)

    def own(self) -> Iterator[Sentence]:
        """The sentences of the text itself, without its `include` directives."""
        return (sentence for sentence in self.sentences if self.is_own(sentence.span))

    def at(self, offset: int) -> Occurrence | None:
        """The name at an offset, or just before it."""
        sentence = self.sentence_at(offset)
        if sentence is None:
            return None
        for found in occurrences(sentence):
            start, end = self.lines.offsets(found.span)
            if start <= offset <= end:
                return found
        return None

    def sentence_at(self, offset: int) -> Sentence | None:
        for sentence in self.own():
            start, end = self.lines.offsets(sentence.span)
            if start <= offset <= end:
                return sentence
        return None

    def same(self, name: Occurrence, offset: int) -> list[Occurrence]:
        """All places where what is named at an offset is named; of a variable, those of its sentence."""
        if name.kind == VARIABLE:
            sentence = self.sentence_at(offset)
            inside = [] if sentence is None else list(occurrences(sentence))
            return [found for found in inside if (found.kind, found.name) == (VARIABLE, name.name)]
        wanted = name.kind, name.name, name.arity
        return [found for found in self.names if (found.kind, found.name, found.arity) == wanted]
