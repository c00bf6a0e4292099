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
from pathlib import Path

from nsfrc.compiler.check import check
from nsfrc.compiler.check.declare import slot_names
from nsfrc.compiler.layout import laid_out
from nsfrc.compiler.parse import parse
from nsfrc.compiler.parse.files import MAX_BYTES
from nsfrc.compiler.syntax import (
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
    quoted_functor,
)
from nsfrc.errors import ERROR, CompileError, Diagnostics, NsfrcError, Source, Span
from nsfrc.records import dataclass

NEEDED = ("clauses.txt", "consts.txt", "preds.txt", "neural_preds.txt")
FACTS = "bk.txt"


def import_language(folder: Path, remarks: Diagnostics | None = None) -> str:
    """The text of one .pl file that says what the folder says.

    remarks: takes a warning for each declared predicate that is left out, since nothing uses it. Raises NsfrcError
    when files are missing, CompileError with every error in them.
    """
    sources, found = _read(Path(folder)), Diagnostics()
    types = list(_types(sources["consts.txt"], found))
    neural = list(_predicates(sources["neural_preds.txt"], "neural", found))
    known = [sentence.term for sentence in neural]
    derived = [s for s in _predicates(sources["preds.txt"], "pred", found) if not _repeats(s.term, known)]
    facts = _sentences(sources.get(FACTS), found, rules=False)
    clauses = _sentences(sources["clauses.txt"], found, rules=True)
    unused = _unused([*neural, *derived], [*facts, *clauses])
    targets = list(_targets(types, derived, clauses))
    name = Path(folder).resolve().name
    type_names = {_signature(sentence) for sentence in types}
    declared = [s for s in (*neural, *derived) if s not in unused or type_names.issuperset(_args(_signature(s)))]
    paper = parse(Source("", ":- semantics(paper)."), found)
    _check([*paper, *types, *declared, *targets, *facts, *clauses], name, found)
    neural, derived = _without(neural, unused, remarks), _without(derived, unused, remarks)
    head = [f"% Imported from the language folder {name}.", "", ":- use_module(library(nsfr))."]
    sections = [paper, types, neural, derived, targets, facts]
    parts = ["\n".join(head), *("\n".join(map(laid_out, section)) for section in sections if section)]
    return "\n\n".join([*parts, *map(laid_out, clauses)]) + "\n"


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
            if path.exists() and path.stat().st_size > MAX_BYTES:
                problems.append(f"{path}: error: the file is longer than {MAX_BYTES:,} bytes")
            elif name != FACTS or path.exists():
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
            found.error("bad-line", line.span, "this line does not name a type and its constants", "color:red,blue")
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
            found.error("bad-line", line.span, message, "color:2:object,color")
            yield _broken(line)
            continue
        name, arity, listed = parts
        words = listed.split(",") if listed.text else []
        if len(words) != int(arity.text):
            listing = f"{len(words)} type{'' if len(words) == 1 else 's'}"
            message = f"{name.text} has arity {arity.text}, but this line lists {listing}"
            found.error("bad-line", listed.span if listed.text else arity.span, message)
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
        found.error("bad-line", word.span, f"a {what} is missing between the commas")
    return not empty


def _broken(line: _Word) -> Sentence:
    """A line with an error; the checks do not complain about names that it may have declared."""
    return Sentence(BROKEN, None, line.span, frozenset(re.split(r"[:,\s]+", line.text)))


def _directive(name: str, args: tuple[Term, ...], span: Span) -> Sentence:
    return Sentence(DIRECTIVE, Compound(name, args, span, span), span)


def _repeats(term: Term | None, known: Sequence[Term | None]) -> bool:
    """Whether a declaration says again what a neural one says."""
    return any(_args(term) == _args(other) != () for other in known)


def _unused(declared: Iterable[Sentence], sentences: Iterable[Sentence]) -> set[Sentence]:
    """The declarations of predicates that no clause and no fact speaks of; the types that they name may be unknown."""
    used = {_key(term) for s in sentences for term in (_head(s.term), *_goals(s.term))}
    return {s for s in declared if s.term is not None and _key(_signature(s)) not in used}


def _signature(sentence: Sentence) -> Term | None:
    """What a directive declares, its first argument."""
    return sentence.term.args[0] if isinstance(sentence.term, Compound) else None


def _without(declared: Iterable[Sentence], unused: set[Sentence], remarks: Diagnostics | None) -> list[Sentence]:
    """The declarations that are used; warns of the others."""
    kept = []
    for sentence in declared:
        if sentence not in unused:
            kept.append(sentence)
        elif remarks is not None:
            name, arity = _key(_signature(sentence))
            message = f"no clause and no fact uses {quoted_functor(name)}/{arity}: it is left out"
            remarks.warn("unused-predicate", sentence.span, message)
    return kept


def _sentences(source: Source | None, found: Diagnostics, rules: bool) -> list[Sentence]:
    """The sentences of clauses.txt (rules and facts) or of bk.txt (facts only)."""
    sentences = parse(source, found) if source else ()
    for sentence in sentences:
        if sentence.term is None:
            continue
        if sentence.kind != CLAUSE:
            found.error("bad-line", sentence.span, "directives and queries are not allowed in a language folder")
        elif not rules and calls(sentence.term, ":-", 2):
            found.error("not-a-fact", sentence.span, f"{FACTS} may only have facts", "move this clause to clauses.txt")
    return list(sentences)


def _targets(
    types: Sequence[Sentence], derived: Sequence[Sentence], clauses: Sequence[Sentence]
) -> Iterator[Sentence]:
    """What the folder is for: kp... of the image, else the heads that no other clause uses; several are classes."""
    heads = [_key(_head(s.term)) for s in clauses if s.term and s.kind == CLAUSE and calls(s.term, ":-", 2)]
    used = {_key(goal) for s in clauses for goal in _goals(s.term) if _key(goal) != _key(_head(s.term))}
    signatures = [s.term.args[0] for s in derived if isinstance(s.term, Compound)]
    known = [term for term in signatures if _key(term) in heads]
    chosen = [term for term in known if _key(term)[0].startswith("kp") and "image" in map(str, _args(term))]
    chosen = chosen or [term for term in known if _key(term) not in used] or known
    only = dict(_single_constants(types))
    atoms: list[Term] = []
    for term in chosen:
        args = tuple(only.get(str(arg), Variable("_", arg.span)) for arg in _args(term))
        atoms.append(Compound(_key(term)[0], args, term.span, term.span) if args else term)
    if len(atoms) > 1 or any(isinstance(arg, Variable) for atom in atoms for arg in _args(atom)):
        yield _directive("classes", (ListTerm(tuple(atoms), None, atoms[0].span),), atoms[0].span)
    else:
        yield from (_directive("target", (atom,), atom.span) for atom in atoms)


def _single_constants(types: Iterable[Sentence]) -> Iterator[tuple[str, Term]]:
    """Datatypes with one constant, such as the image, and that constant."""
    for sentence in types:
        if isinstance(sentence.term, Compound):
            name, values = sentence.term.args
            if isinstance(values, ListTerm) and len(values.items) == 1:
                yield str(name), values.items[0]
            elif calls(values, "slots", 1) and str(values.args[0]) == "1":
                yield str(name), Name(slot_names(str(name), 1)[0], values.span)


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
