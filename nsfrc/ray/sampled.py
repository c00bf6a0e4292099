"""A report of some images, for folders of results that have more than a page can show."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

from nsfrc.inference.folders import Item
from nsfrc.inference.measures import Measured
from nsfrc.inference.notes import Notes
from nsfrc.inference.predictor import Predictor
from nsfrc.inference.session import Session
from nsfrc.inference.sinks import Closing, Opening, ReportFile, Tally
from nsfrc.inference.stream import stream
from nsfrc.ray.sources import Source

PLACES = 20  # from so many places, evenly spread, images are taken


def sampled(source: Source, count: int) -> list[Item]:
    """At most `count` images: the first of blocks that lie evenly; all where there are no more."""
    size = max(1, len(source) // PLACES)
    each = max(1, -(-count // PLACES))
    items = [item for block in source.blocks(size) for item in islice(block, each if len(source) > count else None)]
    return items[:count] if len(items) > count else items


def report_of_sample(session: Session, source: Source, path: Path, count: int) -> Path:
    """Write the page for a sample, which says that it is one; its images are answered for again, on this machine."""
    items = sampled(source, count)
    told = f"{len(items)} of {len(source)} images, from all over"
    settings = {**session.settings, "sample": told} if len(items) < len(source) else session.settings
    sink, tally, notes = ReportFile(path), Tally(Measured(session.questions)), Notes(session)
    try:
        sink.start(Opening(replace(session, settings=settings), len(items)))
        for rows in stream(Predictor(session.pipe, session.asked(True, True), session.known), items):
            for one in (sink, tally, notes):
                one.rows(rows)
        remark = (f"this page shows a sample, {told}: the numbers here are of these alone, and nsfrc summarise gives "
                  f"those of all",) if len(items) < len(source) else ()
        sink.end(Closing(tally.measures, (*remark, *notes.remarks()), tuple(tally.failed)))
    finally:
        sink.close()
    return path
