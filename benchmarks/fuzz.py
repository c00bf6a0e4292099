"""Random and mutated texts through the compiler.

    python -m nsfrc.benchmarks.fuzz --count 100000 --seed 0

Whatever the text, the compiler answers with a plan or with diagnostics. Anything else is printed
with the text that caused it, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from nsfrc.compiler.levels import LevelPlan  # noqa: E402
from nsfrc.compiler.parse import parse  # noqa: E402
from nsfrc.compiler.stages import Options, compile_sentences  # noqa: E402
from nsfrc.compiler.verify import verify_levels, verify_plan  # noqa: E402
from nsfrc.errors import CompileError, Diagnostics, NsfrcError, Source  # noqa: E402

MAX_ROWS = 100_000  # larger programs are refused, to keep the rate

TOKENS = """
    kp color shape in closeby obj1 img red blue circle true fail false dif query type pred neural target slots steps
    gamma classes threshold include dynamic table mod is findall member write nl X Y Z O1 _ _X 0 1 2 -1 1.5 1e400
    0'a 0x1f 12abc 'a b'
    'it''s' '\\n' '\\x41\\' '\\q' ' " `a` "s" "" '' [] {} ( ) [ ] { } , ; | ! . :- --> ?- -> *-> :: \\+ = \\= == \\==
    @< =.. =:= =\\= < > =< >= : + - * / // << ** ^ \\ /\\ % /* */ é Ω § \\
