"""`nsfrc infer`: reads options; what is done with them is in nsfrc/inference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nsfrc.cli.choices import perceptions, programs
from nsfrc.cli.infer_ray import answer, in_a_cluster
from nsfrc.compiler.ir import MAX_STEPS
from nsfrc.errors import NsfrcError

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
MAX_BATCH, MAX_THREADS = 100_000, 1024
ADDRESS = re.compile("(file|s3|gs|gcs|abfss?|hdfs|viewfs)://")  # what --ray reads, besides paths


class Images(click.Path):
    """A path, or the text of a camera or an address, which is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from nsfrc.inference.live import is_live

        if isinstance(value, str) and ADDRESS.match(value):
            return value
        return value if is_live(value) else super().convert(value, param, ctx)


def read_thresholds(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, float]:
    """Thresholds by the names of the questions, "" for all of them."""
    found: dict[str, float] = {}
    for text in given:
        name, _equals, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            raise click.BadParameter(f"{text!r} is neither a number from 0 to 1 nor a target with one, as kp1=0.4.") \
                from None
        if not 0 <= value <= 1:  # nor is it where it is nan
            raise click.BadParameter(f"{number} is not a number from 0 to 1.")
        if name.strip() in found:
            what = f"the threshold of {name.strip()}" if name.strip() else "the threshold of all targets"
            raise click.BadParameter(f"{what} is given twice.")
        found[name.strip()] = value
    return found


@click.command(
    "infer",
    epilog="""\b
Examples:
  nsfrc infer --images figures/                     with the only program in the current folder
  nsfrc infer --images figures/ --program twopairs --out results.csv
                                                    one row per image; Ctrl-C and --resume are fine
  nsfrc infer --images figures/ --report report.html
                                                    each image with its objects, score and reason
  nsfrc infer --images 7.png --images 8.png --program twopairs
                                                    two images; for one alone the reason is shown too
  nsfrc infer --images pages/ --program rules.pl --labels labels.csv --threshold 0.5 --threshold title=0.3
                                                    several targets, each a question of its own
  nsfrc infer --images camera:0 --every 15 --program rules.pl --out seen.csv
                                                    each 15th frame of a camera, until Ctrl-C
  nsfrc infer --ray local --images 's3://bucket/photos' --program rules.pl --out rows/
                                                    by as many processes as there are cores, or a cluster
  nsfrc infer --images photos/ --perception mine:Net --weights net.safetensors --plugin predicates.py --trust
                                                    your own perception and neural predicates
\b
Where DIR has folders true/ and false/, or one for each of a program's classes, they are taken as
labels, and accuracy, confusion matrix and calibration are shown; images beside them have no label.
So are the classes of CLEVR-Hans: from its scenes files, or else from the names of its images.
A table of labels (--labels) has the column file, and one for each question: file,title,figure

With several targets each has its own score, answer, reason and accuracy.
""",
)
@click.option("--images", type=Images(path_type=Path), metavar="DIR", multiple=True,
              help="A folder of images (.png, .jpg, .tif and so on), with its subfolders, one image, a pattern in "
                   "quotes ('photos/*.jpg'), a .txt file of paths, or a video; repeatable. Or a camera (camera:0) or "
                   "an address (rtsp://, http://), alone, until Ctrl-C.")
@click.option("--every", type=click.IntRange(1), default=30, show_default=True,
              help="Of a video, a camera or an address, each N-th frame.")
@click.option("--program", shell_complete=programs,
              help="A .nsfrc or .pl file or a shipped name. [the only one here, or else in DIR]")
@click.option("--perception", metavar="NAME", shell_complete=perceptions,
              help="A registered name, a model file (.onnx), or module:Class with --trust. [from the program, or yolo]")
@click.option("--detections", type=click.Path(exists=True, path_type=Path), metavar="FILE",
              help="What is in the images, instead of a perception: COCO .json, .jsonl, .csv (file, class, confidence, "
                   "x1, y1, x2, y2) or a folder of YOLO .txt files. --images then only shows them.")
