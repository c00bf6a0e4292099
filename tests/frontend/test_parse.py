"""Prolog text as people write it."""

from __future__ import annotations

import time

import pytest

from nsfrc.compiler.parse import parse
from nsfrc.compiler.syntax import BROKEN, CLAUSE, DIRECTIVE, QUERY, Compound, Name, Number, Text
from nsfrc.errors import Diagnostics, Source
from tests.frontend.support import sentences


def canonical(term: object) -> str:
    """A term in functional notation, so that tests see how operators bind."""
    if isinstance(term, Compound):
        return f"{term.name}({','.join(canonical(arg) for arg in term.args)})"
    return str(term)


def reading(text: str) -> str:
    (sentence,) = sentences(text)
    return canonical(sentence.term)


@pytest.mark.parametrize(("text", "expected"), [
    ("a :- b, c ; d.", ":-(a,;(,(b,c),d))"),
    ("a :- b -> c ; d.", ":-(a,;(->(b,c),d))"),
    ("a :- b, c, d.", ":-(a,,(b,,(c,d)))"),
    ("a :- \\+ b, c.", ":-(a,,(\\+(b),c))"),
    ("a :- \\+ \\+ b.", ":-(a,\\+(\\+(b)))"),
    ("a :- X = Y, Z \\== W.", ":-(a,,(=(X,Y),\\==(Z,W)))"),
    ("x(1 + 2 * 3 - 4).", "x(-(+(1,*(2,3)),4))"),
    ("x(2 ^ 3 ^ 4).", "x(^(2,^(3,4)))"),
    ("x(2 ** -1 * 3).", "x(*(**(2,-1),3))"),
    ("x(- 2 ** 3).", "x(-(**(2,3)))"),
    ("x(- X + 1).", "x(+(-(X),1))"),
    ("x(a - 1).", "x(-(a,1))"),
    ("x(a -1).", "x(-(a,1))"),
    ("x(a - -1).", "x(-(a,-1))"),
    ("x(-1).", "x(-1)"),
    ("x(- 1).", "x(-(1))"),
    ("x(-(1)).", "x(-(1))"),
    ("x(5 mod 2 rem 3 // 4).", "x(//(rem(mod(5,2),3),4))"),
    ("X is Y mod 2.", "is(X,mod(Y,2))"),
    ("x(mod, is, rem).", "x(mod,is,rem)"),
    ("x(=, <).", "x('=','<')"),
    ("a:b:c.", ":(a,:(b,c))"),
    ("0.3::a :- b.", ":-(::(0.3,a),b)"),
    ("a --> b, c.", "-->(a,,(b,c))"),
    ("x((a :- b)).", "x(:-(a,b))"),
    ("x((a, b)).", "x(,(a,b))"),
    ("x({a, b}, {}).", "x({}(,(a,b)),{})"),
    ("x([a, b | T], []).", "x([a,b|T],[])"),
    ("a :- (b | c).", ":-(a,;(b,c))"),
    ("x(a=b).", "x(=(a,b))"),
    ("a:-b.", ":-(a,b)"),
    ("a:- \\+b.", ":-(a,\\+(b))"),
    ("X =.. Y.", "=..(X,Y)"),
    ("a :- X @< Y, X @>= Z.", ":-(a,,(@<(X,Y),@>=(X,Z)))"),
])
def test_operators(text: str, expected: str) -> None:
    assert reading(text) == expected


@pytest.mark.parametrize(("text", "value"), [
    ("1", 1), ("-1", -1), ("1.5", 1.5), ("1.5e3", 1500.0), ("1e10", 1e10), ("0x1F", 31), ("0b101", 5), ("0o17", 15),
    ("0'a", 97), ("0'''", 39), ("0'\\n", 10), ("1_000", 1000), ("007", 7),
])
def test_numbers(text: str, value: float) -> None:
    (sentence,) = sentences(f"x({text}).")
    assert isinstance(sentence.term, Compound)
    number = sentence.term.args[0]
    assert isinstance(number, Number) and number.value == value and type(number.value) is type(value)


@pytest.mark.parametrize(("text", "value"), [
    ("'big box'", "big box"), ("'it''s'", "it's"), ("'it\\'s'", "it's"), ("'a\\nb\\tc'", "a\nb\tc"), ("''", ""),
    ("'\\x41\\b'", "Ab"), ("'\\101\\'", "A"), ("'\\u00e9'", "é"), ("'\\\\'", "\\"), ("'a\\\nb'", "ab"),
    ("'Red'", "Red"), ("été", "été"),
])
def test_names(text: str, value: str) -> None:
    (sentence,) = sentences(f"x({text}).")
    assert isinstance(sentence.term, Compound)
    assert sentence.term.args == (Name(value, sentence.span),)


