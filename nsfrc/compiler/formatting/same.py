"""A layout, with the proof that it says what the text said: the same sentences, and the same comments in order."""

from __future__ import annotations

from nsfrc.compiler.formatting.text import laid_out_text
from nsfrc.compiler.parse import parse
from nsfrc.compiler.parse.split import COMMENTS, tokens
from nsfrc.compiler.syntax import Compound, ListTerm, Sentence, Term
from nsfrc.errors import CompileError, Diagnostics, NsfrcError, Source

_MARK = "\ufeff"  # of the byte order


def formatted(text: str, name: str = "program") -> str:
    """The text in the layout of `nsfrc format`. name: what errors call it.

    Raises CompileError for a text with syntax errors. Line ends are those of the first line.
    """
    mark = _MARK if text.startswith(_MARK) else ""
    body = text.removeprefix(_MARK)
    first = body.find("\n")
    ends = "\r\n" if first > 0 and body[first - 1] == "\r" else "\n"
    body = body.replace("\r\n", "\n")
    before = _sentences(body, name)
    result = laid_out_text(body)
    try:
        after = _sentences(result, name)
    except CompileError:
        after = ()
    if not same_sentences(before, after) or comments(body) != comments(result):
        raise NsfrcError(f"{name} cannot be formatted without a change to what it says, which is a mistake of nsfrc: "
                         "please report it with the file, which is left as it is")
    return mark + result.replace("\n", ends)


def comments(text: str) -> list[str]:
    """The comments of a text in order, without blanks at the end of lines."""
    return [token.text.rstrip() for token in tokens(text, 0, comments=True) if token.kind in COMMENTS]


def same_sentences(left: tuple[Sentence, ...], right: tuple[Sentence, ...]) -> bool:
    """Whether two texts say the same, wherever they say it."""
    return len(left) == len(right) and all(
        a.kind == b.kind and a.term is not None and b.term is not None and _same_term(a.term, b.term)
        for a, b in zip(left, right, strict=True))


def _same_term(left: Term, right: Term) -> bool:
    """As `==`, without recursion: a body may have any number of goals."""
    waiting = [(left, right)]
    while waiting:
        a, b = waiting.pop()
        if isinstance(a, Compound) and isinstance(b, Compound):
            if a.name != b.name or len(a.args) != len(b.args):
                return False
            waiting += zip(a.args, b.args, strict=True)
        elif isinstance(a, ListTerm) and isinstance(b, ListTerm):
            if len(a.items) != len(b.items) or (a.tail is None) != (b.tail is None):
                return False
            waiting += zip(a.items, b.items, strict=True)
            if a.tail is not None and b.tail is not None:
                waiting.append((a.tail, b.tail))
        elif a != b:
            return False
    return True


def _sentences(text: str, name: str) -> tuple[Sentence, ...]:
    found = Diagnostics()
    sentences = parse(Source(name, text), found)
    found.stop()
    return sentences
