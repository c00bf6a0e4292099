"""The runner of the documentation finds what is wrong with a page; each case would pass with the fault mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import Page, PageError, matches
from tests.docs.running import Runner

GOOD = ":- type(image, [img]).\n:- type(object, slots(2)).\n:- neural(in(object, image)).\n:- target(kp(img)).\n"
RULE = "kp(X) :- in(_, X)."


def block(first: str, *lines: str) -> str:
    return "\n".join([f"```{first}", *lines, "```", ""])


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *blocks: str) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("\n".join(blocks))
    Runner(Page(page), tmp_path).run()


PASSING = {
    "program": [block("prolog rules.pl", GOOD + RULE), block("prolog fragment rules.pl", "kp(X) :- in(obj1, X).")],
    "refused": [block("prolog refused", GOOD + "kp(X) :- im(_, X)."),
                block("text", "program.pl:5:10: error: unknown predicate im/2", "...", "  hint: did you mean in/2?")],
    "python": [block("python", "x = 2"), block("python", "print(x, 0.25)"), block("text", "2 0....")],
    "console": [block("prolog rules.pl", GOOD + RULE),
                block("console", "$ echo one; echo two", "one", "two", "$ nsfrc compile rules.pl \\",
                      "  --emit ast", "...", "$ nsfrc compile lost.pl", "error: ...lost.pl...", "...")],
    "in a list": ["- item\n\n  ```json\n  {\"a\": 1}\n  ```\n"],
    "not run": [block("console no-run takes long", "$ X=1 nsfrc train perception --out FILE && make demo  # hours"),
                block("bash", "nsfrc data kandinsky PATTERN --out figures > log.txt")],
}

FAILING = {
    "program.*refused": [block("prolog", GOOD + "kp(X) :- im(_, X).")],
    "not refused": [block("prolog refused", GOOD + RULE)],
    "nsfrc says": [block("prolog refused", GOOD + "kp(X) :- im(_, X)."), block("text", "program.pl:5:1: error: no")],
    "no warnings": [block("prolog warned", GOOD + RULE)],
    "does not parse": [block("prolog fragment", "kp(X :-")],
    "page.md:2: .*NameError": [block("python", "y")],
    "printed": [block("python", "print(1)"), block("text", "2")],
    "instead of": [block("console", "$ echo one", "two")],
    "`echo one` printed": [block("console", "$ echo one")],
    "ended with 3": [block("console", "$ exit 3")],
    "says otherwise": [block("console", "$ echo 'error: none'", "error: none")],
    "begins with": [block("console", "echo one")],
    "needs a reason": [block("console no-run", "$ true")],
    "No such option": [block("console no-run slow", "$ nsfrc compile twopairs --fast")],
    "no such command": [block("bash", "cd x && nsfrc compil twopairs")],
    "is missing": [block("bash", "nsfrc data kandinsky twopairs")],
    "unexpected argument": [block("bash", "nsfrc programs all")],
    "is not one of": [block("bash", "nsfrc compile rules.pl --emit words")],
    "no target": [block("bash", "make nonsense")],
    "no module": [block("bash", "python -m nsfrc.benchmarks.nonsense")],
    "language is missing": [block("", "text")],
    "language is pyhton": [block("pyhton", "1")],
    "no JSON": [block("json", "{")],
    "no end": ["```text\nopen"],
}


@pytest.mark.parametrize("name", PASSING)
def test_what_is_right_passes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, monkeypatch, *PASSING[name])


@pytest.mark.parametrize("message", FAILING)
def test_what_is_wrong_is_found(message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PageError, match=f"(?s){message}"):
        run(tmp_path, monkeypatch, *FAILING[message])


@pytest.mark.parametrize(("shown", "printed", "same"), [
    ("a\n...\nd", "a\nb\nc\nd", True), ("a\n...\nd", "a\nd", True), ("a ... d", "a b c d", True),
    ("a ... d", "a b\nc d", False), ("a.c", "abc", False), ("a", "a\nb", False), ("", "a", False), ("a", "a  \n", True),
])
def test_dots_stand_for_anything(shown: str, printed: str, same: bool) -> None:
    assert matches(shown, printed) is same


def test_indented_blocks_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("text\n\n    code\n\n- item\n\n    in the item\n\ntext\n    more of it\n\n"
                    "```text\n\n    in a fence\n```\n")
    assert list(Page(page).indented()) == [3]


def test_links_and_headings(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("## Your own: `a` and b\n[x](y.md#z) ![p](q.png)\n`[no](link)`\n```text\n[no](link)\n```\n")
    assert [target for _, target in Page(page).links()] == ["y.md#z", "q.png"]
    assert Page(page).anchors() == {"your-own-a-and-b"}
