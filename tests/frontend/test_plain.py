"""The short way through plain sentences gives what the grammar gives: terms, spans, depths and errors."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from nsfrc.benchmarks import fuzz
from nsfrc.compiler.parse import grammar, parse, plain
from nsfrc.compiler.syntax import Compound, ListTerm, Sentence, Term
from nsfrc.errors import Diagnostics, Source, Span
from tests.amount import sample

SENTENCES = [
    "a.", "a .", "a.% b", "p(a).", "p( a , 'b c',X,_,-1,12 ) .", "p(f(g(a)), [a, [], [b, 1]]).", "p([]).", "[a].",
    "X.", ":- a.", ":- a, b(c).", ":- dynamic.", ":- dynamic(a).", ":- dynamic a.", ":- table, a.", ":- a, table.",
    "?- a.", "a :- b.", "a(X):-b(X),c,d(e(X)).", "a :- X.", "a :- 1.", "a :- b :- c.", ":- a :- b.", "a :-b.",
    "a :-- b.", "a:-\n\n  b,\n c(d,\n  e).", "a, b.", "a :- b, .", "p().", "p(,).", "p(a b).", "p(a.", "p (a).",
    "P(a).", "p(a)(b).", "p('a''b').", "p('a\\n').", "p('').", "''(a).", "'a'.", "'a'(b).", "p('a\nb').",
    "p(\"a\").", "p(1.5).", "p(0x1f).", "p(0'a).", "p(1_000).", "p(-1).", "p(- 1).", "p(a-1).", "p(00).",
    "p(12345678901234567890).", "p(1a).", "p(mod, is).", "mod.", "is :- mod.", "a :- b is c.", "p(a|b).",
    "p([a|b]).", "{a}.", "a :- !.", "p(a)% end", "p(a)./* x */b.", "p(a /* x */).", "/* open", "a. /* open",
    "%\n%\n/**/a.", "größe(Ärger, é).", "p(a).q(b).", "p(a) . . q(b).", "p(\u00a0a).", "p(a),.", ".",
    "p(" * 30 + "a" + ")" * 30 + ".", f"p({'x' * 1000}).", f"p({'x' * 1001}).", f"p('{'x' * 999}').",
    f"{'X' * 1500}.", "a(B) :- c(B), \\+ d.", "a :- (b, c).",
    "0.9::a.", "1/3::a(b) :- c.", "0.1::a; 0.9::b.", "a :: b :: c.", "a :- b, (c ; d, e ; f), g.",
    "a :- b ; c, d ; e.", "a :- \\+ b.", "a :- \\+b, c.", "a :- \\+(b).", "a :- \\+ (b, c).", "a :- \\+ \\+ b.",
    "\\+ a :- b.", "a :- \\+ X = b.", "a :- X = b.", "a :- X \\= Y, X\\==Y, X@<Y.", "a :- X=Y=Z.", "a :- X =.. Y.",
    "a :- X=-1.", "a :- X = -1.", "a :- X -1.", "a(N) :- N is 1 + 2 * 3 - 4 mod 5.", "a :- X-1-2 > 3*4/5.",
    "a :- (X + 1) * 2 =:= Y // 2.", "a :- -X > 1.", "a :- - 1 < 2.", "a :- X > 2 ** 3.", "a :- X > 2^3.",
    "a :- 1 .. 3 = X.", "a :- X in 1..3.", "a :- b -> c ; d.", "a :- b | c.", "a :- X = (b :- c).",
    "a :- X = (b, c ; d).", "(a, b).", "(a) :- b.", "(a :- b).", "a --> b.", "p(X = Y, \\+ a, 0.5::b, X is Y).",
    "p((a, b), (c ; d)).", "p([X = Y, 1 + 2]).", "p(1.5, -0.25, 1.5e3, 2.).", "p(X):-X>0.5.", "p(X) :- X >= 3.\nq.",
    "p(1.12345678901234567890).", "a :- X is Y mod Z, mod(a) = is.", "a :- X\n =\n  Y,\n \\+\n b(\nc).",
    "a :- X = /* c */ Y.", "a :- X = Y % c\n, b.", "a :- X =/* c */ Y.", "a :- X * .",
    "a :- " + " + ".join("1" * 200) + " > 2.", "a :- " + "(" * 30 + "b" + ")" * 30 + ".",
    "a :- " + ", ".join("b" * 300) + ".", "a :- " + "; ".join("b" * 300) + ".", "a :- " + "\\+ " * 40 + "b.",
    "a :- X == 'b c', Y = [1, 'd'].", "a :- X = 'b'(c).", "a(b).c(d).",
    "p(0..4).", "a :- X = 1 .. 2 .. 3.", "a :- X > 2 ** 3 * 4 ** 5 + 1..2.", "a :- 2 ** 3 ** 4 > 1.",
    "p(1 ..3, 1.. 3, X..Y).", "p(0..-1).", "p(1.5..2).", "a :- b.c(d).", "a(3).b.",
    "p(a,b, -1,007).", "p(a, b, c, d, e).", "  p(a).\n q(b,\tc).\nr(d,  e). s(f).%", "p(a,b).q", f"p(a, {'x' * 990}).",
]


def random_term(rng: random.Random, depth: int) -> str:
    """Text of a term with operators, spaces where they may be; most but not all of these are sentences."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice("X _ a mod is 'bc' 0 -1 2.5 -0.5 [] dynamic obj1 \"s\"".split())
    left, right = random_term(rng, depth - 1), random_term(rng, depth - 1)
    space = rng.choice(["", " ", " ", " ", "\n "])
    kind = rng.randrange(10)
    if kind < 5:
        operator = rng.choice(", ; :- :: -> | = \\= == < > =< is + - * / // mod rem ** ^ .. : --> /\\".split())
        return f"{left}{space}{operator}{space}{right}"
    if kind == 5:
        return f"\\+{space}{left}"
    if kind == 6:
        return f"({left}{space})"
    if kind == 7:
        return f"[{left},{space}{right}]"
    return f"p{rng.choice(['', '', '', ' '])}({left},{space}{right})" if kind == 8 else f"- {left}"


