"""The Lark parser of one sentence and the token pattern of the grammar, both built on first use."""

from __future__ import annotations

import re
import threading
from functools import cache
from importlib import resources

from lark import Lark

from nsfrc.compiler import syntax
from nsfrc.compiler.parse.build import Builder
from nsfrc.compiler.parse.positions import Positions
from nsfrc.errors import Source

# The terminals that tell where a sentence ends; operators count as symbols here.
_TOKENS = (
    "SPACE LINE_COMMENT BLOCK_COMMENT END NUMBER VARIABLE NAME QUOTED STRING CODES SYMBOL CUT COMMA"
    " SEMICOLON BAR LPAR RPAR LSQB RSQB LBRACE RBRACE"
).split()
_lock = threading.Lock()
_builder = Builder()


@cache
def _lark() -> Lark:
    text = resources.files("nsfrc.grammars").joinpath("prolog.lark").read_text("utf-8")
    return Lark(text, parser="lalr", lexer="contextual", transformer=_builder)


@cache
def token_pattern() -> re.Pattern[str]:
    """One named group for each kind of token, from the grammar; UNCLOSED and STRAY catch the rest."""
    groups = [f"(?P<{name}>{_lark().get_terminal(name).pattern.to_regexp()})" for name in _TOKENS]
    return re.compile("|".join([*groups, r"(?P<UNCLOSED>/\*|['\"`])", r"(?P<STRAY>[\s\S])"]))


def parse_sentence(source: Source, positions: Positions, start: int, end: int) -> syntax.Term:
    """The term in `source.text[start:end]`, up to its '.'; raises UnexpectedInput or Fault."""
    with _lock:  # the builder is part of the cached parser and holds the place of the sentence
        _builder.begin(source, positions, start)
        term: syntax.Term = _lark().parse(source.text[start:end])  # type: ignore[assignment]
        return term