@click.option("--conf", type=click.FloatRange(0, 1),
              help="The least confidence of an object. [from the program, or 0.25]")
@click.option("--weights", type=FILE,
              help="Weights of the perception, a safetensors file. [those that ship or were imported]")
@click.option("--concepts", type=FILE, help="Parameters from `nsfrc train concept`. [those that ship]")
@click.option("--plugin", "plugins", multiple=True, metavar="FILE.py",
              help="Python file or module with neural predicates or a perception, with --trust; repeatable.")
@click.option("--trust", is_flag=True,
              help="Run the Python that --plugin, --perception or the program of --program names: docs/security.md.")
@click.option("--threshold", "thresholds", multiple=True, metavar="X|TARGET=X", callback=read_thresholds,
              help="Score from 0 to 1 from which on a target is true, and below which the highest of classes is none; "
                   "for one target: kp1=0.4; repeatable. [from the program, the calibration, or 0.5; for classes 0]")
@click.option("--fit-threshold", is_flag=True,
              help="Choose the thresholds that tell the labelled images apart best, as directives to copy.")
@click.option("--labels", type=FILE, metavar="FILE.csv",
              help="The right answers: a column file, then one for each target with 1, 0, true, false or nothing, or "
                   "classes with names of classes. [from folders]")
@click.option("--steps", type=click.IntRange(0, MAX_STEPS), help="Steps of reasoning. [from the program]")
@click.option("--batch-size", type=click.IntRange(1, MAX_BATCH), default=16, show_default=True,
              help="Images per batch. On a CPU yolo always takes 32 and slot_attention 16, so that results do not "
                   "depend on this.")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, or auto: cuda where there is one.")
@click.option("--threads", type=click.IntRange(1, MAX_THREADS),
              help="CPU threads: each answers for images of its own, or, where perception or predicates are yours, "
                   "about half of them read images ahead. [all cores]")
@click.option("--out", type=Images(path_type=Path), metavar="PATH",
              help="Write all rows here, as .csv or .jsonl; with --ray a folder.")
@click.option("--resume", is_flag=True, help="Continue an interrupted run from what it wrote beside --out.")
@click.option("--report", type=click.Path(path_type=Path),
              help="Write an HTML page (.html) with every image, its objects and the reason.")
