"""Images as evidence: what perception sees in them, and the labels that their folders or a table give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import Item, Listing
from nsfrc.inference.given import gather
from nsfrc.inference.images import quietly, to_tensor
from nsfrc.inference.labels import Labels, from_folders, read_labels
from nsfrc.inference.predictor import decode
from nsfrc.learning.evidence import FromObjects
from nsfrc.learning.memory import Memory
from nsfrc.learning.source import SourceText
from nsfrc.perception import create
from nsfrc.pipelines import PERCEPTION, blame, object_count
from nsfrc.program import Program
from nsfrc.questions import Question, questions

BATCH = 32
Remember = Callable[[str], Memory]


@dataclass(frozen=True)
class Looking:
    """What looks at images; None leaves it to the program, or to what ships."""

    perception: str | None = None
    weights: Path | None = None
    concepts: Path | None = None
    trust: bool = False


def asked(program: Program) -> tuple[Question, ...]:
    """What labels answer: whether the target holds, or which class it is."""
    learning = program.source.learning
    assert learning is not None
    targets = [str(target) for target in learning.targets]
    return questions(targets, targets if learning.classes else [])


def look(
    program: Program, source: SourceText, images: Any, from_names: bool, looking: Looking = Looking(),  # noqa: B008
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> tuple[FromObjects, list[str | None] | None]:
    """What perception sees in images, and their labels if folders have any."""
    listing = gather(images)
    items = list(listing)
    if not items:
        raise NsfrcError("there are no images to learn from")
    evidence, kept = perceive(program, source, items, looking, tell)
    if not from_names:
        return evidence, None
    return evidence, answers(program, from_folders(listing.classes, asked(program)), kept, listing)


def perceive(
    program: Program, source: SourceText, items: Sequence[Item], looking: Looking,
    tell: Callable[[int, int], None] = lambda done, of: None, remember: Remember | None = None,
) -> tuple[FromObjects, list[Item]]:
    """Object vectors of all images; an image that cannot be read is an error that names it.

    remember: makes the memory of a run that may be interrupted, from the identity of the perception.
    """
    count = object_count(program)
    name = looking.perception or program.settings.perception or PERCEPTION
    asker = None if looking.perception is not None else str(source.path)
    folder = source.path.resolve().parent if source.path.is_file() else None
    model = create(name, count, looking.weights, "cpu", folder, looking.trust, asker)
    piece = model.piece or BATCH
    memory = None if remember is None else remember(model.identity)
    parts = [] if memory is None else list(memory.objects)
    done = 0 if memory is None else memory.seen
    with quietly(), torch.no_grad():
        for first in range(done, len(items), piece):
            some = items[first : first + piece]
            pixels = []
            for item in some:
                decoded = decode(item, model.size, model.fit, False)
                if decoded.picture is None:
                    raise NsfrcError(f"{item.name}: {decoded.error}; take it out, or replace it")
                pixels.append(decoded.picture.pixels)
            batch = to_tensor(pixels)
            filled = torch.cat([batch, batch.new_zeros(piece - len(batch), *batch.shape[1:])])
            with blame(f"perception {model.identity}", len(filled)):
                parts.append(model(filled)[: len(some)].cpu())
            if memory is not None:
                memory.add(parts[-1], first + piece >= len(items))
            tell(min(first + piece, len(items)), len(items))
    objects = torch.cat(parts).float()
    names = [item.name for item in items]
    return FromObjects(objects, tuple(model.dimensions), names, looking.concepts, name), list(items)


def answers(
    program: Program, labels: Labels, items: Iterable[Item], listing: Listing | None = None
) -> list[str | None]:
    """The label of each item: true, false or the class as text, None where it is not known."""
    question = asked(program)[0].name
    found = [labels.of(item, question) for item in items]
    if all(label is None for label in found) and listing is not None:
        named = asked(program)[0]
        folders = f"a folder for each class, {', '.join(named.atoms)}" if named.of_classes else "folders true and false"
        there = f"it has {', '.join(listing.classes)}" if listing.classes else "it has no folders"
        raise NsfrcError(f"the images in {listing.root} have no labels ({there}): put them into {folders}, or give "
                         f"--labels FILE.csv")
    return found


def table_answers(program: Program, path: Path, names: Sequence[str]) -> list[str | None]:
    """The labels of a table, for examples by their names."""
    labels = read_labels(path, asked(program))
    found = answers(program, labels, [Item(Path(name), name) for name in names])
    if all(label is None for label in found):
        given = next((file for one in labels.of_file.values() for file in one), "none")
        raise NsfrcError(f"{path} has no label for any of the examples: it speaks of {given}, and examples are called "
                         f"{', '.join(names[:3])}")
    return found


