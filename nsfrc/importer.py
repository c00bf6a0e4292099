"""A published plain-text language folder to one Prolog text.

    consts.txt         color:red,blue                    :- type(color, [red, blue]).
    neural_preds.txt   color:2:object,color              :- neural(color(object, color)).
    preds.txt          kp:1:image                        :- pred(kp(image)).
    bk.txt             diff_color(red,blue).             diff_color(red, blue).
    clauses.txt        kp(X):-in(O,X),color(O,red).      kp(X) :- in(O, X), color(O, red).

Lines become surface terms that remember where they stood, so that the checks of the compiler point into
the folder's own files. vars.txt and other files are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nsfrc.check import check
from nsfrc.check.declare import slot_names
from nsfrc.errors import ERROR, CompileError, Diagnostics, NsfrcError, Source, Span
from nsfrc.parse import parse
from nsfrc.syntax import (
    BROKEN,
    CLAUSE,
    DIRECTIVE,
    Compound,
    ListTerm,
    Name,
    Number,
    Sentence,
    Term,
    Variable,
    calls,
    is_infix,
    quoted_functor,
    spine,
)

NEEDED = ("clauses.txt", "consts.txt", "preds.txt", "neural_preds.txt")
FACTS = "bk.txt"
WIDTH = 100


def import_language(folder: Path) -> str:
    """The text of one .pl file that says what the folder says.

    Raises NsfrcError when files are missing, CompileError with every error in them.
    """
    sources, found = _read(Path(folder)), Diagnostics()
    types = list(_types(sources["consts.txt"], found))
    neural = list(_predicates(sources["neural_preds.txt"], "neural", found))
    known = [sentence.term for sentence in neural]
    derived = [s for s in _predicates(sources["preds.txt"], "pred", found) if not _repeats(s.term, known)]
    facts = _sentences(sources.get(FACTS), found, rules=False)
    clauses = _sentences(sources["clauses.txt"], found, rules=True)
    targets = list(_targets(types, derived, clauses))
    name = Path(folder).resolve().name
    _check([*types, *neural, *derived, *targets, *facts, *clauses], name, found)
    head = [f"% Imported from the language folder {name}.", "", ":- use_module(library(nsfr))."]
    sections = [types, neural, derived, targets, facts]
    parts = ["\n".join(head), *("\n".join(map(_written, section)) for section in sections if section)]
    return "\n\n".join([*parts, *map(_written, clauses)]) + "\n"


def _check(sentences: Sequence[Sentence], name: str, found: Diagnostics) -> None:
    """Raise every error, without the warnings: those are told when the result is compiled."""
    try:
        check(sentences, name, found)
    except CompileError as refused:
        raise CompileError(d for d in refused.diagnostics if d.severity == ERROR) from None


def _read(folder: Path) -> dict[str, Source]:
    """The texts of the folder by file name."""
    if not folder.is_dir():
        raise NsfrcError(f"there is no folder {folder}\n  hint: {_layout()}")
    missing = [name for name in NEEDED if not (folder / name).is_file()]
    if missing:
        raise NsfrcError(f"{folder} has no {' and no '.join(missing)}\n  hint: {_layout()}")
    sources, problems = {}, []
    for name in (*NEEDED, FACTS):
        path = folder / name
        try:
            if name != FACTS or path.exists():
                sources[name] = Source(str(path), path.read_text("utf-8-sig"))
        except UnicodeDecodeError:
            problems.append(f"{path}: error: the file is not UTF-8 text")
        except OSError as problem:
            problems.append(f"cannot read {path}: {problem.strerror}")
    if problems:
        raise NsfrcError("\n".join(problems))
    return sources


def _layout() -> str:
    return f"a language folder holds {', '.join(NEEDED)} and, where there are facts, {FACTS}"


@dataclass(frozen=True)
class _Word:
    """A stretch of a line without the blanks around it."""

    text: str
    span: Span

    def split(self, separator: str) -> list[_Word]:
        """The parts between separators."""
        words, start = [], 0
        for part in self.text.split(separator):
            words.append(_word(part, self.span.source, self.span.line, self.span.column + start))
            start += len(part) + len(separator)
        return words

    def name(self) -> Name:
        return Name(self.text, self.span)

    def constant(self) -> Name | Number:
        """A number where the text is exactly how Prolog writes one, else a name."""
        if re.fullmatch(r"-?(0|[1-9][0-9]*)", self.text):
            return Number(int(self.text), self.span)
        if re.fullmatch(r"-?[0-9]+\.[0-9]+", self.text) and repr(float(self.text)) == self.text:
            return Number(float(self.text), self.span)
        return self.name()


def _word(text: str, source: Source, line: int, column: int) -> _Word:
    start = column + len(text) - len(text.lstrip())
    stripped = text.strip()
    return _Word(stripped, Span(source, line, start, line, start + max(1, len(stripped))))


def _lines(source: Source) -> Iterator[_Word]:
    for number, text in enumerate(source.text.split("\n"), 1):
        if text.strip():
            yield _word(text, source, number, 1)


def _types(source: Source, found: Diagnostics) -> Iterator[Sentence]:
    """`color:red,blue` to `:- type(color, [red, blue]).`"""
    for line in _lines(source):
        parts = line.split(":")
        if len(parts) != 2 or not parts[0].text:
            found.error(line.span, "this line does not name a type and its constants", "color:red,blue")
            yield _broken(line)
            continue
        name, listed = parts
        words = listed.split(",") if listed.text else []
        if not _all_named(words, "constant", found):
            yield _broken(line)
        else:
            yield _directive("type", (name.name(), _constants(name.text, words, listed.span)), line.span)


def _constants(name: str, words: Sequence[_Word], span: Span) -> Term:
    """obj1, obj2, … of type object are slots(N), whose number can then be changed; others are a list."""
    if name == "object" and words and tuple(word.text for word in words) == slot_names(name, len(words)):
        return Compound("slots", (Number(len(words), span),), span, span)
    return ListTerm(tuple(word.constant() for word in words), None, span) if words else Name("[]", span)


def _predicates(source: Source, directive: str, found: Diagnostics) -> Iterator[Sentence]:
    """`color:2:object,color` to `:- neural(color(object, color)).`"""
    for line in _lines(source):
        parts = line.split(":")
        if len(parts) != 3 or not parts[0].text or not parts[1].text.isdecimal():
            message = "this line does not name a predicate, its arity and its types"
            found.error(line.span, message, "color:2:object,color")
            yield _broken(line)
            continue
        name, arity, listed = parts
        words = listed.split(",") if listed.text else []
        if len(words) != int(arity.text):
            listing = f"{len(words)} type{'' if len(words) == 1 else 's'}"
            message = f"{name.text} has arity {arity.text}, but this line lists {listing}"
            found.error(listed.span if listed.text else arity.span, message)
            yield _broken(line)
        elif not _all_named(words, "type", found):
            yield _broken(line)
        else:
            args = tuple(word.name() for word in words)
            signature = Compound(name.text, args, line.span, name.span) if args else name.name()
            yield _directive(directive, (signature,), line.span)


def _all_named(words: Iterable[_Word], what: str, found: Diagnostics) -> bool:
    empty = [word for word in words if not word.text]
    for word in empty:
        found.error(word.span, f"a {what} is missing between the commas")
    return not empty


def _broken(line: _Word) -> Sentence:
    """A line with an error; the checks do not complain about names that it may have declared."""
    return Sentence(BROKEN, None, line.span, frozenset(re.split(r"[:,\s]+", line.text)))


def _directive(name: str, args: tuple[Term, ...], span: Span) -> Sentence:
    return Sentence(DIRECTIVE, Compound(name, args, span, span), span)


def _repeats(term: Term | None, known: Sequence[Term | None]) -> bool:
    """Whether a declaration says again what a neural one says."""
    return any(_args(term) == _args(other) != () for other in known)


def _sentences(source: Source | None, found: Diagnostics, rules: bool) -> list[Sentence]:
    """The sentences of clauses.txt (rules and facts) or of bk.txt (facts only)."""
    sentences = parse(source, found) if source else ()
    for sentence in sentences:
        if sentence.term is None:
            continue
        if sentence.kind != CLAUSE:
            found.error(sentence.span, "a directive or query has no place in a language folder")
        elif not rules and calls(sentence.term, ":-", 2):
            found.error(sentence.span, f"{FACTS} holds facts only", "move this clause to clauses.txt")
    return list(sentences)


def _targets(
    types: Sequence[Sentence], derived: Sequence[Sentence], clauses: Sequence[Sentence]
) -> Iterator[Sentence]:
    """What the folder is for: kp... of the image, else the heads that no other clause uses."""
    heads = [_key(_head(s.term)) for s in clauses if s.term and s.kind == CLAUSE and calls(s.term, ":-", 2)]
    used = {_key(goal) for s in clauses for goal in _goals(s.term) if _key(goal) != _key(_head(s.term))}
    signatures = [s.term.args[0] for s in derived if isinstance(s.term, Compound)]
    known = [term for term in signatures if _key(term) in heads]
    chosen = [term for term in known if _key(term)[0].startswith("kp") and "image" in map(str, _args(term))]
    chosen = chosen or [term for term in known if _key(term) not in used] or known
    only = dict(_single_constants(types))
    for term in chosen:
        args = tuple(only.get(str(arg), Variable("_", arg.span)) for arg in _args(term))
        atom = Compound(_key(term)[0], args, term.span, term.span) if args else term
        yield _directive("target", (atom,), term.span)


def _single_constants(types: Iterable[Sentence]) -> Iterator[tuple[str, Term]]:
    """Datatypes with one constant, such as the image, and that constant."""
    for sentence in types:
        if isinstance(sentence.term, Compound):
            name, values = sentence.term.args
            if isinstance(values, ListTerm) and len(values.items) == 1:
                yield str(name), values.items[0]


def _head(term: Term | None) -> Term | None:
    return term.args[0] if calls(term, ":-", 2) else term


def _goals(term: Term | None) -> Iterator[Term]:
    """The goals of a clause body, on either side of `,` and `;`."""
    waiting = [term.args[1]] if calls(term, ":-", 2) else []
    while waiting:
        goal = waiting.pop()
        if calls(goal, ",", 2) or calls(goal, ";", 2):
            waiting += goal.args
        else:
            yield goal


def _args(term: Term | None) -> tuple[Term, ...]:
    return term.args if isinstance(term, Compound) else ()


def _key(term: Term | None) -> tuple[str, int]:
    return (term.name, len(_args(term))) if isinstance(term, Compound | Name) else ("", 0)


def _written(sentence: Sentence) -> str:
    """A sentence as people lay it out: goals fill lines of WIDTH columns."""
    term = sentence.term
    assert term is not None
    if not calls(term, ":-", 2):
        return f"{':- ' if sentence.kind == DIRECTIVE else ''}{_goal(term)}."
    head, goals = _goal(term.args[0]), [_goal(goal) for goal in spine(term.args[1], ",")]
    line = f"{head} :- {', '.join(goals)}."
    if len(line) <= WIDTH:
        return line
    lines = [f"    {goals[0]}"]
    for goal in goals[1:]:
        if len(lines[-1]) + len(goal) + 3 <= WIDTH:
            lines[-1] += f", {goal}"
        else:
            lines[-1] += ","
            lines.append(f"    {goal}")
    return "\n".join([f"{head} :-", *lines]) + "."


def _goal(term: Term) -> str:
    """A term with a blank behind each comma."""
    if isinstance(term, ListTerm) and term.tail is None:
        return f"[{', '.join(map(_goal, term.items))}]"
    if isinstance(term, Compound) and term.name in (";", ",", ":-") and is_infix(term):
        return f"({term})"
    if isinstance(term, Compound) and not is_infix(term) and term.name != "{}":
        return f"{quoted_functor(term.name)}({', '.join(map(_goal, term.args))})"
    return str(term)
