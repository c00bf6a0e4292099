"""One run over all blocks: Ray Data hands them to workers, and what comes back goes to the sinks of one machine."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsfrc import __version__
from nsfrc.errors import NsfrcError
from nsfrc.inference.measures import Measured, images_text
from nsfrc.inference.notes import Notes
from nsfrc.inference.predictor import Predictor
from nsfrc.inference.run import FIRST, not_in_between
from nsfrc.inference.session import Session
from nsfrc.inference.sinks import Closing, Opening, Sink, Tally, Written
from nsfrc.inference.stream import computing
from nsfrc.ray.cluster import Cluster
from nsfrc.ray.dest import Dest, Manifest, open_dest, part_name
from nsfrc.ray.places import Place
from nsfrc.ray.sources import Source
from nsfrc.ray.summary import add_part, digest_and_rows
from nsfrc.ray.tables import from_line
from nsfrc.ray.worker import Answerer, Duty, folders_of

BLOCKS_A_WORKER = 8  # at least, so that the last ones do not wait long for each other
SMALLEST, LARGEST = 32, 2048  # images of a block, unless somebody says otherwise
READERS = 8  # threads that read from a bucket, which is mostly waiting


@dataclass(frozen=True)
class Target:
    """Where rows go and in what form. block_size: images of a part."""

    place: Place
    kind: str = "parquet"
    resume: bool = False
    block_size: int | None = None
    batch_size: int = 32


@dataclass(frozen=True)
class Timed:
    """How long it took, in seconds: until the first block was answered, and from then on until the last."""

    start_up: float
    whole: float
    images: int
    workers: int

    def told(self) -> str:
        rate = self.images / max(self.whole, 1e-9)
        are = "1 worker" if self.workers == 1 else f"{self.workers} workers"
        return (f"{images_text(self.images)} in {self.whole:.1f} s with {are}, {rate:.1f} a second; the first block "
                f"was there after {self.start_up:.1f} s")


def block_size(images: int, workers: int) -> int:
    """As large as leaves some blocks to every worker; whole pieces of 32, which detectors take at a time."""
    wanted = -(-images // (BLOCKS_A_WORKER * workers))
    return min(LARGEST, max(SMALLEST, -(-wanted // SMALLEST) * SMALLEST))


def run(
    session: Session, source: Source, target: Target, cluster: Cluster, view: Sink
) -> tuple[Closing, Timed]:
    """Answer for every block that is not in the folder already; `view` shows rows as they come, in any order.

    Ctrl-C ends it early: parts are there whole or not at all, and --resume goes on.
    """
    size = target.block_size or block_size(len(source), cluster.workers)
    with ExitStack() as stack:
        dest = open_dest(target.place, _manifest(session, source, target, size, cluster), target.resume)
        stack.callback(dest.close)
        stack.callback(view.close)
        tally, notes = Tally(Measured(session.questions)), Notes(session)
        parts, left = _earlier(dest, source, session, tally)
        _start(view, session, source, dest, tally, cluster)
        began, first = time.perf_counter(), None
        answered, stopped = 0, False
        try:
            for told in answers(session, source, dest, left, cluster, target.batch_size):
                first = first or time.perf_counter()
                rows = [from_line(line) for line in json.loads(told["lines"])]
                answered += len(rows)
                parts[part_name(told["block"], dest.manifest.kind)] = {
                    "rows": told["rows"], "bytes": told["bytes"], "sha256": told["sha256"]}
                with not_in_between():
                    for sink in (tally, notes, view):
                        sink.rows(rows)
        except KeyboardInterrupt:
            stopped = True
        ended = time.perf_counter()
        timed = Timed((first or ended) - began, ended - began, answered, cluster.workers)
        closing = Closing(tally.measures, notes.remarks(), tuple(tally.failed), stopped,
                          (Written(_shown(target.place), tally.measures.count),))
        if not stopped:
            _refuse_missing(dest)
            dest.finish(parts)
        view.end(closing)
    return closing, timed


def _shown(place: Place) -> Path:
    return place.local or Path(place.called)


def _manifest(session: Session, source: Source, target: Target, size: int, cluster: Cluster) -> Manifest:
    made = {**session.made_with, "images": source.called, "device": "cuda" if cluster.gpus else "cpu"}
    return Manifest(target.kind, made, session.questions, tuple(session.pipe.perception.dimensions), len(source),
                    source.digest(), size, source.count(size), __version__)


def _earlier(
    dest: Dest, source: Source, session: Session, tally: Tally
) -> tuple[dict[str, dict[str, Any]], list[bytes]]:
    """The parts of an earlier run that are whole, which are counted, and the blocks that are left, for workers."""
    there = dest.there() if dest.earlier else {}
    parts: dict[str, dict[str, Any]] = {}
    left: list[bytes] = []
    for block in source.blocks(dest.manifest.block_size, session.known):
        name, place = part_name(block.number, dest.manifest.kind), dest.part(block.number)
        if block.number in there and (found := digest_and_rows(place, dest.manifest)) is not None \
                and found["rows"] == len(block):
            add_part(tally.measures, place, dest.manifest)
            parts[name] = found
        else:  # a part that is not whole came from a disk that failed: it is written again
            left.append(pickle.dumps(block))
    return parts, left


def _start(view: Sink, session: Session, source: Source, dest: Dest, tally: Tally, cluster: Cluster) -> None:
    notices = [] if cluster.remark is None else [f"warning: {cluster.remark}"]
    if dest.earlier:
        notices.append(f"{dest.place.called} has {tally.measures.count} of {len(source)} rows already")
    names = tuple(item.name for item, _ in zip(source.listing, range(FIRST), strict=False))
    view.start(Opening(session, len(source) - tally.measures.count, names, True, tuple(notices)))


def answers(
    session: Session, source: Source, dest: Dest, blocks: Sequence[bytes], cluster: Cluster, batch_size: int
) -> Iterator[Mapping[str, Any]]:
    """What workers tell of blocks, in the order in which these are done. Raises NsfrcError where they cannot go on."""
    if not blocks:
        return
    ray, form = cluster.ray, dest.manifest.form()
    predictor = Predictor(session.pipe, session.asked(form.reasons, False))
    threads = computing(cluster.cpus)
    duty = Duty(threads, READERS if source.remote else cluster.cpus - threads, "cuda" if cluster.gpus else "cpu",
                batch_size, folders_of(predictor))
    given = ray.data.from_items([{"content": content} for content in blocks], override_num_blocks=len(blocks))
    done = given.map_batches(
        Answerer, fn_constructor_args=(pickle.dumps(predictor), duty, form, dest.place), batch_size=1,
        batch_format="pyarrow", compute=ray.data.ActorPoolStrategy(size=min(cluster.workers, len(blocks))),
        num_cpus=cluster.cpus, **({"num_gpus": cluster.gpus} if cluster.gpus else {}),
    )
    try:
        for told in done.iter_rows():
            if told["failure"] is not None:
                raise NsfrcError(told["failure"])
            yield told
    except ray.exceptions.RayError as error:
        raise NsfrcError(_of_ray(error)) from None


def _of_ray(error: BaseException) -> str:
    """What went wrong in a worker or in Ray, in a line."""
    cause = error
    while (inner := getattr(cause, "cause", None) or cause.__cause__) is not None:
        cause = inner
    text = str(cause).strip()
    if isinstance(cause, ModuleNotFoundError) or "No module named 'nsfrc'" in text:
        return ("the nodes of the cluster cannot import nsfrc: install the same version there, or submit with a "
                "runtime environment that has it (docs/scale.md)")
    last = (text.splitlines() or [type(cause).__name__])[-1]
    return (f"Ray stopped ({type(cause).__name__}: {last[:300]}): what is answered already is kept; the same command "
            f"with --resume goes on")


def _refuse_missing(dest: Dest) -> None:
    """Raise where parts that workers have written are not there, as with a disk that each node has for itself."""
    there = dest.there()
    missing = [number for number in range(dest.manifest.expected) if number not in there]
    if missing:
        raise NsfrcError(f"{len(missing)} of {dest.manifest.expected} parts are not in {dest.place.called}: it must be "
                         f"on a disk that all nodes share, or in a bucket (s3://, gs://); --resume answers for these "
                         f"again")

