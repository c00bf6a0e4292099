"""Where the lines of a sentence begin, and how far they are indented.

A clause stays on one line if it fits and its author did not break it. Otherwise its body begins on the next line,
indented; line ends of the author are kept where they stand beside a comma, a bracket or an alternative, and lines that
are too long are filled. Facts and directives are on one line if they fit. In a sentence with comments inside, line ends
are kept whether it is a clause or not.
"""

from __future__ import annotations

from itertools import accumulate

from nsfrc.compiler.formatting.roles import NECKS, Part, Role
from nsfrc.compiler.formatting.spacing import gaps
from nsfrc.compiler.layout import WIDTH

INDENT = 4
_BRANCHES = (";", "->", "*->", "|")


def laid_out(sentence: list[Part]) -> str:
    """The text of a sentence, its comments included, from its first token to its '.'."""
    return _Sentence(sentence).text()


class _Sentence:
    """reach: how wide the sentence is up to each of its parts, were it all on one line."""

    def __init__(self, sentence: list[Part]):
        self.parts, self.gaps = sentence, gaps(sentence)
        outside = [place for place, part in enumerate(sentence) if not part.depth and part.role is Role.INFIX]
        self.neck = next((place for place in outside if sentence[place].text in NECKS), None)
        self.reach = [0, *accumulate(len(gap) + len(part.text) for gap, part in zip(self.gaps, sentence, strict=True))]
        self.commented = any(part.role is Role.COMMENT for part in sentence)

    def text(self) -> str:
        return "\n".join(self._rendered(self._filled(self._starts())))

    def _starts(self) -> set[int]:
        """The places of parts that begin a line, whatever its length."""
        kept = {place for place in range(1, len(self.parts)) if self._is_kept(place)}
        if not self.commented:
            kept = {place for place in kept if self.neck is not None and place > self.neck}
        kept |= {place for place in range(1, len(self.parts)) if self.parts[place - 1].kind == "LINE_COMMENT"}
        breaks = bool(kept) or self._width(0, len(self.parts)) > WIDTH
        if self.neck is not None and breaks and not self._comments_from(self.neck + 1):
            kept.add(self.neck + 1)
        return kept

    def _comments_from(self, place: int) -> bool:
        """Whether a comment that shares its line with what stands before it is at a place."""
        part = self.parts[place]
        return part.role is Role.COMMENT and not part.newlines

    def _is_kept(self, place: int) -> bool:
        left, right = self.parts[place - 1], self.parts[place]
        if not right.newlines:
            return False
        if Role.COMMENT in (left.role, right.role):
            return True
        beside = left.role in (Role.OPEN, Role.CALL) or left.kind == "COMMA" or place - 1 == self.neck
        return beside or right.role is Role.CLOSE or right.text in _BRANCHES or left.text in _BRANCHES or (
            self.commented and left.role is Role.PREFIX and right.depth == 0)

    def _width(self, start: int, end: int) -> int:
        """How wide the parts from `start` to before `end` are on one line."""
        return self.reach[end] - self.reach[start] - len(self.gaps[start])

    def _filled(self, starts: set[int]) -> list[tuple[int, int]]:
        """Where lines begin and how far they are indented, with more of them where a line would be too long."""
        waiting = sorted({0, *starts}, reverse=True)
        brackets = _Brackets(self.parts, self.neck)
        done: list[tuple[int, int]] = []
        while waiting:
            start = waiting.pop()
            end = waiting[-1] if waiting else len(self.parts)
            indent = brackets.indent(start)
            done.append((start, indent))
            if self._width(start, end) > WIDTH - indent and (cut := self._cut(start, end, WIDTH - indent)) is not None:
                waiting.append(end := cut)
            brackets.go_on(start, end)
        return done

    def _cut(self, start: int, end: int, room: int) -> int | None:
        """Where to break a line that is too long: behind the last of the outermost commas that fit, else the first."""
        best: int | None = None
        for place in range(start + 1, end):
            if self.parts[place - 1].kind != "COMMA" or self.parts[place].role is Role.COMMENT:
                continue
            if self._width(start, place) > room:
                return place if best is None else best
            if best is None or self.parts[place - 1].depth <= self.parts[best - 1].depth:
                best = place
        return best

    def _rendered(self, beginnings: list[tuple[int, int]]) -> list[str]:
        starts = [start for start, _ in beginnings]
        padded = _padded(self.parts, starts)
        lines = []
        for (start, indent), end in zip(beginnings, [*starts[1:], len(self.parts)], strict=True):
            line = " " * indent
            for place in range(start, end):
                part = self.parts[place]
                gap = "" if place == start else self.gaps[place]
                if place - 1 in padded and place > start:
                    gap = " " * max(1, INDENT - len(self.parts[place - 1].text))
                if part.kind == "LINE_COMMENT" and place > start:
                    gap = " " * max(1, self._column(start, place) - len(line))
                line += gap + (part.text.rstrip() if part.kind == "LINE_COMMENT" else part.text)
            lines.append(line)
        return lines

    def _column(self, start: int, place: int) -> int:
        """Where a comment behind a line was, if its line began where it begins now."""
        began = start == 0 or self.parts[start].newlines > 0
        whole = not any(self.parts[p].newlines for p in range(start + 1, place + 1))
        return self.parts[place].column if began and whole else 0


class _Brackets:
    """The brackets that are open where a line begins: each line that leaves some open is a step of indentation."""

    def __init__(self, parts: list[Part], neck: int | None):
        self._parts, self._neck = parts, neck
        self._opened: list[int] = []  # where the line of each open bracket begins

    def indent(self, start: int) -> int:
        """How far the line that begins at a part is indented."""
        if not start:
            return 0
        around, place = len(self._opened), start
        while around and self._parts[place].role is Role.CLOSE:
            around, place = around - 1, place + 1
        first = self._parts[start]
        if around and first.text in _BRANCHES and first.role is Role.INFIX:
            around -= 1
        level = len(set(self._opened[:around]))
        return INDENT * (level + 1 if self._neck is not None and start > self._neck else max(1, level))

    def go_on(self, start: int, end: int) -> None:
        """Take in a line."""
        for part in self._parts[start:end]:
            if part.role in (Role.OPEN, Role.CALL):
                self._opened.append(start)
            elif part.role is Role.CLOSE and self._opened:
                self._opened.pop()


def _padded(parts: list[Part], starts: list[int]) -> set[int]:
    """The '(' ';' and '->' that begin lines of one bracket: what follows them is lined up."""
    result: set[int] = set()
    begins, opened = set(starts), list[int]()
    for place, part in enumerate(parts):
        if part.role is Role.CLOSE and opened:
            opened.pop()
        elif place in begins and part.text in _BRANCHES and part.role is Role.INFIX and opened and opened[-1] in begins:
            if parts[opened[-1]].role is Role.OPEN and parts[opened[-1]].text == "(":
                result |= {place, opened[-1]}
        elif part.role in (Role.OPEN, Role.CALL):
            opened.append(place)
    return result
