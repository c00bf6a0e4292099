"""What a page begins with: a program of the user's or one that ships, and figures that suit it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nsfrc.compiler.parse import find_program, shipped_programs
from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import Listing
from nsfrc.page.pictures import FREE, PATTERNS, SCENES, example_folders

FIRST = "twopairs"  # the program that a page without one begins with
LEARN = "learn_a_rule"
TEMPLATES = {  # texts to start from besides the programs that ship
    LEARN: """% Label some pictures true and others false, then press "Learn a rule".

:- include('kandinsky.pl').            % types image, color, shape; neural in, color, shape
:- type(object, slots(10)).            % obj1 ... obj10, what perception sees
:- neural(closeby(object, object)).
:- learn(kp(image)).                   % what we want a rule for
""",
    "new_program": """% Some object of the figure is red.

:- include('kandinsky.pl').            % types image, color, shape; neural in, color, shape
:- type(object, slots(10)).            % obj1 ... obj10, what perception sees
:- target(kp(img)).                    % the question

kp(X) :- in(A, X), color(A, red).
""",
}


@dataclass(frozen=True, eq=False)
class Start:
    """What a page begins with. path: of the program; what it includes is looked for beside it. images: of a folder."""

    text: str
    path: Path
    images: Listing | None = None
    samples: tuple[str, ...] = ()


def start(program: str | None, images: Listing | None = None) -> Start:
    """The start for a program, a file or a shipped name; the first shipped one where none is named."""
    if program is None:
        text, path = shipped_text(FIRST)
        return Start(text, Path.cwd() / path.name, images, () if images is not None else (FIRST,))
    path = find_program(program)
    if path.suffix == ".nsfrc":
        raise NsfrcError(f"{path} is compiled, and the page shows the text of a program: name its .pl file")
    shipped = path.stem in shipped_programs() and path == find_program(path.stem)
    home = Path.cwd() / path.name if shipped else path.resolve()
    return Start(_text(path), home, images)


def shipped_text(name: str) -> tuple[str, Path]:
    """A shipped program: its text and its file."""
    if name not in shipped_programs():
        raise NsfrcError(f"{name} is not a shipped program")
    path = find_program(name)
    return _text(path), path


def suiting(name: str) -> str:
    """The sample figures that a shipped program is about, if there are such."""
    if name.startswith("clevr") and SCENES in example_folders():
        return SCENES
    return name if name in PATTERNS else FREE


def plain(text: str) -> str:
    """A text with the ends of lines that the editor has, so that places in both are the same."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _text(path: Path) -> str:
    try:
        return plain(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise NsfrcError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise NsfrcError(f"{path} is not UTF-8 text: save it as UTF-8") from None
