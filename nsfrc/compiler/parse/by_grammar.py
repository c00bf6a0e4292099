"""One sentence by way of the grammar, whatever is in it; the first one imports Lark and builds its tables."""

from __future__ import annotations

from lark.exceptions import UnexpectedInput

from nsfrc.compiler.parse.build import Fault
from nsfrc.compiler.parse.grammar import parse_sentence
from nsfrc.compiler.parse.plain import MAX_NAME
from nsfrc.compiler.parse.positions import Positions
from nsfrc.compiler.parse.split import Piece, next_piece, tokens
from nsfrc.compiler.parse.syntax_errors import explain
from nsfrc.compiler.syntax import BROKEN, CLAUSE, DIRECTIVE, QUERY, Sentence, Term, calls
from nsfrc.errors import Source


def sentence_at(source: Source, positions: Positions, start: int) -> tuple[Sentence, int, Fault | None] | None:
    """The sentence at `start`, the offset to go on from, and what was wrong with it; None if only blanks are left."""
    piece = next_piece(source.text, start)
    if piece is None:
        return None
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
    names = (t.text for t in tokens(source.text, piece.start, end) if t.kind == "NAME")
    words = frozenset(name for name in names if len(name) <= MAX_NAME)
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
