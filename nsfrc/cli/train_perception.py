"""`nsfrc train perception`: a perception from scratch, on figures that are drawn for it or on a folder of scenes."""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from nsfrc.cli.choices import programs
from nsfrc.errors import NsfrcError
from nsfrc.training.options import ALL, LOOK_OF, LOOKS, MODELS, DetectorOptions, Options

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

TRAINERS = {
    "yolo": "nsfrc.training.detector",
    "yolo_clevr": "nsfrc.training.detector",
    "slot_attention": "nsfrc.training.slots",
}


def _usual(name: str) -> str:
    """What help says of an option's values where it is not given."""
    said: dict[str, list[str]] = {}
    for model, options in MODELS.items():
        if (value := asdict(options).get(name)) is not None:
            said.setdefault("all there are" if value == ALL else str(value), []).append(model)
    alone = len(said) == 1 and len(*said.values()) == len(MODELS)
    parts = [value if alone else f"{value} ({', '.join(models)})" for value, models in said.items()]
    return f"[default: {'; '.join(parts)}]"


def _option(flag: str, kind: click.ParamType, text: str = "") -> Any:
    """An option of the training, whose default is the model's."""
    usual = _usual(flag.removeprefix("--").replace("-", "_"))
    return click.option(flag, type=kind, help=f"{text} {usual}".strip())


@click.command(
    "perception",
    epilog="""\b
Examples:
  nsfrc train perception --out yolo.safetensors                about an hour on one core
  nsfrc train perception --out yolo.safetensors --resume       go on after Ctrl-C or a crash
  torchrun --nproc-per-node 4 -m nsfrc train perception --out yolo.safetensors
                                                  the same in four processes
  nsfrc train perception --out s.safetensors --variant s       a larger network
  nsfrc train perception --out v.safetensors --looks varied --weights yolo.safetensors    go on, with other looks
  nsfrc train perception --out q.safetensors --figures 1000 --epochs 8 --size 128    quicker and worse
  nsfrc infer --images DIR --weights yolo.safetensors          use what was trained
\b
  nsfrc data clevr --out clevr --count 4000 --size 240x160 --samples 4
  nsfrc train perception --model yolo_clevr --data clevr --out clevr.safetensors
  nsfrc train perception --model slot_attention --data clevr --out slots.safetensors
  nsfrc infer --program clevr_hans3 --images DIR --weights clevr.safetensors
  nsfrc infer --program clevr_hans3 --images DIR --perception slot_attention --weights slots.safetensors
\b
  nsfrc train perception --through rules.pl --images labelled/ --out mine.safetensors
                                                  attributes from labels of whole images
""",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True,
              help="File to write the weights to (safetensors, fp16); until then the state is in FILE.checkpoint.")
@click.option("--model", type=click.Choice(list(MODELS)), default="yolo", show_default=True)
@click.option("--through", metavar="PROGRAM", shell_complete=programs,
              help="Start from weights that are there, and learn attributes such as colours from labels of whole "
                   "images, through the rules of this program; takes --images, --labels, --weights, --epochs, --seed.")
@click.option("--images", type=click.Path(path_type=Path), multiple=True, metavar="DIR",
              help="With --through: images in folders true/ and false/ (or one per class), or with --labels; "
                   "repeatable.")
@click.option("--labels", type=FILE, metavar="FILE.csv", help="With --through: the right answers, as for nsfrc infer.")
@click.option("--weights", type=FILE, help="Weights to start from, of a detector. [with --through: those that ship; "
                                          "otherwise none]")
@click.option("--looks", type=click.Choice(list(LOOKS)),
              help="Of the figures that yolo learns from: as the patterns have them, or many palettes, grounds, "
                   "outlines and sizes. [default: plain]")
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR",
              help="Folder of CLEVR scenes with pictures, laid out as CLEVR or CLEVR-Hans, or several of them "
                   "(DIR:DIR); for all models except yolo, whose figures are generated.")
@_option("--figures", click.IntRange(1, ALL), "Pictures to train on, at most.")
@_option("--epochs", click.IntRange(1, 100_000))
@_option("--size", click.IntRange(16, 2048),
         "Width of the images in pixels; a multiple of 32 for yolo, of 96 for yolo_clevr.")
@_option("--batch-size", click.IntRange(1, 4096))
@_option("--lr", click.FloatRange(min=0, min_open=True), "Highest learning rate.")
@_option("--seed", click.IntRange(0, 2**63 - 1))
@_option("--variant", click.Choice(["n", "s"]), "Size of YOLOv5.")
@_option("--network", click.Choice(["full", "light", "fine"]),
         "full: YOLOv5 as it is. light: half as much work, its finest scale alone with narrower layers. fine: that "
         "with smaller cells, for small objects that touch.")
@_option("--slots", click.IntRange(1, 1000), "Number of slots: at least as many as things in a scene.")
@_option("--iterations", click.IntRange(1, 100), "Iterations of the attention.")
@click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True,
              help="CPU threads. Another number changes the last digits of sums, and so the weights.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:N.")
