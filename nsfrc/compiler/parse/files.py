"""Files: reading, `:- include(...)`, and the programs that ship with nsfrc."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from nsfrc.compiler.parse.sentences import parse
from nsfrc.compiler.syntax import ANY, BROKEN, DIRECTIVE, Name, Sentence, Term, calls
from nsfrc.errors import Diagnostics, NsfrcError, Source, Span, did_you_mean

MAX_BYTES = 20_000_000  # of a program, with all that it includes
MAX_INCLUDES = 50

_FOLDERS = ("kandinsky", "clevr", "examples", "library")


def read(
    path: str | Path, found: Diagnostics, data: bytes | None = None, within: Sequence[Path] | None = None
) -> tuple[Sentence, ...]:
    """The sentences of a file, with those of the files it includes in place of each `include`.

    A file that is included twice is read once. data: what the file holds, for text that is not saved yet; `path`
    is then what to call it. within: folders in which files are included, where not all may be; those that ship always
    are. Raises NsfrcError when `path` itself cannot be read.
    """
    path = Path(path)
    try:
        data = _read(path, MAX_BYTES) if data is None else data
    except (OSError, ValueError) as problem:
        raise NsfrcError(f"cannot read {path}: {_reason(problem)}") from None
    return _Reader(found, within).sentences(path, data)


class _Reader:
    """Reads a file and its includes; knows which files are open and which are done."""

    def __init__(self, found: Diagnostics, within: Sequence[Path] | None):
        self._found = found
        self._within = None if within is None else [folder.resolve() for folder in (*within, _root())]
        self._open: list[Path] = []
        self._done: set[Path] = set()
        self._left = MAX_BYTES

    def sentences(self, path: Path, data: bytes, included: Span | None = None) -> tuple[Sentence, ...]:
        """included: the directive that asks for the file."""
        source = self._decode(path, data, included)
        if source is None:
            return (Sentence(BROKEN, None, _start(path), frozenset([ANY])),)
        self._open.append(path.resolve())
        result: list[Sentence] = []
        for sentence in parse(source, self._found):
            name = _included(sentence)
            if name is None:
                result.append(sentence)
            else:
                result += self._include(name, path, sentence.span)
        self._done.add(self._open.pop())
        return tuple(result)

    def _decode(self, path: Path, data: bytes, included: Span | None) -> Source | None:
        """The text of a file, None after an error."""
        self._left -= len(data)
        if self._left < 0:
            what = "with the files that it includes, the program" if included else "the file"
            self._found.error("too-much-text", included.in_own_file() if included else _start(path),
                              f"{what} is longer than {MAX_BYTES:,} bytes", "split the program, or list fewer facts")
            return None
        try:
            return Source(str(path), data.decode("utf-8-sig"), included)
        except UnicodeDecodeError as problem:
            before = problem.object[:problem.start].decode()
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            byte = len(data) - len(problem.object) + problem.start  # a byte order mark is not in `object`
            hint = f"byte {byte + 1} is 0x{data[byte]:02x}; save the file as UTF-8"
            place = Span(Source(str(path), ""), line, column, line, column + 1)
            self._found.error("not-utf8", place, "the file is not UTF-8 text", hint)
            return None

    def _include(self, argument: Term, includer: Path, span: Span) -> tuple[Sentence, ...]:
        if not isinstance(argument, Name):
            hint = ":- include('file.pl')."
            self._found.error("include-argument", argument.span, "include needs one file name", hint)
            return ()
        broken = (Sentence(BROKEN, None, span, frozenset([ANY])),)
        if not self._may_look(includer.parent / argument.name):  # not even whether it is there is looked at
            path = _shipped(argument.name)
        else:
            path = locate(argument.name, includer.parent)
        if not self._may_look(includer.parent / argument.name if path is None else path):
            self._found.error("include-outside", argument.span, f"{argument} is not included from here",
                              "files of the program's own folder are, and those that ship")
            return broken
        if path is None:
            self._not_found(argument, includer.parent)
            return broken
        if path.resolve() in self._open:
            self._found.error("include-cycle", argument.span, f"{argument} includes itself")
            return ()
        if path.resolve() in self._done:
            return ()
        if len(self._open) > MAX_INCLUDES:
            message = f"files include each other more than {MAX_INCLUDES} deep"
            self._found.error("include-too-deep", argument.span, message, "include them from one file")
            return broken
        try:
            data = _read(path, self._left)
        except OSError as problem:
            self._found.error("include-unreadable", argument.span, f"cannot read {path}: {_reason(problem)}")
            return broken
        return self.sentences(path, data, span)

    def _may_look(self, path: Path) -> bool:
        """Whether a file may be included, wherever links lead."""
        return self._within is None or any(_is_below(path, folder) for folder in self._within)

    def _not_found(self, argument: Name, folder: Path) -> None:
        why = _why_unreadable(folder / argument.name)
        if why:
            self._found.error("include-unreadable", argument.span, f"cannot read {folder / argument.name}: {why}")
        else:
            hint = did_you_mean(argument.name, neighbours(folder))
            self._found.error("include-not-found", argument.span, f"cannot find the file {argument} to include", hint)


def _read(path: Path, limit: int) -> bytes:
    """What a file holds; of one that is longer than `limit`, a byte more than that."""
    with path.open("rb") as file:
        return file.read(max(0, limit) + 1)


def _start(path: Path) -> Span:
    return Span(Source(str(path), ""), 1, 1, 1, 1)


def _included(sentence: Sentence) -> Term | None:
    """The argument of an `include` directive."""
    term = sentence.term
    return term.args[0] if sentence.kind == DIRECTIVE and calls(term, "include", 1) else None


def locate(name: str, folder: Path) -> Path | None:
    """A file beside the including one, else a shipped one; '.pl' may be left out."""
    for candidate in (folder / name, folder / f"{name}.pl"):
        if _is_file(candidate):
            return candidate
    return _shipped(name)


def neighbours(folder: Path) -> list[str]:
    """The files that a program in a folder can include by name: those beside it, and those that ship."""
    return [*sorted(p.name for p in folder.glob("*.pl")), *(Path(p).name for p in _shipped_files())]


def find_program(name: str) -> Path:
    """The path of a program: an existing file, else a shipped program of that name.

    'twopairs', 'twopairs.pl' and 'kandinsky/twopairs.pl' name the same shipped program.
    """
    if _is_file(Path(name)):
        return Path(name)
    why = _why_unreadable(Path(name)) if name else None
    shipped = _shipped(name)
    if shipped is not None and why != _NOWHERE:
        return shipped
    if why == _FOLDER:
        raise NsfrcError(f"{name} is a folder: name a program in it")
    if why:
        raise NsfrcError(f"cannot read {name}: {why}")
    names = shipped_programs()
    hint = did_you_mean(name, _near(name)) or did_you_mean(name.removesuffix(".pl"), names)
    lines = [f"there is no file {name!r} and no shipped program of that name"]
    lines += [f"  hint: {hint}"] if hint else []
    raise NsfrcError("\n".join([*lines, f"  shipped programs: {', '.join(names)}"]))


def _near(name: str) -> list[str]:
    """The programs in the folder that a name speaks of, as one would have to write them."""
    folder = Path(name).parent
    try:
        return sorted(str(path) for kind in ("*.pl", "*.nsfrc") for path in folder.glob(kind))
    except (OSError, ValueError):
        return []


def shipped_programs() -> list[str]:
    """The names of the shipped programs; the files that they include are left out."""
    return sorted(path.stem for path in map(Path, _shipped_files()) if path.parent.name not in (path.stem, "library"))


def _shipped(name: str) -> Path | None:
    wanted = name if name.endswith(".pl") else f"{name}.pl"
    for path in _shipped_files():
        if wanted in (path, Path(path).name):
            return _root() / path
    return None


def _root() -> Path:
    from nsfrc import programs

    return Path(programs.__path__[0])


@cache
def _shipped_files() -> tuple[str, ...]:
    """Paths such as 'kandinsky/twopairs.pl', in a fixed order."""
    folders = [(folder, sorted((_root() / folder).glob("*.pl"))) for folder in _FOLDERS]
    return tuple(f"{folder}/{path.name}" for folder, paths in folders for path in paths)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have, such as one with a NUL
        return False


def _is_below(path: Path, folder: Path) -> bool:
    try:
        return path.resolve().is_relative_to(folder)
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, or links in a circle
        return False


_NOWHERE, _FOLDER = "it is a broken link", "it is a folder"


def _why_unreadable(path: Path) -> str | None:
    """Why a path that is there is no file, None where nothing is there."""
    try:
        if path.is_dir():
            return _FOLDER
        if path.exists():
            return "it is not a regular file"
        return _NOWHERE if path.is_symlink() else None
    except (OSError, ValueError):  # a name that no file can have
        return None


def _reason(problem: Exception) -> str:
    return getattr(problem, "strerror", None) or str(problem)
