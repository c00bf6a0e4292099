"""Layout: the same sentences, the same comments in order, and twice the same bytes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nsfrc.benchmarks import fuzz
from nsfrc.compiler.formatting import formatted
from nsfrc.compiler.formatting import same as proof
from nsfrc.compiler.formatting.same import comments, same_sentences
from nsfrc.compiler.parse.split import COMMENTS, tokens
from nsfrc.errors import CompileError, NsfrcError
from tests.amount import sample
from tests.frontend.support import sentences
from tests.frontend.test_errors import ERRORS
from tests.scrambled import scrambled

PROGRAMS = sorted(fuzz.ROOT.glob("programs/*/*.pl"))
MORE_SYNTAX = {"foreign", "long_name", "long_number", "probabilities"}
SHIM = fuzz.ROOT / "programs" / "nsfr.pl"


def kept(text: str) -> tuple[list[str], str]:
    """What a layout must not touch: all but white space, and where a functor and a sign touch what follows them."""
    found = tokens(text.replace("\r\n", "\n"), 0, comments=True)
    said = [token.text.rstrip() for token in found]
    return [word for word in said if word.startswith(("%", "/*"))], "".join(said)


def holds(text: str) -> str:
    """The layout of a text, which must say the same."""
    after = formatted(text)
    assert kept(after) == kept(text)
    assert [str(s) for s in sentences(after)] == [str(s) for s in sentences(text.replace("\r\n", "\n"))]
    assert formatted(after) == after
    return after


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_shipped_programs_are_laid_out_so(path: Path) -> None:
    text = path.read_text("utf-8")
    assert holds(text) == text


def test_prolog_of_others() -> None:
    """The shim is no program of the language and has all that Prolog has: grammars, if-then-else over lines."""
    text = SHIM.read_text("utf-8")
    lines = holds(text).split("\n")
    assert max(len(line) for line in lines if "%" not in line and line[:1] not in "/ ") <= 100


def test_golden_errors() -> None:
    """Files with syntax errors are refused, with nothing but those; all others are laid out."""
    for path in sorted(ERRORS.glob("*.pl")):
        if path.stem.startswith("syntax") or path.stem in MORE_SYNTAX:
            with pytest.raises((CompileError, UnicodeDecodeError)):
                formatted(path.read_text("utf-8"))
        else:
            holds(path.read_text("utf-8"))


def test_random_programs() -> None:
    """Texts of the fuzzer as they are, and with white space and comments put in at random."""
    rng = random.Random(7)
    good = messy = 0
    for text in fuzz.texts(sample(200, 10_000), seed=22):
        try:
            holds(text)
            good += 1
            holds(scrambled(text, rng))
            messy += 1
        except CompileError:
            continue
    print(f"{good} texts without syntax errors, {messy} of them scrambled")
    assert good > 40 and messy > 20


@pytest.mark.parametrize(("text", "expected"), [
    ("kp(X):-in(O,X) .", "kp(X) :- in(O, X)."),
    ("a:-b;c->d.", "a :- b ; c -> d."),
    ("a :-\n  b.", "a :-\n    b."),
    ("a :- b,\n c.", "a :-\n    b,\n    c."),
    ("a\n:- b.", "a :- b."),
    ("a :- X\n= b.", "a :- X = b."),
    (":- type(color,\n [red,\n blue]).", ":- type(color, [red, blue])."),
    ("a :- \\+b, \\+(c,d), \\+ (c,d).", "a :- \\+ b, \\+(c, d), \\+ (c, d)."),
    ("a :- X = -1, Y = - 1, Z is X-1, W is X -1, V is X- -1.",
     "a :- X = -1, Y = - 1, Z is X-1, W is X - 1, V is X - -1."),
    ("a :- X is 2*Y, Z is 2 *Y, W is Y mod 2.", "a :- X is 2*Y, Z is 2 * Y, W is Y mod 2."),
    (":- type(n, 0 .. 4). :- type(m, 0 .. -1).", ":- type(n, 0..4).\n:- type(m, 0.. -1)."),
    ("0.5 :: a. t( 0.5 )::b:-c.", "0.5::a.\nt(0.5)::b :- c."),
    ("a([H | T], [ ], (b|c)).", "a([H|T], [], (b | c))."),
    ("a(*) . b(= ) :- c = * .", "a(*).\nb(=) :- c = * ."),
    (":- dynamic a/1,b/2.", ":- dynamic a/1, b/2."),
    ("a('it''s', 0'a, 0' , \"x  y\", 1_000, 'a\\\n b').", "a('it''s', 0'a, 0' , \"x  y\", 1_000, 'a\\\n b')."),
    ("a. % one\n\n\n\n\nb.", "a. % one\n\n\nb."),
    ("\n\n% first  \n a.\n% last", "% first\na.\n% last"),
    ("a.   % one\n     % goes on\n% two\nb.", "a.   % one\n     % goes on\n% two\nb."),
    ("a :- b, % why\nc.", "a :-\n    b, % why\n    c."),
    ("a :- % why\nb.", "a :- % why\n    b."),
    ("a :- b\n   % why\n , c.", "a :-\n    b\n    % why\n    , c."),
    ("a(/* one */b).", "a( /* one */ b)."),
    ("a :- (b->c\n;d\n).", "a :-\n    (   b -> c\n    ;   d\n    )."),
    ("a :- =(/* x */ 1, 2).", "a :- =( /* x */ 1, 2)."),
])
def test_layouts(text: str, expected: str) -> None:
    assert holds(text) == expected + "\n"


def test_long_sentences_are_filled() -> None:
    goals = [f"color(O{n}, red)" for n in range(12)]
    lines = holds(f"kp(X) :- {','.join(goals)}.").split("\n")
    assert lines[0] == "kp(X) :-" and all(line.startswith("    color(") for line in lines[1:-1])
    assert max(map(len, lines)) <= 100 and len(lines) == 5
    row = ",".join(goals)
    for text in (f":- classes([{row}]).", f"kp({row}).", f"a :- forall(({row}), b)."):
        assert max(map(len, holds(text).split("\n"))) <= 100
    name = "a" * 150
    assert holds(f"a :- {name}, {name}.") == f"a :-\n    {name},\n    {name}.\n"


def test_line_ends_and_byte_order_mark() -> None:
    assert formatted("a:-b.\r\n% c\r\n\r\nd.") == "a :- b.\r\n% c\r\n\r\nd.\r\n"
    assert formatted("\ufeffa:-b.") == "\ufeffa :- b.\n"
    assert formatted("") == formatted("\n \n") == ""
    assert formatted("% only") == "% only\n"


def test_a_layout_that_says_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("a :- c.\n", "a :- b.\nb.\n", "a :- b\n", "a :- b. % new\n", "a :- b, b.\n"):
        monkeypatch.setattr(proof, "laid_out_text", lambda _text, wrong=wrong: wrong)
        with pytest.raises(NsfrcError, match="please report it"):
            formatted("a:-b.")


def test_same_sentences() -> None:
    left = sentences("a(X, [b|T]) :- c, d.")
    assert same_sentences(left, sentences("a(X,[b|T]):-\n c,d ."))
    for other in ("a(Y, [b|T]) :- c, d.", "a(X, [b, T]) :- c, d.", "a(X, [b|T]) :- c, e.", "a(X, [b|T]) :- c.",
                  ":- a(X, [b|T]), c, d.", "a(X, [b|T]) :- c, d. e."):
        assert not same_sentences(left, sentences(other))
    goals = ", ".join(["g"] * 5000)
    assert same_sentences(sentences(f"a :- {goals}."), sentences(f"a :- {goals}."))
    assert comments("a. % x \n/* y */") == ["% x", "/* y */"] and {"LINE_COMMENT", "BLOCK_COMMENT"} == COMMENTS