def shape(term: Term | None) -> Any:
    """All that is in a term, spans and depth included."""
    if term is None:
        return None
    children: tuple[Any, ...] = ()
    if isinstance(term, Compound):
        children = (place(term.name_span), *map(shape, term.args))
    elif isinstance(term, ListTerm):
        children = (*map(shape, term.items), shape(term.tail))
    return type(term).__name__, str(term), place(term.span), term.depth, children


def place(span: Span) -> tuple[int, int, int, int]:
    return span.line, span.column, span.end_line, span.end_column


def read(text: str) -> tuple[list[Any], list[str]]:
    found = Diagnostics()
    sentences = parse(Source("x.pl", text), found)
    return [(s.kind, place(s.span), s.words, shape(s.term)) for s in sentences], list(map(str, found.found))


def by_grammar(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[str]]:
    with monkeypatch.context() as patched:
        patched.setattr(plain.Plain, "sentence", lambda self, start: None)
        return read(text)


def texts() -> Iterator[str]:
    rng, programs = random.Random(3), fuzz.corpus()
    yield from programs
    for _ in range(150):
        yield fuzz.mutated(rng, programs)
        yield fuzz.random_program(rng)
        yield fuzz.token_soup(rng)
        yield fuzz.random_characters(rng)


@pytest.mark.parametrize("text", SENTENCES)
def test_sentences(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for around in (text, f"\n  {text}\n", f"before(a).\n{text} behind :- it."):
        assert read(around) == by_grammar(around, monkeypatch)


def test_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in texts():
        assert read(text) == by_grammar(text, monkeypatch), text


@pytest.mark.parametrize("seed", range(sample(4, 40)))
def test_operators(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    for _ in range(250):
        text = f"{random_term(rng, rng.randrange(1, 6))}."
        assert read(text) == by_grammar(text, monkeypatch), text


def test_plain_sentences_need_no_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Sentence:
        raise AssertionError("this sentence is plain")

    monkeypatch.setattr("nsfrc.compiler.parse.by_grammar.parse_sentence", refuse)
    text = "% words\n:- type(color, [red, 'Sky Blue', 3]).\nkp(X) :-\n  in(O, X), /* */ color(O, red).\nwarm(red).\n"
    found = Diagnostics()
    assert len(parse(Source("x.pl", text.replace("/* */ ", "")), found)) == 3 and not found.found
    with pytest.raises(AssertionError, match="is plain"):
        parse(Source("x.pl", text), found)


def test_tokens_are_those_of_the_grammar() -> None:
    lark = grammar._lark()
    for name, pattern in (("NAME", plain.NAME), ("VARIABLE", plain.VARIABLE)):
        assert lark.get_terminal(name).pattern.value == pattern.replace("*+", "*")
    words = re.search(r"\(\?:([\w|]+)\)", lark.get_terminal("DECLARE").pattern.to_regexp())
    assert words and set(words[1].split("|")) == plain.DECLARING
