"""Which scenes of a folder a training learns from, and which it is validated with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from nsfrc.data.clevr.layouts import Entry, read, splits_of
from nsfrc.errors import NsfrcError

HELD_OUT = 10  # where a folder has no split for validation, one scene in this many


def scenes(data: str | Path) -> tuple[list[Entry], list[Entry]]:
    """The scenes of a folder as CLEVR or CLEVR-Hans has it, divided; of several, parted by os.pathsep, all."""
    learnt, held_out = zip(*(_of_folder(Path(place)) for place in str(data).split(os.pathsep)), strict=True)
    return list(chain(*learnt)), list(chain(*held_out))


def _of_folder(path: Path) -> tuple[list[Entry], list[Entry]]:
    """The scenes of a folder, divided; beside a split train only val is read."""
    there = splits_of(path)
    used = [split for split in ("train", "val") if split in there] if "train" in there else there
    learnt, held_out = divide(read(path, *used))
    if not learnt:
        raise NsfrcError(f"{path} has too few scenes to train on: make some with nsfrc data clevr --out DIR")
    return learnt, held_out


def divide(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Scenes to train on and scenes to validate with: the splits train and val where there are both.

    Otherwise the training scenes, or all there are, with every tenth of them to validate with.
    """
    learnt = [entry for entry in entries if entry.split == "train"]
    held_out = [entry for entry in entries if entry.split == "val"]
    if learnt and held_out:
        return learnt, held_out
    both = learnt or list(entries)
    held = set(range(HELD_OUT - 1, len(both), HELD_OUT)) or {len(both) - 1}
    return [e for i, e in enumerate(both) if i not in held], [e for i, e in enumerate(both) if i in held]
