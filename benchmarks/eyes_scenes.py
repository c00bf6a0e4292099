"""Where `yolo_clevr` stops being right: scenes by how many things are partly hidden, and things by how much is seen.

    nsfrc data clevr-crowded --out scenes --count 300 --seed 1 --split train --size 480x320 --samples 16
    python -m nsfrc.benchmarks.eyes_scenes scenes [--weights FILE] [--out benchmarks/results/eyes_scenes.csv]

Seed 0 is what the weights that ship learnt from; use another. A scene is entirely right if every thing is found once,
with its shape, size, material and colour, and nothing else is; a thing is right if it is found and named so. Detections
count from an objectness of 0.5 on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from nsfrc.benchmarks.kandinsky import SURE
from nsfrc.benchmarks.measure import RESULTS, write_csv
from nsfrc.benchmarks.parts import markdown
from nsfrc.contexts import torch_threads
from nsfrc.data.clevr.layouts import Entry, read
from nsfrc.data.clevr.making import HIDDEN
from nsfrc.data.clevr.outlines import boxes, share_seen
from nsfrc.data.clevr.scenes import Thing
from nsfrc.inference.images import read as read_image
from nsfrc.inference.images import to_tensor
from nsfrc.perception.attributes import CLEVR
from nsfrc.perception.yolo_clevr import YoloClevr
from nsfrc.training.detector_score import classes_of, partners

OBJECTS = 16
BATCH = 32
BANDS = ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.01))  # of a thing's outline, as far as it is seen
MANY = 4  # things that are partly hidden: from so many on scenes are counted together


@dataclass(frozen=True)
class SceneEyesRow:
    """Scenes, or things, of one kind. right: entirely right scenes, or things that were found and named right.

    missed, misnamed: things. extra: what was seen that is not there, of scenes alone.
    """

    about: str
    value: str
    count: int
    right: int
    missed: int
    misnamed: int
    extra: int
    perception: str


@dataclass(frozen=True)
class SeenThing:
    """A thing, how much of it is seen, and what became of it: "right", "missed" or "misnamed"."""

    thing: Thing
    seen: float
    outcome: str


@dataclass(frozen=True)
class SeenScene:
    """The things of a scene, and how many others were seen."""

    things: tuple[SeenThing, ...]
    extra: int

    @property
    def right(self) -> bool:
        return not self.extra and all(one.outcome == "right" for one in self.things)

    @property
    def hidden(self) -> int:
        return sum(one.seen < HIDDEN for one in self.things)


def compared(vectors: torch.Tensor, dimensions: Sequence[str], entry: Entry) -> SeenScene:
    """Object vectors [E, D] beside what is in a scene."""
    found = vectors[vectors[:, -1] >= SURE]
    things, camera = entry.scene.things, entry.scene.camera
    which = partners(found[:, :4], torch.from_numpy(boxes(things, camera)))
    first = dimensions.index(CLEVR.values[0])
    named = classes_of(found[:, first:-1], [len(group) for group in CLEVR.groups])
    outcomes = ["missed"] * len(things)
    for place, name in zip(which, named, strict=True):
        if place >= 0:
            thing = things[place]
            true = CLEVR.index(thing.shape, thing.size, thing.material, thing.color)
            outcomes[place] = "right" if name == true else "misnamed"
    seen = share_seen(things, camera)
    return SeenScene(tuple(map(SeenThing, things, seen.tolist(), outcomes)), int((which < 0).sum()))


@torch.no_grad()
def look(model: YoloClevr, entries: Sequence[Entry]) -> Iterator[SeenScene]:
    for start in range(0, len(entries), BATCH):
        some = entries[start : start + BATCH]
        images = to_tensor([read_image(entry.image, model.size).pixels for entry in some])
        for vectors, entry in zip(model(images), some, strict=True):
            yield compared(vectors, model.dimensions, entry)


def rows(scenes: Sequence[SeenScene], perception: str) -> list[SceneEyesRow]:
    """Scenes by how many things are partly hidden; things by how much is seen, by size, material and shape."""
    def of_scenes(value: str, some: Sequence[SeenScene]) -> SceneEyesRow:
        every = [one.outcome for scene in some for one in scene.things]
        return SceneEyesRow("scenes", value, len(some), sum(scene.right for scene in some), every.count("missed"),
                            every.count("misnamed"), sum(scene.extra for scene in some), perception)

    def of_things(about: str, value: str, some: Sequence[SeenThing]) -> SceneEyesRow:
        every = [one.outcome for one in some]
        return SceneEyesRow(about, value, len(some), every.count("right"), every.count("missed"),
                            every.count("misnamed"), 0, perception)

    made = [of_scenes("all", scenes)]
    for number in range(MANY + 1):
        some = [scene for scene in scenes if min(scene.hidden, MANY) == number]
        made.append(of_scenes(f"{number}{' or more' if number == MANY else ''} partly hidden", some))
    things = [one for scene in scenes for one in scene.things]
    for low, high in BANDS:
        made.append(of_things("seen", f"{low:g} to {min(high, 1):g}", [t for t in things if low <= t.seen < high]))
    for about in ("size", "material", "shape"):
        for value in sorted({str(getattr(one.thing, about)) for one in things}):
            made.append(of_things(about, value, [one for one in things if getattr(one.thing, about) == value]))
    return made


def table(made: Sequence[SceneEyesRow]) -> str:
    """Markdown, shares in per cent."""
    lines = [[f"{row.about} {row.value}", f"{row.count:,}", f"{100 * row.right / row.count:.1f}" if row.count else "–",
              str(row.missed), str(row.misnamed), str(row.extra) if row.about == "scenes" else "–"] for row in made]
    return markdown(["what", "number", "right", "missed", "misnamed", "extra"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", type=Path, help="a folder of scenes with pictures")
    parser.add_argument("--weights", type=Path, help="another detector than the one that ships; needs --out")
    parser.add_argument("--out", type=Path, help="instead of the results that are kept")
    options = parser.parse_args()
    if options.weights and options.out is None:
        parser.error("--weights needs --out: the results that are kept are of what ships")
    with torch_threads(1):
        model = YoloClevr.build(OBJECTS, options.weights)
        made = rows(list(look(model, read(options.scenes))), model.identity)
    out = options.out or RESULTS / "eyes_scenes.csv"
    write_csv(out, made, first=("about", "value"))
    print(f"{table(made)}\n\nwritten to {out}")


if __name__ == "__main__":
    main()
