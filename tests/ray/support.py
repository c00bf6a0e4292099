"""What a worker does, without Ray: blocks one after the other in this process."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

import pyarrow

from nsfrc import __version__
from nsfrc.inference.predictor import Predictor
from nsfrc.inference.session import Session, Wanted, open_session
from nsfrc.ray.dest import Manifest, open_dest
from nsfrc.ray.places import Place
from nsfrc.ray.sources import Source, open_source
from nsfrc.ray.worker import Answerer, Duty

DEFAULT = {"program": "rules.pl", "perception": "readable:Readable", "trust": True}


def session_of(source: Source, images: Sequence[str | Path] = ()) -> Session:
    return open_session(Wanted(tuple(Path(one) for one in images), **DEFAULT), source.listing)  # type: ignore[arg-type]


def answer_here(given: str | Path, out: Path, kind: str = "parquet", size: int = 9) -> tuple[Source, Session]:
    """Answer for a source into a folder, as workers do."""
    source = open_source([given])
    session = session_of(source)
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