@in_a_cluster
@click.option("--why", is_flag=True, help="Show the reason below each row of the table. [for one image alone]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per image, and a summary as the last one.")
@click.option("--quiet", is_flag=True, help="Show the summary only.")
def command(
    images: tuple[Path | str, ...], every: int, program: str | None, perception: str | None, detections: Path | None,
    fit_threshold: bool, conf: float | None, weights: Path | None, concepts: Path | None,
    plugins: tuple[str, ...], trust: bool, thresholds: dict[str, float], labels: Path | None, steps: int | None,
    batch_size: int, device: str, threads: int | None, out: Path | str | None, resume: bool, report: Path | None,
    why: bool, as_json: bool, quiet: bool, **cluster: Any,
) -> None:
    """Answer a program's questions for every image in a folder.

    An image that cannot be read is a row with an error; the run continues, and the exit code is 1 at the end. Files
    whose names are not those of images are left out.
    """
    if resume and out is None:
        raise NsfrcError("--resume continues the file of --out: give --out too")
    if resume and report is not None and cluster["ray"] is None:
        raise NsfrcError("--report needs every image again: leave out --resume or --report")
    if why and quiet:
        raise NsfrcError("--why adds to the rows that --quiet hides: leave out one of the two")
    _refuse_early(images, program, perception)
    shared: dict[str, Any] = {
        "program": program, "perception": perception, "weights": weights, "concepts": concepts, "plugins": plugins,
        "threshold": thresholds.get(""), "steps": steps, "trust": trust, "labels": labels, "conf": conf,
        "thresholds": {name: value for name, value in thresholds.items() if name}, "detections": detections,
    }
    if cluster["ray"] is not None:
        answer(images, shared, cluster, {"out": out, "resume": resume, "report": report, "why": why, "json": as_json,
                                         "quiet": quiet, "every": every, "threads": threads, "device": device,
                                         "batch_size": batch_size, "fit_threshold": fit_threshold})
        return
    _refuse_without_ray([*images, out], cluster)
    assert not isinstance(out, str)
    from nsfrc.cli.infer_view import view_for
    from nsfrc.contexts import cores, torch_threads
    from nsfrc.inference.folders import Listing
    from nsfrc.inference.given import gather
    from nsfrc.inference.images import quietly
    from nsfrc.inference.known import listing_of
    from nsfrc.inference.live import open_live
    from nsfrc.inference.results import no_images
    from nsfrc.inference.run import Outputs, run
    from nsfrc.inference.session import Wanted, open_session
    from nsfrc.inference.stream import computing, reading_with
    from nsfrc.models.detections import detections as as_detections

    outputs = Outputs(out, resume, report)
    outputs.refuse()
    if not images and detections is None:
        raise NsfrcError("there is nothing to answer for: give --images DIR, or --detections FILE")
    live = [one for one in images if isinstance(one, str)]
    if live:
        _refuse_with_live(live[0], {"another --images": len(images) > 1, "--detections": detections, "--labels": labels,
                                    "--fit-threshold": fit_threshold, "--resume": resume})
        listing: Listing = open_live(live[0], every)
    else:
        listing = gather(images, every) if images else listing_of(as_detections(detections))
    if not len(listing) and not listing.live:
        raise NsfrcError(no_images(images or (detections,), listing))
    threads = threads or min(cores(), MAX_THREADS)
    wanted = Wanted(tuple(one for one in images if isinstance(one, Path)), device=device, threads=threads, **shared)
    with torch_threads(computing(threads)), quietly():
        view = view_for(as_json, quiet, why or len(listing) == 1)
        closing = run(open_session(wanted, listing), listing, view, outputs, reading_with(threads, batch_size))
    if closing.stopped:
        raise SystemExit(130)
    if fit_threshold:
        click.echo("\n" + closing.measures.fitted(), err=as_json)
    if (failures := closing.failures()) is not None:
        raise NsfrcError(failures)


def _refuse_early(images: tuple[Path | str, ...], program: str | None, perception: str | None) -> None:
    """Raise where something that is named is not there, before torch is imported."""
    from nsfrc.compiler.parse import find_program
    from nsfrc.inference.folders import refuse_missing
    from nsfrc.models.model_file import find_model, is_model_file
    from nsfrc.models.perceptions import address

    for path in images:
        if isinstance(path, Path) and not path.suffix and not set("*?[") & set(str(path)):  # a folder, and no pattern
            refuse_missing(path)
    beside = None if program is None else find_program(program).parent
    if perception is not None and is_model_file(perception):
        find_model(perception, beside)
    elif perception is not None:
        address(perception)


def _refuse_without_ray(named: Sequence[Path | str | None], cluster: dict[str, Any]) -> None:
    """Raise where something is asked for that only --ray does."""
    for option, given in cluster.items():
        if given is not None:
            raise NsfrcError(f"--{option.replace('_', '-')} belongs to --ray: give --ray local, or leave it out")
    for one in named:
        if isinstance(one, str) and ADDRESS.match(one):
            raise NsfrcError(f"{one} is reached with --ray: add --ray local and --out FOLDER")
    if isinstance(named[-1], str):
        raise NsfrcError(f"--out {named[-1]}: rows go to a file, .csv or .jsonl")


def _refuse_with_live(name: str, options: dict[str, Any]) -> None:
    """Raise where an option needs to know all images, which nobody does of a camera or an address."""
    from nsfrc.inference.live import shown

    for option, given in options.items():
        if given:
            raise NsfrcError(f"the frames of {shown(name)} are not known before they come: leave out {option}")
