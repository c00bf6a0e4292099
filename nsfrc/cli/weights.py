"""`nsfrc weights`: bring weights for a perception, take them elsewhere, and see which there are."""

from __future__ import annotations

import json
from pathlib import Path

import click

from nsfrc.errors import NsfrcError

MODELS = ("slot_attention",)
DETECTORS = ("yolo", "yolo_clevr")


@click.group("weights", epilog="""\b
Examples:
  nsfrc weights list
  nsfrc weights import slot_attention.pt
  nsfrc weights export yolo_clevr --out scenes.onnx
""")
def command() -> None:
    """Import published weights, write detectors as ONNX, and list which weights each perception uses."""


@command.command("import", epilog="""\b
Examples:
  nsfrc weights import slot_attention.pt             from then on slot_attention uses it
  nsfrc infer --program clevr_hans3 --images DIR --perception slot_attention
  nsfrc weights import slot_attention.pt --out slots.safetensors
  nsfrc infer --program clevr_hans3 --images DIR --perception slot_attention --weights slots.safetensors
\b
Without --out, weights are kept in $NSFRC_HOME, or $XDG_DATA_HOME/nsfrc, or ~/.local/share/nsfrc.
""")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--model", type=click.Choice(MODELS), default=MODELS[0], show_default=True)
@click.option("--out", "-o", type=click.Path(dir_okay=False, path_type=Path),
              help="File to write, for use with --weights. [where the perception looks for it]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def importing(file: Path, model: str, out: Path | None, as_json: bool) -> None:
    """Turn FILE, a published checkpoint or the state dict in it, into weights that nsfrc reads.

    Nothing in FILE is run. It is refused if a tensor is missing, has another shape, or has values that are not numbers.
    """
    from nsfrc.perception.published import import_slots
    from nsfrc.perception.weights_folder import kept_weights

    path = out or kept_weights(model)
    tensors = import_slots(file, path)
    numbers = sum(tensor.numel() for tensor in tensors.values())
    if as_json:
        click.echo(json.dumps({"model": model, "file": str(path), "source": str(file), "tensors": len(tensors),
                               "numbers": numbers}))
        return
    click.echo(f"imported {len(tensors)} tensors with {numbers:,} numbers into {path}")
    used = f"with --weights {path}" if out else "wherever a program or --perception names it"
    click.echo(f"{model} uses them {used}")


@command.command("export", epilog="""\b
Examples:
  nsfrc weights export yolo --out kandinsky.onnx
  nsfrc weights export yolo --weights mine.safetensors --out mine.onnx
  nsfrc weights export yolo_clevr --out scenes.onnx --json        size and classes for a program to read
""")
@click.argument("model", type=click.Choice(DETECTORS))
@click.option("--weights", type=click.Path(path_type=Path), help="Weights to write. [those that ship]")
@click.option("--out", "-o", type=click.Path(dir_okay=False, path_type=Path), required=True,
              help="File to write.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def exporting(model: str, weights: Path | None, out: Path, as_json: bool) -> None:
    """Write MODEL as one ONNX file, for other programs that run detectors, or for nsfrc itself.

    An image in, [1, 3, H, W], RGB with values 0 to 1, bars beside it if it has other proportions; its objects out, the
    surest first, [1, 64, 6]: x1 y1 x2 y2 in pixels of that, how sure it is, class; then rows of zeros. Nothing is left
    to suppress. Size and class names are in the metadata, as ultralytics writes them.
    """
    from nsfrc.files import write_whole
    from nsfrc.perception.onnx_export import MOST, onnx_model
    from nsfrc.perception.yolo import Yolo
    from nsfrc.perception.yolo_clevr import YoloClevr

    if out.suffix.lower() != ".onnx":
        raise NsfrcError(f"{str(out)!r} would not be taken for ONNX: give --out a name that ends in .onnx")
    kind = YoloClevr if model == YoloClevr.name else Yolo
    detector = kind.build(MOST, weights)
    data = onnx_model(detector)
    write_whole(out, data)
    height, width = detector.size
    if as_json:
        click.echo(json.dumps({"model": detector.identity, "file": str(out), "bytes": len(data), "width": width,
                               "height": height, "classes": list(detector.attributes.classes)}))
        return
    click.echo(f"written to {out}: {detector.identity}, {len(data) / 1e6:.1f} MB, for images of {width}×{height}, "
               f"{len(detector.attributes.classes)} classes")


@command.command("list", epilog="Example: nsfrc weights list --json")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per perception.")
def listing(as_json: bool) -> None:
    """Show the weights that each perception uses without --weights."""
    from nsfrc.perception import used_weights

    for used in used_weights():
        if as_json:
            click.echo(json.dumps({"model": used.model, "state": used.state,
                                   "file": None if used.path is None else str(used.path)}))
        else:
            click.echo(f"{used.model:<16} {used.state:<9} {used.path or ''}".rstrip())
