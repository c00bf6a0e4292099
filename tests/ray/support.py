"""What a worker does, without Ray: blocks one after the other in this process."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow

from nsfrc import __version__
from nsfrc.inference.known import listing_of
from nsfrc.inference.predictor import Predictor
from nsfrc.inference.session import Session, Wanted, open_session
from nsfrc.models.detections import detections as as_detections
from nsfrc.ray.dest import Manifest, open_dest
from nsfrc.ray.places import Place
from nsfrc.ray.sources import Source, open_source
from nsfrc.ray.worker import Answerer, Duty

DEFAULT: dict[str, Any] = {"program": "rules.pl", "perception": "readable:Readable", "trust": True}


def answer_here(
    given: str | Path, out: Path, kind: str = "parquet", size: int = 9, detections: Path | None = None
) -> tuple[Source, Session]:
    """Answer for a source into a folder, as workers do. detections: these, without pictures."""
    if detections is None:
        source, wanted = open_source([given]), Wanted(**DEFAULT)
    else:
        source = Source(str(detections), listing_of(as_detections(detections)))
        wanted = Wanted(program="rules.pl", detections=detections)
    session = open_session(wanted, source.listing)
    made = {**session.made_with, "images": str(given)}
    blocks = list(source.blocks(size, session.known))
    assert source.count(size) == len(blocks) and sum(map(len, blocks)) == len(source)
    manifest = Manifest(kind, made, session.questions, tuple(session.pipe.perception.dimensions), len(source),
                        source.digest(), size, len(blocks), __version__)
    dest = open_dest(Place.of(out), manifest, False)
    predictor = pickle.dumps(Predictor(session.pipe, session.asked(manifest.form().reasons, False)))
    worker = Answerer(predictor, Duty(), manifest.form(), dest.place)
    for block in blocks:
        told = worker(pyarrow.table({"content": [pickle.dumps(block)]})).to_pylist()[0]
        assert told["failure"] is None and told["rows"] == len(block)
    dest.close()
    return source, session


def lines_of(out: Path, ending: str = "jsonl") -> list[str]:
    """The lines of all parts, without heads, sorted."""
    found = [line for path in out.glob(f"part-*.{ending}") for line in path.read_text().splitlines()]
    return sorted(line for line in found if not line.startswith("file,"))
