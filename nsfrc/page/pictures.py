"""The pictures on the page: dropped in, of a folder, or sample figures; each has a name of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from nsfrc.data.kandinsky import FREE, chosen_name, figure
from nsfrc.data.kandinsky import NAMES as PATTERNS
from nsfrc.data.png import png
from nsfrc.data.render import render
from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import Item, Listing, printable

MAX_PICTURES = 200  # on a page
MAX_BYTES = 50_000_000  # of a picture that is dropped in
NAME = 255  # characters of its name
SAMPLES = 12  # figures of a pattern at a time
NOWHERE = Path(os.devnull)  # no file is below it, so that no name of a picture leads to one
EXAMPLES = "examples/"  # what the figures of examples/figures are called by
SCENES = f"{EXAMPLES}scenes"

__all__ = ["EXAMPLES", "FREE", "PATTERNS", "SCENES", "Held", "Pictures", "example_folders"]


@dataclass(frozen=True, eq=False)
class Held(Listing):
    """Pictures as a listing, each where it is: in memory or in a file."""

    items: tuple[Item, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, items: Sequence[Item]) -> Held:
        return cls(NOWHERE, dict.fromkeys(item.name for item in items), items=tuple(items))

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)


class Pictures:
    """Pictures in the order in which they came. made: what was added of samples, so that a link can say it."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.made: list[str] = []
        self._others = 0

    @property
    def samples_only(self) -> bool:
        return not self._others

    def __len__(self) -> int:
        return len(self.items)

    def drop(self, name: str, data: bytes) -> str:
        """Add a picture that was dropped in; returns what it is called here. Raises NsfrcError where there is no room.

        Whether it is a picture is found out when it is looked at.
        """
        if len(data) > MAX_BYTES:
            raise NsfrcError(f"{printable(name)} has more than {MAX_BYTES // 1_000_000} MB: make it smaller first")
        self._others += 1
        last = PurePosixPath(name.replace("\\", "/")).name[:NAME]
        return self._add(printable(last) or "picture", image=data)

    def folder(self, listing: Listing) -> int:
        """Add the pictures of a folder, as far as there is room; returns how many are left out."""
        items = list(listing)
        room = max(0, MAX_PICTURES - len(self))
        self._others += len(items)
        for item in items[:room]:
            self._add(item.name, item)
        return len(items) - min(room, len(items))

    def samples(self, which: str) -> None:
        """Add sample figures: twelve of a pattern, generated, or those of examples/NAME. Raises NsfrcError."""
        if which.startswith(EXAMPLES):
            for path in _examples(which)[: MAX_PICTURES - len(self)]:
                name = f"{which.removeprefix(EXAMPLES)} {path.stem}"
                self._add(name, Item(path, name))
        else:
            pattern = chosen_name(which)
            first = SAMPLES * self.made.count(which)
            for number in range(first, first + min(SAMPLES, MAX_PICTURES - len(self))):
                self._add(f"{pattern} {number}", image=png(render(figure(pattern, 0, number).figure)))
        self.made.append(which)

    def clear(self) -> None:
        self.items.clear()
        self.made.clear()
        self._others = 0

    def listing(self) -> Held:
        return Held.of(tuple(self.items.values()))

    def _add(self, name: str, item: Item | None = None, image: bytes | None = None) -> str:
        if len(self) >= MAX_PICTURES:
            raise NsfrcError(f"the page holds {MAX_PICTURES} pictures at most: clear some first; nsfrc infer answers "
                             f"for whole folders")
        own, number = name, 1
        while own in self.items:
            number += 1
            own = f"{name} ({number})"
        # The path of a file is where it is read from, and in no row: a report that is saved elsewhere leads nowhere.
        given = Item(NOWHERE / own, own, image=image) if item is None else item
        self.items[own] = Item(NOWHERE / own, own, given.label, given.error,
                               given.path if given.image is None else given.image)
        return own


def example_folders() -> dict[str, Path]:
    """The folders of examples/figures and examples/scenes, where nsfrc runs from its repository."""
    root = Path(__file__).resolve().parents[2] / "examples"
    try:
        figures = {f"{EXAMPLES}{path.name}": path for path in sorted((root / "figures").iterdir()) if path.is_dir()}
    except OSError:
        return {}
    return figures | ({SCENES: root / "scenes"} if (root / "scenes").is_dir() else {})


def _examples(which: str) -> list[Path]:
    folders = example_folders()
    if which not in folders:
        raise NsfrcError(f"there are no sample figures called {which}")
    return sorted(folders[which].glob("**/*.png"), key=lambda path: path.name)
