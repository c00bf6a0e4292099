"""Text to sentences, one at a time, going on behind each one that is bad."""

from __future__ import annotations

from lark.exceptions import UnexpectedInput

from nsfrc.errors import Diagnostics, Source
from nsfrc.parse.build import Fault
from nsfrc.parse.explain import explain
from nsfrc.parse.grammar import parse_sentence
from nsfrc.parse.positions import Positions
from nsfrc.parse.split import Piece, next_piece, tokens
from nsfrc.syntax import ANY, BROKEN, CLAUSE, DIRECTIVE, QUERY, Sentence, Term, calls

MAX_SYNTAX_ERRORS = 100


def parse(source: Source, found: Diagnostics) -> tuple[Sentence, ...]:
    """The sentences of a text. Syntax errors go to `found`; each leaves a BROKEN sentence."""
    positions = Positions(source)
    sentences: list[Sentence] = []
    position = errors = 0
    while (piece := next_piece(source.text, position)) is not None:
        sentence, position, fault = _sentence(source, positions, piece)
        sentences.append(sentence)
        if fault:
            found.error(positions.span(fault.start, fault.end), fault.message, fault.hint)
            errors += 1
        if errors >= MAX_SYNTAX_ERRORS:
            span = positions.span(position, position)
            found.error(span, "too many syntax errors; the rest of the file was not read")
            sentences.append(Sentence(BROKEN, None, span, frozenset([ANY])))
            break
    return tuple(sentences)


def _sentence(source: Source, positions: Positions, piece: Piece) -> tuple[Sentence, int, Fault | None]:
    """A sentence, the offset to go on from, and what was wrong with it."""
    end, fault = piece.end, piece.fault
    if fault is None:
        try:
            term = parse_sentence(source, positions, piece.start, piece.end)
            return _classify(term, positions, piece), piece.end, None
        except Fault as refused:
            fault = refused
        except UnexpectedInput as unexpected:
            offset = piece.start + _offset(unexpected)
            fault, resume = explain(source.text, positions, piece, offset)
            end = resume or piece.end
    words = frozenset(t.text for t in tokens(source.text, piece.start, end) if t.kind == "NAME")
    return Sentence(BROKEN, None, positions.span(piece.start, end), words), end, fault


def _classify(term: Term, positions: Positions, piece: Piece) -> Sentence:
    span = positions.span(piece.start, piece.end)
    for lead, kind in ((":-", DIRECTIVE), ("?-", QUERY)):
        if calls(term, lead, 1):
            return Sentence(kind, term.args[0], span)
    return Sentence(CLAUSE, term, span)


def _offset(unexpected: UnexpectedInput) -> int:
    """Where in the sentence the parser stopped."""
    token = getattr(unexpected, "token", None)
    offset = unexpected.pos_in_stream if token is None else token.start_pos
    return offset or 0
