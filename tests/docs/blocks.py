"""The pages of the documentation as data: their code blocks, links, headings and `code` in running text.

A block begins with three backticks and says what it is:

    prolog                  a program; it must compile
    prolog rules.pl         the same, and it is the file rules.pl for the blocks after it
    prolog refused [FILE]   a program that is refused; a text block right after it is what nsfrc says of it
    prolog warned [FILE]    a program that compiles with warnings; a text block right after it is these
    prolog fragment [FILE]  a part of a program: it must parse, and with FILE compile when it is added to that file
    python [FILE]           run in one namespace a page; a text block right after it is what it prints
    console                 lines with "$ " are run, the others are what they print, and fail if they say "error: "
    console no-run WHY      not run; commands and options must exist
    bash                    as console no-run, without "$ "
    json, toml              must parse
    others in FREE          for the reader's eyes

In what is printed, "..." stands for anything, and alone on a line for any number of lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FREE = {"text", "vim", "lua", "elisp", "yaml", "mermaid", "ini", "fish", "zsh", "jsonc", "make"}
CHECKED = {"prolog", "python", "console", "bash", "json", "toml"}

_FENCE = re.compile(r"^( *)(`{3,}|~{3,})\s*(.*?)\s*$")
_LINK = re.compile(r"!?\[(?:[^\]\\]|\\.)*\]\(([^)\s]+)[^)]*\)")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
_ITEM = re.compile(r"^([-*+]|\d+[.)])\s")


class PageError(AssertionError):
    """Something is wrong with a page; the message begins with its name and line."""


@dataclass(frozen=True)
class Block:
    """One fenced block. line: of its first line of text. words: what stands after the language."""

    page: str
    line: int
    language: str
    words: tuple[str, ...]
    text: str
    next: Block | None = field(default=None, repr=False)

    @property
    def flag(self) -> str:
        """The word after the language that says how it is taken, or nothing."""
        known = {"prolog": ("refused", "warned", "fragment"), "console": ("no-run",)}.get(self.language, ())
        return self.words[0] if self.words and self.words[0] in known else ""

    @property
    def name(self) -> str | None:
        """The file that the block is, if any."""
        rest = self.words[1:] if self.flag else self.words
        return rest[0] if rest else None

    @property
    def printed(self) -> str | None:
        """The text block right after this one, if there is one."""
        return self.next.text if self.next is not None and self.next.language == "text" else None

    def fail(self, message: str, offset: int = 0) -> PageError:
        return PageError(f"{self.page}:{self.line + offset}: {message}")


@dataclass(frozen=True)
class Page:
    """A page: its text with line numbers from 1, and what is in it."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix() if self.path.is_relative_to(ROOT) else self.path.name

    @cached_property
    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines()

    @cached_property
    def blocks(self) -> list[Block]:
        """Every fenced block in order; each knows the one that follows it with nothing but blank lines between."""
        found: list[Block] = []
        below: tuple[int, Block] | None = None  # the block after this one, and the line of its fence
        for first, last, language, words, text in reversed(list(self._fenced())):
            close = below is not None and not "".join(self.lines[last : below[0] - 1]).strip()
            block = Block(self.name, first + 1, language, words, text, below[1] if below and close else None)
            below = first, block
            found.append(block)
        return found[::-1]

    def _fenced(self) -> Iterator[tuple[int, int, str, tuple[str, ...], str]]:
        """(line of the opening fence, line of the closing fence, language, words after it, text)."""
        opened: tuple[int, str, str, str] | None = None
        body: list[str] = []
        for number, line in enumerate(self.lines, 1):
            found = _FENCE.match(line)
            if opened is None:
                if found:
                    opened, body = (number, found[1], found[2], found[3]), []
                continue
            first, indent, fence, information = opened
            if found and found[2].startswith(fence) and not found[3]:
                language, *words = information.split() or [""]
                yield first, number, language, tuple(words), "\n".join(body)
                opened = None
            else:
                body.append(line.removeprefix(indent))
        if opened is not None:
            raise PageError(f"{self.name}:{opened[0]}: this block has no end")

    @cached_property
    def prose(self) -> list[tuple[int, str]]:
        """Lines outside of fenced blocks, with their numbers."""
        inside = {i for first, last, *_ in self._fenced() for i in range(first, last + 1)}
        return [(i, line) for i, line in enumerate(self.lines, 1) if i not in inside]

    def indented(self) -> Iterator[int]:
        """Lines that Markdown takes for a code block without a fence: indented by four, after a blank, in no list."""
        before, top = "", ""
        for number, line in self.prose:
            if line.startswith("    ") and line.strip() and not before.strip() and not _ITEM.match(top):
                yield number
            if line.strip() and not line.startswith(" "):
                top = line
            before = line

    def links(self) -> Iterator[tuple[int, str]]:
        """Targets of links and pictures."""
        for number, line in self.prose:
            for found in _LINK.finditer(re.sub(r"`[^`]*`", "", line)):
                yield number, found[1]

    def anchors(self) -> set[str]:
        """What `#...` may follow the page's name in a link."""
        titles = [found[1] for _, line in self.prose if (found := _HEADING.match(line))]
        return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}

    def spans(self) -> Iterator[tuple[int, str]]:
        """`Code` in running text; a span may go over the end of a line."""
        text = "\n".join(line for _, line in self.prose)
        numbers = [number for number, _ in self.prose]
        for found in re.finditer(r"(?<!`)`([^`]+)`(?!`)", text):
            yield numbers[text[: found.start()].count("\n")], " ".join(found[1].split())


def pages() -> list[Page]:
    """README.md, CONTRIBUTING.md and every page in docs/."""
    return [Page(p) for p in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))]


def commands(block: Block) -> Iterator[tuple[int, str, str]]:
    """(offset of its line, command, what it prints) of a console block.

    A line that ends in "\\" goes on with the next. In a bash block every line is a command and nothing is printed.
    """
    lines = block.text.splitlines()
    if block.language == "bash":
        lines = ["$ " + line.removeprefix("$ ") for line in lines if line.strip() and not line.startswith("#")]
    i = 0
    while i < len(lines):
        start = i
        if not lines[i].startswith("$ "):
            raise block.fail(f"a console block begins with \"$ \", not with {lines[i]!r}", i)
        command, i = lines[i][2:], i + 1
        while command.endswith("\\") and i < len(lines):
            more = lines[i].removeprefix("$ ").removeprefix("> ")
            command, i = command[:-1].rstrip() + " " + more.strip(), i + 1
        first = i
        while i < len(lines) and not lines[i].startswith("$ "):
            i += 1
        yield start, command, "\n".join(lines[first:i])


def matches(shown: str, printed: str) -> bool:
    """Whether what a page shows is what was printed; blanks at the ends of lines do not count."""
    pattern = ""
    for line in _tidy(shown):
        if line.strip() == "...":
            pattern += r"(?:.*\n)*"
        else:
            pattern += ".*".join(map(re.escape, re.split(r"\.\.\.(?!\.)", line))) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _tidy(printed))) is not None


def _tidy(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]
