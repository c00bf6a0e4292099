"""Which program is meant when none is named: the only one in the current folder, else in the folder of images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nsfrc.compiler.parse import read
from nsfrc.compiler.syntax import BROKEN, DIRECTIVE, QUERY, Sentence, calls
from nsfrc.errors import Diagnostics, NsfrcError

ASKING = ("target", "query", "classes")


@dataclass(frozen=True)
class Found:
    """A program's file and why it was taken, in words."""

    path: Path
    reason: str


def find_candidate(folders: Sequence[Path]) -> Found:
    """The only program in the first of the folders that has any; raises NsfrcError with a list when there are more."""
    for folder in dict.fromkeys(path for path in folders if path.is_dir()):
        found = candidates(folder)
        if len(found) == 1:
            return found[0]
        if found:
            lines = [f"  --program {choice.path}" for choice in found]
            place = "the current folder" if folder == Path() else str(folder)
            raise NsfrcError("\n".join([f"there are {len(found)} programs in {place}; choose one:", *lines]))
    places = " or ".join("the current folder" if f == Path() else str(f) for f in dict.fromkeys(folders) if f.is_dir())
    raise NsfrcError(
        f"there is no program (.nsfrc or .pl with a target) in {places}: "
        f"name one, as in --program twopairs (`nsfrc programs` lists those that come with nsfrc)"
    )


def candidates(folder: Path) -> list[Found]:
    """Compiled programs, or texts with a target where nothing is compiled; a text and what was made of it are one."""
    compiled = _files(folder, ".nsfrc")
    texts = {path.stem: path for path in _files(folder, ".pl")}
    if compiled:
        return [_newer(path, texts.get(path.stem)) for path in compiled]
    return [Found(path, "the only program here") for path in texts.values() if _asks(path)]


def _newer(compiled: Path, text: Path | None) -> Found:
    if text is not None and text.stat().st_mtime_ns > compiled.stat().st_mtime_ns:
        return Found(text, f"changed after {compiled.name} was compiled")
    return Found(compiled, "the only compiled program here")


def _files(folder: Path, suffix: str) -> list[Path]:
    try:
        found = sorted(folder.iterdir())
    except OSError:  # nothing to be found there
        return []
    return [path for path in found if path.suffix == suffix and not path.name.startswith(".") and path.is_file()]


def _asks(path: Path) -> bool:
    """Whether a text has a target; vocabularies that others include have none."""
    try:
        sentences: Iterable[Sentence] = read(path, Diagnostics())
    except NsfrcError:
        return False
    return any(_is_question(sentence) for sentence in sentences)


def _is_question(sentence: Sentence) -> bool:
    if sentence.kind == BROKEN:
        return not sentence.words.isdisjoint(ASKING)
    asking = sentence.kind == DIRECTIVE and any(calls(sentence.term, name, 1) for name in ASKING)
    return asking or sentence.kind == QUERY
