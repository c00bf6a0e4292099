"""Text to sentences, one at a time, going on behind each one that is bad."""

from __future__ import annotations

from nsfrc.compiler.parse.plain import Plain
from nsfrc.compiler.parse.positions import Positions
from nsfrc.compiler.syntax import ANY, BROKEN, Sentence
from nsfrc.errors import Diagnostics, Source

MAX_SYNTAX_ERRORS = 100  # the last of them ends reading


def parse(source: Source, found: Diagnostics) -> tuple[Sentence, ...]:
    """The sentences of a text. Syntax errors go to `found`; each leaves a BROKEN sentence."""
    positions = Positions(source)
    plain = Plain(positions)
    sentences: list[Sentence] = []
    position = errors = 0
    while (position := plain.skip_blanks(position)) < len(source.text):
        if (easy := plain.sentence(position)) is not None:
            sentences.append(easy[0])
            position = easy[1]
            continue
        from nsfrc.compiler.parse.by_grammar import sentence_at  # not before it is needed: it imports Lark

        read = sentence_at(source, positions, position)
        if read is None:
            break
        sentence, position, fault = read
        sentences.append(sentence)
        if fault is None:
            continue
        span, errors = positions.span(fault.start, fault.end), errors + 1
        if errors == MAX_SYNTAX_ERRORS:
            found.error("too-many-syntax-errors", span, "too many syntax errors; the rest of the file was not read")
            sentences.append(Sentence(BROKEN, None, span, frozenset([ANY])))
            break
        found.error(fault.code, span, fault.message, fault.hint)
    return tuple(sentences)
