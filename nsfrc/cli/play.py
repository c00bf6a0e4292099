"""`nsfrc play`: reads options and starts the page; the page is in nsfrc/page."""

from __future__ import annotations

from pathlib import Path

import click

from nsfrc.cli.choices import perceptions, programs
from nsfrc.errors import NsfrcError

PORT = 8765
HOST = "127.0.0.1"


@click.command(
    "play",
    epilog="""\b
Examples:
  nsfrc play                                        twopairs and sample figures, to begin with
  nsfrc play rules.pl --images photos/              your program and your pictures
  nsfrc play rules.pl --images photos/ --perception best.onnx
                                                    what your detector sees in them
  nsfrc play --port 0 --no-browser                  on a free port; open the address yourself
\b
The page needs no network and is for this machine alone. Nothing is saved unless you save it: the
program stays as it is on disk. It runs no Python but its own, whatever a program or a link names.
""",
)
@click.argument("program", required=False, shell_complete=programs)
@click.option("--images", type=click.Path(exists=True, path_type=Path), metavar="DIR",
              help="A folder of pictures, or one picture; folders true/ and false/, or of classes, are labels.")
@click.option("--perception", metavar="FILE", shell_complete=perceptions,
              help="A model file (.onnx) or a registered name. [from the program, or yolo]")
@click.option("--host", default=HOST, show_default=True,
              help="The address to listen on. Beyond this machine anyone who reaches it can use the page.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option("--browser/--no-browser", default=True, show_default=True, help="Whether to open a browser.")
def command(
    program: str | None, images: Path | None, perception: str | None, host: str, port: int, browser: bool
) -> None:
    """Open a page to try a program on pictures: edit it, see answers and reasons, ask what if, learn from labels.

    PROGRAM is a .pl file or a shipped name; without one the page begins with twopairs.
    """
    _refuse(program, perception)
    from nsfrc.hosts import is_loopback
    from nsfrc.inference.given import gather
    from nsfrc.page.begin import start
    from nsfrc.page.seen import Eyes
    from nsfrc.page.server import free_port, serve

    listing = None if images is None else gather(images)
    if listing is not None and not len(listing):
        raise NsfrcError(f"there are no images in {images} (.png, .jpg, .gif, .bmp, .tif, .webp and others)")
    begin = start(program, listing)
    port = free_port(host, port)
    if not is_loopback(host):
        click.echo(f"warning: anyone who reaches {host} can use this page, and see the pictures of --images", err=True)
    click.echo(f"http://{f'[{host}]' if ':' in host else host}:{port}/  (Ctrl-C ends it)")
    serve(begin, Eyes(perception), host, port, browser)


def _refuse(program: str | None, perception: str | None) -> None:
    """Say what is wrong before anything heavy is imported."""
    from importlib.util import find_spec

    from nsfrc.compiler.parse import find_program
    from nsfrc.models.model_file import find_model, is_model_file

    if program is not None:
        find_program(program)
    if perception is not None and is_model_file(perception):
        find_model(perception, None)
    if find_spec("nicegui") is None:
        raise NsfrcError("nsfrc play needs nicegui, which is not installed: pip install 'nsfrc[play]'")
