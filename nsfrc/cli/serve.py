"""`nsfrc serve`: reads options; the service is in nsfrc/service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from nsfrc.cli.choices import perceptions, programs
from nsfrc.cli.infer import FILE, MAX_BATCH, MAX_THREADS, read_thresholds
from nsfrc.compiler.ir import MAX_STEPS
from nsfrc.errors import NsfrcError
from nsfrc.service.settings import MEGA, PORT, TAKES, Batching, Limits, Settings, checked_token

LIMITS, BATCHING = Limits(), Batching()
MOST_PIXELS = 100  # megapixels, as of all images


@click.command(
    "serve",
    epilog="""\b
Examples:
  nsfrc serve twopairs                              at http://127.0.0.1:8000, for this machine alone
  nsfrc serve rules.pl --perception best.onnx --port 9000 --workers 2
  nsfrc serve rules.pl --takes facts --takes detections
                                                    without a perception
  nsfrc serve rules.pl --host 0.0.0.0 --token-file token
                                                    for other machines, which need the token
\b
  curl -F image=@a.png -F image=@b.png http://127.0.0.1:8000/infer
  curl -H "Authorization: Bearer $(cat token)" http://example:8000/program
\b
/docs shows what can be asked and answered, /metrics counts for Prometheus. The answers are those of
nsfrc infer. SIGTERM and Ctrl-C stop it when what has begun is answered. See docs/service.md.
""",
)
@click.argument("program", shell_complete=programs)
@click.option("--host", default="127.0.0.1", show_default=True,
              help="The address to listen at; others than this machine's own need --token-file.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option("--token-file", type=FILE,
              help="A file with the token that requests must have, as Authorization: Bearer TOKEN.")
@click.option("--cors", "origins", multiple=True, metavar="ORIGIN",
              help="A host whose pages may ask, as https://example.com; repeatable. [none]")
@click.option("--takes", type=click.Choice(TAKES), multiple=True,
              help="What it can be asked with; repeatable. Without pictures no perception is loaded. [all]")
@click.option("--perception", metavar="NAME", shell_complete=perceptions,
              help="A registered name, a model file (.onnx), or module:Class with --trust. [from the program, or yolo]")
@click.option("--conf", type=click.FloatRange(0, 1),
              help="The least confidence of an object. [from the program, or 0.25]")
@click.option("--weights", type=FILE, help="Weights of the perception. [those that ship or were imported]")
@click.option("--concepts", type=FILE, help="Parameters from `nsfrc train concept`. [those that ship]")
@click.option("--plugin", "plugins", multiple=True, metavar="FILE.py",
              help="Python file or module with neural predicates or a perception, with --trust; repeatable.")
@click.option("--trust", is_flag=True,
              help="Run the Python that --plugin, --perception or PROGRAM names: docs/security.md.")
@click.option("--threshold", "thresholds", multiple=True, metavar="X|TARGET=X", callback=read_thresholds,
              help="As for nsfrc infer; repeatable.")
@click.option("--steps", type=click.IntRange(0, MAX_STEPS), help="Steps of reasoning. [from the program]")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, or auto: cuda where there is one.")
@click.option("--no-reasons", is_flag=True, help="Leave out the reasons, which take time.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True,
              help="Processes, each with the program and the perception; one that dies is replaced.")
@click.option("--threads", type=click.IntRange(1, MAX_THREADS),
              help="CPU threads of a worker, about half of them to read pictures. [2, or 1 on one core]")
@click.option("--max-batch", type=click.IntRange(1, MAX_BATCH), default=BATCHING.most, show_default=True,
              help="Pictures, files or worlds that are answered at once.")
@click.option("--max-wait", type=click.FloatRange(0, 10_000), default=1000 * BATCHING.wait, show_default=True,
              help="Milliseconds that the first of a batch waits for others.")
@click.option("--queue", type=click.IntRange(1, 1_000_000), default=LIMITS.queue, show_default=True,
              help="Pictures, files or worlds that may wait; requests beyond get 503 with Retry-After.")
@click.option("--max-items", type=click.IntRange(1, 1_000_000), default=LIMITS.items, show_default=True,
              help="Pictures, files or worlds of a request.")
@click.option("--max-body", type=click.FloatRange(0.001, 1000), default=LIMITS.body / MEGA, show_default=True,
              help="Megabytes of a request; of JSON a quarter of it.")
@click.option("--max-pixels", type=click.FloatRange(0.001, MOST_PIXELS), default=LIMITS.pixels / MEGA,
              show_default=True, help="Megapixels of a picture.")
@click.option("--max-connections", type=click.IntRange(1, 1_000_000), default=LIMITS.connections, show_default=True,
              help="Connections of a worker at once.")
@click.option("--timeout", type=click.FloatRange(0.1, 3600), default=LIMITS.seconds, show_default=True,
              help="Seconds of a request, from its header to its answer.")
@click.option("--no-log", is_flag=True, help="No access log, which is a JSON object per line on standard output.")
def command(
    program: str, host: str, port: int, token_file: Path | None, origins: tuple[str, ...], takes: tuple[Any, ...],
    perception: str | None, conf: float | None, weights: Path | None, concepts: Path | None, plugins: tuple[str, ...],
    trust: bool, thresholds: dict[str, float], steps: int | None, device: str, no_reasons: bool, workers: int,
    threads: int | None, max_batch: int, max_wait: float, queue: int, max_items: int, max_body: float,
    max_pixels: float, max_connections: int, timeout: float, no_log: bool,
) -> None:
    """Answer PROGRAM's questions over HTTP: for pictures, detections or facts, with scores, objects and reasons.

    Requests that wait are answered in one batch. POST /infer asks; /healthz and /readyz are for whoever watches it.
    """
    for module in ("fastapi", "uvicorn", "prometheus_client", "python_multipart"):
        _need(module)
    _refuse_early(program, perception)
    wanted = {
        "program": program, "perception": perception, "weights": weights, "concepts": concepts, "plugins": plugins,
        "threshold": thresholds.get(""), "steps": steps, "device": device, "trust": trust,
        "thresholds": {name: value for name, value in thresholds.items() if name}, "conf": conf,
    }
    body = int(max_body * MEGA)
    limits = Limits(body=body, json=max(1, body // 4), pixels=int(max_pixels * MEGA), items=max_items, seconds=timeout,
                    queue=queue, connections=max_connections)
    settings = Settings(
        wanted, tuple(dict.fromkeys(takes)), host, port, None if token_file is None else _token(token_file), origins,
        workers, threads or min(2, os.cpu_count() or 1), not no_reasons, limits, Batching(max_batch, max_wait / 1000),
        not no_log,
    )
    from nsfrc.service.running import serve

    serve(settings, lambda text: click.echo(text, err=True))


def _need(module: str) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise NsfrcError(f"nsfrc serve needs {module}: pip install 'nsfrc[serve]'")


def _token(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            click.echo(f"warning: others on this machine can read {path}: chmod 600 {path}", err=True)
        return checked_token(path.read_text(encoding="ascii"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise NsfrcError(f"cannot read the token in {path}: {error}") from None


def _refuse_early(program: str, perception: str | None) -> None:
    """Raise where something that is named is not there, before torch is imported."""
    from nsfrc.compiler.parse import find_program
    from nsfrc.models.model_file import find_model, is_model_file
    from nsfrc.models.perceptions import address

    beside = find_program(program).parent
    if perception is not None and is_model_file(perception):
        find_model(perception, beside)
    elif perception is not None:
        address(perception)
