"""`nsfrc data clevr` and its like: scenes with labels and true objects, and their pictures."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from nsfrc.data.clevr.scene_folder import Order


class Size(click.ParamType):
    """WIDTHxHEIGHT of a picture → (width, height)."""

    name = "WIDTHxHEIGHT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        found = re.fullmatch("([0-9]{2,4})x([0-9]{2,4})", value)
        if found is None:
            self.fail(f"{value!r} is not a size such as 480x320", param, ctx)
        width, height = int(found[1]), int(found[2])
        if 2 * width != 3 * height or not width:
            self.fail(f"{value} is not 3 wide to 2 high, as CLEVR's pictures are; try 240x160", param, ctx)
        return width, height


TIMES = """\b
Pictures need Blender: pip install 'nsfrc[clevr]'. On one core a picture takes about
1 s at 240x160 with 8 samples, and 5 to 15 s at 480x320 with 32. Ctrl-C loses
nothing: the same command continues.
"""


def _command(name: str, splits: list[str], example: str) -> Callable[[Callable[..., None]], click.Command]:
    """Make `nsfrc data NAME` of a function that has the help as its docstring."""
    options = (
        click.option("--out", "-o", required=True, type=click.Path(path_type=Path), help="Folder for the scenes."),
        click.option("--count", "-n", default=60, show_default=True, type=click.IntRange(1, 1_000_000),
                     help="How many scenes: in all, or of the one split."),
        click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**63),
                     help="Same seed, same scenes."),
        click.option("--split", type=click.Choice(splits), help="Only this split."),
        click.option("--size", default="480x320", show_default=True, type=Size(), help="Size of pictures in pixels."),
        click.option("--samples", default=32, show_default=True, type=click.IntRange(1, 4096),
                     help="Light paths per pixel; fewer are faster and noisier."),
        click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 256),
                     help="Processes that render, each on one core."),
        click.option("--no-render", is_flag=True,
                     help="Scenes files only; the same command without it adds pictures."),
        click.option("--json", "as_json", is_flag=True, help="Say what was made as JSON."),
    )
    lines = [f"nsfrc data {name} --out scenes --count 60 --no-render", f"nsfrc data {name} {example}"]

    def made(function: Callable[..., None]) -> click.Command:
        for option in reversed(options):
            function = option(function)
        return click.command(name, epilog="\n  ".join([f"{TIMES}\n\b\nExamples:", *lines]))(function)

    return made


@_command("clevr", ["train", "val"], "--out clevr --count 4000 --size 240x160 --samples 4 --workers 2")
def clevr(**options: Any) -> None:
    """Make CLEVR scenes without classes, to train perception.

    Three to ten things stand anywhere. One scene in ten is for validation. The folder is laid out as CLEVR v1.0.
    """
    _make("clevr", **options)


@_command("clevr-crowded", ["train", "val"], "--out crowded --count 2500 --size 288x192 --samples 4 --workers 2")
def crowded(**options: Any) -> None:
    """Make CLEVR scenes without classes, half of them crowded, to train perception.

    Every second scene is as those of nsfrc data clevr. The others have seven to ten things, mostly of metal, which show
    their neighbours, and many of them partly hidden. One scene in ten is for validation. The folder is laid out as
    CLEVR v1.0.
    """
    _make("clevr-crowded", **options)


@_command("clevr-alike", ["train", "val"], "--out alike --count 500 --size 480x320 --samples 6 --workers 2")
def alike(**options: Any) -> None:
    """Make CLEVR scenes without classes, crowded and in few colours, to train perception.

    All are as the crowded ones of nsfrc data clevr-crowded, in one to three colours, so that what hides a thing, and
    what shows in it, often has the same colour. One scene in ten is for validation. The folder is laid out as CLEVR
    v1.0.
    """
    _make("clevr-alike", **options)


@_command("clevr-hans3", ["train", "val", "test"], "--out test --count 30 --split test --size 240x160 --samples 8")
def hans3(**options: Any) -> None:
    """Make CLEVR scenes of the three classes of CLEVR-Hans3.

    \b
    class_id
    0  a large cube and a large cylinder (train, val: the cube is gray)
    1  a small metal cube and a small sphere (train, val: the sphere is metal)
    2  a large blue sphere and a small yellow sphere

    Exactly one class's rule holds for each scene, and the program clevr_hans3 agrees with every label. Of six scenes
    of a class four are for training, one for validation and one for testing, where nothing is confounded. The
    folder is laid out as CLEVR-Hans.
    """
    _make("clevr-hans3", **options)


@_command("clevr-hans7", ["train", "val", "test"], "--out test --count 70 --split test --size 240x160 --samples 8")
def hans7(**options: Any) -> None:
    """Make CLEVR scenes of the seven classes of CLEVR-Hans7.

    \b
    class_id
    0  a large cube and a large cylinder (train, val: the cube is gray)
    1  a small metal cube and a small sphere (train, val: the sphere is metal)
    2  a cyan thing in front of two red ones
    3  four small things, among them a green, a brown and a purple one
    4  three spheres on the left (train, val: and three metal cylinders on the right)
    5  three metal cylinders on the right
    6  a large blue sphere and a small yellow sphere

    Except for class 4, exactly one class's rule holds for each scene, and the program clevr_hans7 agrees with every
    label. Of six scenes of a class four are for training, one for validation and one for testing, where nothing
    is confounded. The folder is laid out as CLEVR-Hans.
    """
    _make("clevr-hans7", **options)


def _make(
    name: str, *, out: Path, count: int, seed: int, split: str | None, size: tuple[int, int], samples: int,
    workers: int, no_render: bool, as_json: bool,
) -> None:
    from nsfrc.data.clevr import scene_folder as folder
    from nsfrc.data.clevr.blender import Quality

    order = folder.Order(name, count, seed, split, None if no_render else Quality(*size, samples))
    done = 0
    scenes = folder.write(order, out, workers)
    try:
        with click.progressbar(scenes, length=count, label=f"making {name}", show_pos=True, file=sys.stderr,
                               hidden=not sys.stderr.isatty()) as numbers:
            for _ in numbers:
                done += 1
    except KeyboardInterrupt:
        scenes.close()  # writes the scenes files of what is done
        click.echo(f"stopped after {done} of {count} scenes, which are in {out}; the same command continues", err=True)
        raise SystemExit(130) from None
    held = folder.held(order, out)
    click.echo(json.dumps(_summary(order, out, held)) if as_json else _said(order, out, held))


def _summary(order: Order, out: Path, held: int) -> dict[str, Any]:
    quality = order.quality
    pictures = quality and {"width": quality.width, "height": quality.height, "samples": quality.samples}
    return {"set": order.name, "out": str(out), "scenes": order.count, "held": held,
            "splits": dict(order.splits), "seed": order.seed, "pictures": pictures}


def _said(order: Order, out: Path, held: int) -> str:
    """held: how many scenes the folder holds in all."""
    splits = ", ".join(f"{count} {split}" for split, count in order.splits.items())
    size = order.quality and f"{order.quality.width}x{order.quality.height}"
    pictures = f"with pictures of {size}" if size else "without pictures"
    scenes = "1 scene" if order.count == 1 else f"{order.count} scenes"
    more = f"; the folder holds {held} scenes in all" if held > order.count else ""
    return f"{scenes} of {order.name} in {out} ({splits}), {pictures}{more}"
