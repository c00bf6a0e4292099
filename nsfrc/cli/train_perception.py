"""`nsfrc train perception`: a detector from scratch, on figures that are drawn for it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

MODELS = ("yolo",)


@click.command(
    "perception",
    epilog="""\b
Examples:
  nsfrc train perception --out yolo.safetensors                about an hour and a half on one core
  nsfrc train perception --out yolo.safetensors --resume       go on after Ctrl-C or a crash
  nsfrc train perception --out s.safetensors --variant s       a larger network
  nsfrc train perception --out q.safetensors --figures 1000 --epochs 8 --size 128    quicker and worse
  nsfrc infer --images DIR --weights yolo.safetensors          use what was trained
""",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True,
              help="File to write the weights to (safetensors, fp16); FILE.checkpoint is the state until then.")
@click.option("--model", type=click.Choice(MODELS), default="yolo", show_default=True)
@click.option("--variant", type=click.Choice(["n", "s"]), default="n", show_default=True, help="Size of YOLOv5.")
@click.option("--figures", type=click.IntRange(1, 1_000_000), default=8000, show_default=True,
              help="Figures of no pattern to draw and train on.")
@click.option("--epochs", type=click.IntRange(1, 10_000), default=18, show_default=True)
@click.option("--size", type=click.IntRange(32, 2048), default=160, show_default=True,
              help="Side of the images in pixels, a multiple of 32.")
@click.option("--batch-size", type=click.IntRange(1, 4096), default=16, show_default=True)
@click.option("--lr", type=click.FloatRange(min=0, min_open=True), default=2e-3, show_default=True,
              help="Highest learning rate.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True)
@click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True,
              help="Sums of another number of threads differ in their last digits, and so will the weights.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:N.")
@click.option("--resume", is_flag=True, help="Go on from FILE.checkpoint; the other options must be the same.")
def command(out: Path, model: str, threads: int, device: str, resume: bool, **options: Any) -> None:
    """Train a perception model from scratch on generated figures."""
    import torch

    from nsfrc.perception import usable_device
    from nsfrc.training.detector import Options, checkpoint_of, train

    torch.set_num_threads(threads)
    wanted = Options(**options)
    try:
        trained = train(
            wanted, out, device=usable_device(device), resume=resume, made_by=_command(out, model, threads, options),
            log=lambda line: click.echo(line, err=True), bar=_bar,
        )
    except KeyboardInterrupt:
        if checkpoint_of(out).exists():
            click.echo(f"\nthe last whole epoch is in {checkpoint_of(out)}: go on with "
                       f"{_command(out, model, threads, options)} --resume", err=True)
        raise
    click.echo(f"written to {out} ({out.stat().st_size / 1e6:.1f} MB), {trained.identity}")


def _command(out: Path, model: str, threads: int, options: dict[str, Any]) -> str:
    """The command that does it again, with every option that matters."""
    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items())
    return f"nsfrc train perception --model {model} {flags} --threads {threads} --out {shlex.quote(str(out))}"


def _bar(items: Iterable[Any], label: str, length: int) -> AbstractContextManager[Iterable[Any]]:
    """A progress bar where somebody looks on."""
    if not sys.stderr.isatty():
        return nullcontext(items)
    return click.progressbar(items, length=length, label=label, file=sys.stderr)