@click.option("--resume", is_flag=True, help="Continue from FILE.checkpoint; the other options must be the same.")
def command(
    out: Path, model: str, data: Path | None, threads: int, device: str, resume: bool, through: str | None,
    images: tuple[Path, ...], labels: Path | None, weights: Path | None, looks: str | None, **given: Any
) -> None:
    """Train a perception model on generated figures or on scenes, from scratch or from other weights.

    yolo is for Kandinsky figures; yolo_clevr and slot_attention are for CLEVR scenes.
    """
    if through is not None:
        _refuse_beside_rules(data, resume, images, given | {"looks": looks})
        _through_rules(through, images, labels, weights, out, threads, given["epochs"], given["seed"] or 0)
        return
    if images or labels is not None:
        raise NsfrcError("--images and --labels are for learning through rules: give --through PROGRAM too")
    wanted = _wanted(model, data, looks, given)
    if weights is not None and not isinstance(wanted, DetectorOptions):
        raise click.UsageError(f"{model} is trained from scratch: leave out --weights")
    import torch

    from nsfrc.distributed import joined, leads, restarted
    from nsfrc.perception import usable_device
    from nsfrc.training.checkpoint import checkpoint_of
    from nsfrc.training.run import no_bar, no_log

    torch.set_num_threads(threads)
    again = _command(out, model, threads, weights, wanted)
    begin = {} if weights is None else {"start": weights}
    resume = resume or (restarted() and checkpoint_of(out).exists())
    try:
        with joined(usable_device(device)) as where:
            log, bar = (lambda line: click.echo(line, err=True), _bar) if leads() else (no_log, no_bar)
            trained = importlib.import_module(TRAINERS[model]).train(
                wanted, out, device=where, resume=resume, made_by=again, log=log, bar=bar, **begin,
            )
            if not leads():
                return
    except KeyboardInterrupt:
        if checkpoint_of(out).exists():
            click.echo(f"\nthe last full epoch is in {checkpoint_of(out)}: continue with {again} --resume", err=True)
        raise
    click.echo(f"written to {out} ({out.stat().st_size / 1e6:.1f} MB), {trained.identity}")


def _refuse_beside_rules(data: Path | None, resume: bool, images: tuple[Path, ...], given: dict[str, Any]) -> None:
    if not images:
        raise NsfrcError("--through learns from labelled images: give --images DIR with folders true/ and false/")
    others = [name for name, value in given.items() if value is not None and name not in ("epochs", "seed")]
    others += ["data"] * (data is not None) + ["resume"] * resume
    if others:
        raise NsfrcError(f"--{others[0].replace('_', '-')} is for training from scratch: leave it out beside --through")


def _through_rules(program: str, images: tuple[Path, ...], labels: Path | None, weights: Path | None, out: Path,
                   threads: int, epochs: int | None, seed: int) -> None:
    from nsfrc.contexts import torch_threads
    from nsfrc.inference.given import gather
    from nsfrc.inference.images import quietly
    from nsfrc.inference.session import Wanted, open_session
    from nsfrc.training import through_perception as training

    listing = gather(images)
    with quietly(), torch_threads(threads):
        session = open_session(Wanted(images, program, weights=weights, labels=labels), listing)
        model = training.detector_of(session)
        seen = training.views(session, listing, seed)
        heads, taught = training.teach(model, session.pipe.program, seen, seed, epochs or training.EPOCHS)
    command = shlex.join(["nsfrc", *sys.argv[1:]])
    training.write(model, weights or type(model).shipped, heads, taught, out, command)
    click.echo(f"{taught.images} labelled images, {taught.held_out} of them held out; {taught.epochs} epochs")
    click.echo(f"right of those held out: {taught.before[0]:.1%} before, {taught.after[0]:.1%} after; of the others: "
               f"{taught.before[1]:.1%} before, {taught.after[1]:.1%} after")
    click.echo(f"written to {out}: nsfrc infer --weights {out}")


def _wanted(model: str, data: Path | None, looks: str | None, given: dict[str, Any]) -> Options:
    """The model's usual options with those that were given."""
    usual = MODELS[model]
    changes = {name: value for name, value in given.items() if value is not None}
    for name in changes.keys() - asdict(usual).keys():
        raise click.UsageError(f"--{name.replace('_', '-')} is not an option of {model}")
    if usual.data and data is not None:
        raise click.UsageError(f"{model} learns from figures that are generated for it: leave out --data, "
                               f"or choose another --model")
    if looks is not None and not usual.data:
        raise click.UsageError(f"{model} learns from pictures that are there: leave out --looks")
    if looks is not None:
        changes["data"] = LOOKS[looks]
    if not usual.data:
        if data is None:
            raise click.UsageError(f"{model} learns from scenes: give a folder of them with --data DIR; "
                                   f"nsfrc data clevr --out DIR makes some")
        changes["data"] = f"./{data}" if str(data) in LOOKS.values() else str(data)  # a folder, whatever its name
    return replace(usual, **changes)


def _command(out: Path, model: str, threads: int, weights: Path | None, options: Options) -> str:
    """The command that does it again, with every option that matters."""
    told = asdict(options)
    if told.pop("start", None) is not None and weights is not None:
        told["weights"] = weights
    if MODELS[model].data:
        looks = LOOK_OF[told.pop("data")]
        told |= {} if looks == "plain" else {"looks": looks}
    flags = " ".join(f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in told.items())
    return f"nsfrc train perception --model {model} {flags} --threads {threads} --out {shlex.quote(str(out))}"


def _bar(items: Iterable[Any], label: str, length: int) -> AbstractContextManager[Iterable[Any]]:
    """A progress bar where somebody looks on."""
    if not sys.stderr.isatty():
        return nullcontext(items)
    return click.progressbar(items, length=length, label=label, file=sys.stderr)