def test_strings_and_quoted_predicates() -> None:
    (sentence,) = sentences("'my pred'(\"a \"\"b\"\" c\", `codes`).")
    assert isinstance(sentence.term, Compound)
    assert sentence.term.name == "my pred"
    assert [arg.value for arg in sentence.term.args if isinstance(arg, Text)] == ['a "b" c', "codes"]


def test_comments_and_layout() -> None:
    text = """% a comment. With a full stop.
    /* another.
       over lines */ kp(X) :-   % after the head
        in(O, /* inside */ X),
        color(O, 'a % b').% no space before this comment
    :- target(kp(img)).
    ?- kp(img).
    x('/* not a comment */')."""
    kinds = [sentence.kind for sentence in sentences(text)]
    assert kinds == [CLAUSE, DIRECTIVE, QUERY, CLAUSE]


def test_prefix_directives() -> None:
    texts = [str(sentence) for sentence in sentences(":- dynamic a/1, b/2. :- table p/1. table(x). table :- dynamic.")]
    assert texts == [":- dynamic(((a / 1), (b / 2))).", ":- table((p / 1)).", "table(x).", "table :-\n    dynamic."]


def test_spans() -> None:
    first, second = sentences("a.\nkp(X) :-\n    in(O, X).\n")
    assert str(first.span) == "test.pl:1:1"
    assert (second.span.line, second.span.end_line) == (2, 3)
    assert isinstance(second.term, Compound)
    assert str(second.term.args[1].span) == "test.pl:3:5"


def test_recovers_after_each_bad_sentence() -> None:
    found = Diagnostics()
    result = parse(Source("x.pl", "a b.\nok1.\nf(.\nok2.\n'x\nok3.\nc :- d"), found)
    assert [str(s) for s in result if s.kind != BROKEN] == ["ok1.", "ok2."]
    assert [d.span.line for d in found.found if d.span] == [1, 3, 5, 7]


def test_missing_end_keeps_the_next_clause() -> None:
    found = Diagnostics()
    result = parse(Source("x.pl", "a :- b\nc :- d.\n"), found)
    assert [str(s) for s in result if s.kind != BROKEN] == ["c :-\n    d."]
    assert len(found.found) == 1


def test_many_syntax_errors_end() -> None:
    found = Diagnostics()
    parse(Source("x.pl", "a b.\n" * 1000), found)
    assert len(found.found) == 100
    assert found.found[-1].code == "too-many-syntax-errors"


@pytest.mark.parametrize("text", [
    "f(" * 1000 + "a" + ")" * 1000 + ".",
    "[" * 1000 + "]" * 1000 + ".",
    "((" * 1000 + "a" + "))" * 1000 + ".",
    "- " * 20_000 + "1.",
    "\\+ " * 20_000 + "a.",
    "a," * 20_000 + "a.",
    "a:-" + "b;" * 20_000 + "b.",
    "x(" + "1+" * 20_000 + "1).",
    "(" * 50_000,
    "'" + "\\x41" * 25_000,
    "1" * 100_000 + ".",
    "a" * 100_000 + ".",
    "-" * 100_000 + ".",
    "." * 100_000,
    "\0" * 10_000,
    "/*" * 50_000,
])
def test_long_and_deep_texts(text: str) -> None:
    found = Diagnostics()
    start = time.process_time()
    result = parse(Source("x.pl", text), found)
    assert result or found.found
    "\n".join(map(str, found.found))
    assert time.process_time() - start < 20


ROUND_TRIP = [
    "a.", "kp(X) :- in(O,X), color(O,'Red').", "a :- b ; c, d.", "a :- (b ; c), d.", "x([a,b|T],\"s\",{y},-1,-(1)).",
    ":- dynamic a/1.", "?- x.", "a :- X = Y, X - 1 < 2 * (3 + Y).", "a --> b.", "0.5::a :- b.", "x('it''s\\n', '').",
    "\\+ (a, b).", "x(- (- 1)).", "(a :- b) :- c.", "x(1.5e300, 'a\\x1b\\').", "+(1).", "x(mod, '=', '!').", "!.",
]


@pytest.mark.parametrize("text", ROUND_TRIP)
def test_text_of_a_sentence_reads_back(text: str) -> None:
    (sentence,) = sentences(text)
    (again,) = sentences(str(sentence))
    assert again == sentence