""".split()
VOCABULARY = """
:- type(image, [img]).  :- type(object, slots(3)).  :- type(color, [red, blue]).  :- type(size, [1, 2.5]).
:- neural(in(object, image)).  :- neural(color(object, color)).  :- neural(size(object, size)).
:- neural(closeby(object, object)).  :- target(kp(img)).
kp(X) :- in(_, X).  warm(red).  pair(O, P) :- closeby(O, P).  alarm :- color(_, red).
"""
SIGNATURES = {
    "in": ["object", "image"], "color": ["object", "color"], "size": ["object", "number"], "alarm": [],
    "closeby": ["object", "object"], "kp": ["image"], "pair": ["object", "object"], "warm": ["color"],
}
ARGUMENTS = {
    "image": ["X", "X", "img"], "object": ["O", "P", "O", "P", "_", "obj1"], "color": ["C", "D", "red", "blue"],
    "number": ["S", "S", "1", "2.5"], "any": ["X", "Y", "_", "f(X)", "purple", "red", "[]", "-1", "'a b'"],
}
EXTRAS = ["warm(blue).", ":- pred(pair(object, object)).", ":- target(pair(_, _)).", "?- alarm.", "query(kp(img)).",
          ":- classes([pair(_, obj1), alarm]).", ":- threshold(pair(_, P), 0.5)."]
EQUAL_NOT = "\\="
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
ALPHABET = "abXY_01 \n\t.,;:-()[]{}|!'\"`\\/*%+=<>@#$^&~?é\0\u2028"


def compile_text(text: str) -> str:
    """Run one text: 'program', 'refused', or an exception that should not be."""
    found = Diagnostics()
    try:
        sentences = parse(Source("fuzz.pl", text), found)
        done = compile_sentences(sentences, Path("fuzz.pl"), found, Options(max_rows=MAX_ROWS))
        if isinstance(done.plan, LevelPlan):
            verify_levels(done.plan, done.ground)
        else:
            verify_plan(done.plan, done.ground)
        outcome = "program"
    except (CompileError, NsfrcError) as refused:
        str(refused)
        outcome = "refused"
    for diagnostic in found.found:
        str(diagnostic)
    return outcome


def corpus() -> list[str]:
    """The programs that are mutated, good ones more than once; included files stand in their place."""
    shipped = sorted(ROOT.glob("programs/*/*.pl"))
    files = shipped + sorted(ROOT.glob("tests/frontend/errors/*.pl"))
    texts = {path.name: path.read_text("utf-8") for path in files}

    def inline(match: re.Match[str]) -> str:
        included = texts.get(match[1], "")
        return "" if "include" in included else included

    whole = {name: re.sub(r":- include\('([^']*)'\)\.", inline, text) for name, text in texts.items()}
    return [*whole.values(), *(whole[path.name] for path in shipped for _ in range(3))]


def random_bytes(rng: random.Random) -> str:
    return rng.randbytes(rng.randrange(80)).decode("latin-1" if rng.random() < 0.5 else "utf-8", "replace")


def random_characters(rng: random.Random) -> str:
    return "".join(rng.choices(ALPHABET, k=rng.randrange(120)))


def token_soup(rng: random.Random) -> str:
    separators = rng.choice([" ", "", " ", "\n"])
    return separators.join(rng.choices(TOKENS, k=rng.randrange(60))) + rng.choice(["", ".", ".\n"])


def random_program(rng: random.Random) -> str:
    """Well-formed clauses over a small vocabulary, mostly with arguments of the right type."""
    sentences = []
    for _ in range(rng.randrange(1, 5)):
        head = _random_atom(rng, "kp kp pair warm alarm".split())
        body = [_random_goal(rng) for _ in range(rng.randrange(5))]
        binding = ["in(O, X), closeby(O, P), color(O, C), color(P, D), size(O, S)"] if rng.random() < 0.9 else []
        goals = ", ".join(binding + body)
        sentences.append(f"{head} :- {goals}." if goals else f"{head}.")
    return VOCABULARY + "\n".join(sentences + rng.sample(EXTRAS, 2))


def _random_atom(rng: random.Random, names: list[str]) -> str:
    name = rng.choice(names)
    kinds = SIGNATURES[name] if rng.random() < 0.97 else SIGNATURES[rng.choice(names)]
    args = [rng.choice(ARGUMENTS[kind if rng.random() < 0.97 else "any"]) for kind in kinds]
    return f"{name}({', '.join(args)})" if args else name


def _random_goal(rng: random.Random) -> str:
    kind = rng.randrange(12)
    if kind == 0:
        return f"({_random_goal(rng)} {rng.choice(',;;')} {_random_goal(rng)})"
    if kind == 1:
        left, right = (rng.choice(ARGUMENTS["number"]) for _ in range(2))
        return f"{left} {rng.choice(['<', '>=', '=:=', '=<'])} {right}{rng.choice(['', ' + 1', ' * S', ' mod 2'])}"
    if kind == 2:
        values = ARGUMENTS[rng.choice(["object", "color"])]
        return f"{rng.choice(values)} {rng.choice(['=', EQUAL_NOT, '==', EQUAL_NOT + '='])} {rng.choice(values)}"
    if kind == 3 and rng.random() < 0.3:
        return rng.choice(["true", "fail", "!", "dif(O, P)", "X", "call(X)"])
    return _random_atom(rng, [*SIGNATURES])


def mutated(rng: random.Random, programs: list[str]) -> str:
    """A program with a few pieces deleted, doubled, swapped, inserted or replaced."""
    text = rng.choice(programs)
    if len(text) > 600 and rng.random() < 0.6:  # most errors need a few sentences only
        start = rng.randrange(len(text) - 500)
        text = text[start : start + 500]
    by_token = rng.random() < 0.7
    pieces = TOKEN.findall(text) if by_token else list(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        _mutate(rng, pieces, by_token)
    return "".join(pieces)


def _mutate(rng: random.Random, pieces: list[str], by_token: bool) -> None:
    if not pieces:
        return
    first, second = rng.randrange(len(pieces)), rng.randrange(len(pieces))
    action = rng.randrange(6)
    if action == 0:
        del pieces[first]
    elif action == 1:
        pieces.insert(first, pieces[first])
    elif action == 2:
        pieces[first], pieces[second] = pieces[second], pieces[first]
    elif action == 3:
        pieces.insert(first, rng.choice(TOKENS) if by_token else rng.choice(ALPHABET))
    elif action == 4:
        pieces[first] = rng.choice(TOKENS) if by_token else rng.choice(ALPHABET)
    else:
        first, second = min(first, second), max(first, second)
        pieces[first:second] = pieces[first:second] * rng.choice([0, 2]) if second - first < 40 else []


def texts(count: int, seed: int) -> Iterator[str]:
    """The same texts for the same seed."""
    rng = random.Random(seed)
    programs = corpus()
    makers: list[Callable[[random.Random], str]] = [
        random_bytes, random_characters, token_soup, random_program, random_program,
        *[lambda r: mutated(r, programs)] * 5,
    ]
    for _ in range(count):
        yield rng.choice(makers)(rng)


def run(count: int, seed: int, progress: bool = True) -> tuple[Counter[str], list[tuple[str, str]]]:
    """Outcomes by kind, and (traceback, text) of each failure."""
    outcomes: Counter[str] = Counter()
    failures: list[tuple[str, str]] = []
    start = time.perf_counter()
    for number, text in enumerate(texts(count, seed), start=1):
        try:
            outcomes[compile_text(text)] += 1
        except (Exception, RecursionError):
            outcomes["failure"] += 1
            failures.append((traceback.format_exc(), text))
        if progress and number % 5000 == 0:
            rate = number / (time.perf_counter() - start)
            print(f"{number} texts, {dict(outcomes)}, {rate:.0f} texts/s", flush=True)
    return outcomes, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    outcomes, failures = run(options.count, options.seed)
    for trace, text in failures[:20]:
        print(f"{trace}\n--- text\n{text!r}\n")
    seconds = time.perf_counter() - start
    print(f"{options.count} texts in {seconds:.1f} s ({options.count / seconds:.0f} texts/s): {dict(outcomes)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
