"""`nsfrc infer --ray`: its options, and what is refused beside them; the run itself is in nsfrc/ray."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from nsfrc.errors import NsfrcError

Command = TypeVar("Command", bound=Callable[..., Any])
SAMPLE = 200  # images that a report shows

OPTIONS = (
    click.option("--ray", is_flag=False, flag_value="local", metavar="[ADDRESS]",
                 help="Answer with Ray: the address of a cluster (host:port, ray://host:port, auto), or local, "
                      "processes on this machine. --images may then be Parquet files, WebDataset tars, or an address "
                      "(s3://, gs://, file://), and --out is a folder. [local]"),
    click.option("--workers", type=click.IntRange(1, 100_000),
                 help="With --ray, how many processes answer. [one for each CPU, or for each GPU share]"),
    click.option("--cpus-per-worker", type=click.IntRange(1, 1024), help="With --ray, threads of each worker. [1]"),
    click.option("--gpus-per-worker", type=click.FloatRange(0, 64),
                 help="With --ray, the GPUs of each worker; 0.25 puts four workers on one. [0]"),
    click.option("--format", type=click.Choice(["parquet", "csv", "jsonl"]),
                 help="With --ray, what the parts in the folder of --out are. [parquet]"),
    click.option("--block-size", type=click.IntRange(1, 1_000_000),
                 help="With --ray, images that are answered and written at a time. [32 to 2048, by their number]"),
    click.option("--image-column", metavar="NAME",
                 help="With --ray, the column of Parquet files that has the images. [image, or the one with bytes]"),
)


def in_a_cluster(command: Command) -> Command:
    """Add the options of --ray to a command."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def answer(
    images: tuple[Path | str, ...], shared: dict[str, Any], cluster: dict[str, Any], more: dict[str, Any]
) -> None:
    """Answer with Ray. shared: what a session is opened with; cluster: OPTIONS; more: the other options of infer."""
    _refuse(images, shared, more)
    from nsfrc.cli.infer_view import view_for
    from nsfrc.contexts import torch_threads
    from nsfrc.inference.images import quietly
    from nsfrc.inference.known import listing_of
    from nsfrc.inference.report import refuse_place
    from nsfrc.inference.session import Wanted, open_session
    from nsfrc.models.detections import detections as as_detections
    from nsfrc.ray.cluster import LOCAL, connected
    from nsfrc.ray.cluster import Wanted as WantedCluster
    from nsfrc.ray.dest import earlier_in
    from nsfrc.ray.extra import need_arrow, need_ray
    from nsfrc.ray.places import Place
    from nsfrc.ray.run import Target, run
    from nsfrc.ray.sampled import report_of_sample
    from nsfrc.ray.sources import Source, open_source, refuse_auto

    need_ray(local=cluster["ray"] == LOCAL)
    need_arrow()
    if more["report"] is not None:
        refuse_place(more["report"])
    target = Target(Place.of(str(more["out"])), cluster["format"] or "parquet", more["resume"], cluster["block_size"],
                    more["batch_size"])
    earlier_in(target.place, more["resume"])
    if images:
        source = open_source(images, more["every"], cluster["image_column"])
    else:
        source = Source(str(shared["detections"]), listing_of(as_detections(shared["detections"])))
    cpus, gpus = cluster["cpus_per_worker"] or 1, cluster["gpus_per_worker"] or 0.0
    paths = tuple(one for one in images if isinstance(one, Path))
    refuse_auto(shared["program"], shared["perception"], shared["detections"], paths)
    with torch_threads(1), quietly():
        session = open_session(Wanted(paths, **shared), source.listing)
        with connected(WantedCluster(cluster["ray"], cluster["workers"], cpus, gpus)) as ready:
            closing, timed = run(session, source, target, ready, view_for(more["json"], more["quiet"], False))
        if not closing.stopped and timed.images:
            click.echo(timed.told(), err=True)
        if closing.stopped:
            raise SystemExit(130)
        if more["report"] is not None:
            click.echo(f"written to {report_of_sample(session, source, more['report'], SAMPLE)}", err=more["json"])
    if more["fit_threshold"]:
        click.echo("\n" + closing.measures.fitted(), err=more["json"])
    if (failures := closing.failures()) is not None:
        raise NsfrcError(failures)


def _refuse(images: tuple[Path | str, ...], shared: dict[str, Any], more: dict[str, Any]) -> None:
    """Raise where options do not go together, before anything is loaded."""
    if more["out"] is None:
        raise NsfrcError("--ray writes all rows to a folder: give --out FOLDER")
    if not images and shared["detections"] is None:
        raise NsfrcError("there is nothing to answer for: give --images SOURCE, or --detections FILE")
    if more["json"] and not more["quiet"]:
        raise NsfrcError("with --ray rows go to the folder of --out, and --json shows the summary: add --quiet, and "
                         "--format jsonl for rows as JSON")
    if more["why"]:
        raise NsfrcError("with --ray reasons go to the folder of --out, into the column reason: leave out --why")
    if more["threads"] is not None:
        raise NsfrcError("with --ray, --cpus-per-worker says how many threads a worker has: leave out --threads")
    if more["device"] not in ("auto", "cpu"):
        raise NsfrcError("with --ray, --gpus-per-worker 1 (or a share of one) gives workers a GPU: leave out --device")
