"""`nsfrc.infer`: a folder, files or images in memory in, `Results` out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import torch

from nsfrc.contexts import torch_threads
from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import Listing
from nsfrc.inference.given import gather
from nsfrc.inference.images import quietly
from nsfrc.inference.known import listing_of
from nsfrc.inference.measures import Measured, Measures
from nsfrc.inference.notes import Notes
from nsfrc.inference.predictor import Predictor
from nsfrc.inference.row_file import row_file
from nsfrc.inference.rows import Row, heads, score_heads
from nsfrc.inference.session import Session, Wanted, open_session
from nsfrc.inference.sinks import Closing, Opening, ReportFile, Sink, Tally
from nsfrc.inference.stream import Reading, computing, reading_with, stream
from nsfrc.models.detections import detections as as_detections
from nsfrc.pipelines import Pipeline
from nsfrc.program import Program

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]


def infer(
    images: Any,
    program: str | Path | Program | Pipeline,
    *,
    perception: str | None = None,
    weights: str | Path | None = None,
    concepts: str | Path | None = None,
    plugins: Sequence[str | Path] = (),
    threshold: float | Mapping[str, float] | None = None,
    labels: str | Path | None = None,
    steps: int | None = None,
    device: str = "auto",
    batch_size: int = 16,
    threads: int | None = None,
    explain: bool = True,
    trust: bool = False,
    conf: float | None = None,
    detections: Any = None,
) -> Results:
    """Answer a program's questions for images, as `nsfrc infer` does; nothing is read before the results are.

    images: the path of a folder or an image, an image in memory (bytes, PIL, an array [H, W, 3]), or a list of these.
    program: a file (.nsfrc, .pl), a shipped name, a compiled program, or a pipeline. perception, weights, concepts,
    plugins, labels, steps: as on the command line. threshold: for all questions, or {"kp1": 0.4} by their names.
    device: "auto" is cuda where there is one. threads: for torch and for reading; by default as many as torch has.
    explain: whether rows have the reason and a thumbnail, which a report needs. trust: whether plug-ins and the module
    of "module:Class" may run, and a .pt file be loaded. conf: the least confidence of an object. detections: what is in
    the images, as `nsfrc.detections` takes it; images are then only shown, and may be None. Where the program says
    slots(auto), perception looks at all images at once.
    """
    if isinstance(program, Pipeline) and any(one is not None for one in (perception, weights, concepts, steps)):
        raise NsfrcError("a pipeline has its perception, weights, concepts and steps already: give these to "
                         "nsfrc.pipeline, or give nsfrc.infer the program")
    named = dict(threshold) if isinstance(threshold, Mapping) else {}
    general = None if isinstance(threshold, Mapping) else threshold
    for value in (*named.values(), *([] if general is None else [general])):
        if not isinstance(value, Real) or not 0 <= value <= 1:
            raise NsfrcError(f"threshold is a number from 0 to 1, not {value!r}")
    if batch_size < 1 or (threads is not None and threads < 1):
        raise NsfrcError("batch_size and threads must be whole numbers, at least 1")
    given = None if detections is None else as_detections(detections)
    if images is None and given is None:
        raise NsfrcError("there are no images: give some, or detections=...")
    listing = listing_of(given) if images is None and given is not None else gather(images)
    if not len(listing):
        raise NsfrcError(no_images(images, listing))
    wanted = Wanted(
        _paths(images), program, perception, None if weights is None else Path(weights),
        None if concepts is None else Path(concepts), tuple(map(str, plugins)), general, steps, device, trust, named,
        None if labels is None else Path(labels), conf, given, threads or torch.get_num_threads(),
    )
    return Results(open_session(wanted, listing), listing, batch_size, threads, explain)


def no_images(given: Any, listing: Listing) -> str:
    """What to say of folders that hold no images."""
    places = ", ".join(map(str, _paths(given))) or "the list"
    others = "".join(f"; {text}" for text in listing.left_out())
    return f"there are no images in {places} (.png, .jpg, .gif, .bmp, .tif, .webp and others){others}"


def _paths(images: Any) -> tuple[Path, ...]:
    given = images if isinstance(images, list | tuple) else [images]
    return tuple(Path(one) for one in given if isinstance(one, str | Path))


class Results(Sequence[Row]):
    """The rows of images, each made when it is first asked for, and kept.

    A loop gets rows as they come; an index, `measures`, `to_pandas`, `report` and `write` wait for all of them.
    settings: what is used and where it came from, in words.
    """

    def __init__(
        self, session: Session, listing: Listing, batch_size: int = 16, threads: int | None = None, explain: bool = True
    ) -> None:
        self.session, self.listing, self.explain, self.threads = session, listing, explain, threads
        self.predictor = Predictor(session.pipe, session.asked(explain, explain), session.known)
        self._reading = Reading(batch_size, threads=torch.get_num_threads()) if threads is None else \
            reading_with(threads, batch_size)
        self._kept: list[Row] = []
        self._batches: Iterator[list[Row]] | None = None

    @property
    def settings(self) -> dict[str, str]:
        return self.session.settings

    @property
    def targets(self) -> list[str]:
        return self.session.targets

    def __len__(self) -> int:
        return len(self.listing)

    def __iter__(self) -> Iterator[Row]:
        place = 0
        while place < len(self._kept) or self._more():
            yield self._kept[place]
            place += 1

    @overload
    def __getitem__(self, which: int) -> Row: ...

    @overload
    def __getitem__(self, which: slice) -> list[Row]: ...

    def __getitem__(self, which: int | slice) -> Row | list[Row]:
        return self.rows[which]

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        while self._more():
            pass
        return self._kept

    def _more(self) -> bool:
        """Make the rows of another batch; False where there are no more images."""
        if len(self._kept) >= len(self):
            return False
        # After Ctrl-C or an error it goes on with the first image that has no row.
        batches = self._batches or stream(self.predictor, islice(self.listing, len(self._kept), None), self._reading)
        self._batches = None
        with ExitStack() as stack:
            if self.threads is not None:
                stack.enter_context(torch_threads(computing(self.threads)))
            stack.enter_context(quietly())
            self._kept += next(batches)
        self._batches = batches
        return True

    @property
    def measures(self) -> Measures:
        """Counts of answers and, where labels are known, accuracy, confusion matrix and calibration.

        Those of the only question; where there are several, `by_question` has those of each.
        """
        return self._closing().measures.only

    @property
    def by_question(self) -> dict[str, Measures]:
        """The measures of every question, by its name: the target, or "classes"."""
        return self._closing().measures.by_question

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before one trusts the answers."""
        return (*self.session.remarks, *self._closing().remarks)

    def _closing(self) -> Closing:
        tally, notes = Tally(Measured(self.session.questions)), Notes(self.session)
        for sink in (tally, notes):
            sink.rows(self.rows)
        return Closing(tally.measures, notes.remarks(), tuple(tally.failed))

    def report(self, path: str | Path) -> Path:
        """Write the page with every image, its objects, its answer and the reason."""
        if not self.explain:
            raise NsfrcError("these results have no reasons, which a report shows: nsfrc.infer(..., explain=True)")
        self._give(ReportFile(Path(path)))
        return Path(path)

    def write(self, path: str | Path) -> Path:
        """Write the rows, as .csv or .jsonl."""
        self._give(row_file(Path(path), self.session.questions, self.session.made_with))
        return Path(path)

    def _give(self, sink: Sink) -> None:
        try:
            sink.start(Opening(self.session, len(self)))
            sink.rows(self.rows)
            sink.end(self._closing())
        finally:
            sink.close()

    def to_pandas(self) -> pandas.DataFrame:
        """A table: file, label, a column a target (or score), answer, right, error and reason.

        With several questions label, answer, right and reason are columns for each, as in `answer kp1(img)`.
        """
        try:
            import pandas
        except ImportError:
            raise NsfrcError("to_pandas needs pandas, which is not installed: pip install pandas; without it, "
                             "results.write(\"rows.csv\") writes the same table") from None
        return pandas.DataFrame([self._cells(row) for row in self.rows])

    def _cells(self, row: Row) -> dict[str, Any]:
        asked = self.session.questions
        names = score_heads(asked)

        def each(what: str) -> dict[str, Any]:
            values = (getattr(row.answers[one.name], what) for one in asked)
            return dict(zip(heads(what, asked), values, strict=True))

        scores = dict(zip(names, row.scores or [None] * len(names), strict=True))
        return {"file": row.file, **each("label"), **scores, **each("answer"), **each("right"), "error": row.error,
                **each("reason")}

    def __repr__(self) -> str:
        done = len(self._kept)
        return f"Results({self.session.pipe.program.name}, {len(self)} images, {done} answered so far)"
