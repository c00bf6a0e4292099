"""`nsfrc.ray.map_batches`: a program's answers as columns of a Ray Data pipeline of one's own."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import Item, Listing
from nsfrc.inference.predictor import Predictor
from nsfrc.inference.session import Wanted, open_session
from nsfrc.inference.stream import computing
from nsfrc.pipelines import Pipeline
from nsfrc.program import Program
from nsfrc.ray.extra import need_arrow, need_ray
from nsfrc.ray.parquet_source import IMAGES, NAMES
from nsfrc.ray.places import EMPTY
from nsfrc.ray.sources import refuse_auto
from nsfrc.ray.tables import Form
from nsfrc.ray.worker import Duty, folders_of, restored

if TYPE_CHECKING:
    from ray.data import Dataset

BATCH = 64  # a multiple of 32, which detectors take at a time: smaller ones are filled up


def map_batches(
    dataset: Dataset, program: str | Path | Program | Pipeline, *, image: str | None = None, name: str | None = None,
    prefix: str = "", keep_image: bool = False, explain: bool = False, workers: int | None = None,
    cpus_per_worker: int = 1, gpus_per_worker: float = 0.0, batch_size: int = BATCH, perception: str | None = None,
    weights: str | Path | None = None, concepts: str | Path | None = None, plugins: tuple[str, ...] = (),
    threshold: float | None = None, steps: int | None = None, trust: bool = False, conf: float | None = None,
) -> Dataset:
    """A dataset with a program's scores and answers beside its own columns, one row for each of its rows.

    image: the column of images, as bytes, paths, arrays [H, W, 3] or {"bytes": …}; found by its name where None. name:
    the column that says what a row is called in messages. prefix: before the names of the new columns: score (or the
    targets), answer, error, left_out, objects, program, perception, and with `explain` reason. keep_image: whether the
    images stay in. workers: None lets Ray choose between 1 and all. The rest is as in `nsfrc.infer`. Nothing runs
    before rows are asked for; a picture that cannot be read is a row with an error.
    """
    need_ray()
    need_arrow()
    import ray.data

    if not isinstance(dataset, ray.data.Dataset):
        raise NsfrcError(f"map_batches takes a ray.data.Dataset, not a {type(dataset).__name__}: "
                         f"ray.data.read_binary_files(...) makes one of files")
    if not isinstance(program, Program | Pipeline):
        refuse_auto(program, perception, None, ())
    wanted = Wanted(
        (), program, perception, None if weights is None else Path(weights),
        None if concepts is None else Path(concepts), tuple(map(str, plugins)), threshold, steps, "cpu", trust,
        conf=conf,
    )
    session = open_session(wanted, Listing(Path(), {}))
    form = Form("parquet", session.questions, session.made_with["program"], session.made_with["perception"],
                tuple(session.pipe.perception.dimensions), label=False)
    predictor = Predictor(session.pipe, session.asked(explain, False))
    duty = Duty(computing(cpus_per_worker), 0, "cuda" if gpus_per_worker else "cpu", batch_size, folders_of(predictor))
    _refuse_all_cpus(workers, cpus_per_worker)
    pool = ray.data.ActorPoolStrategy(size=workers) if workers else ray.data.ActorPoolStrategy(min_size=1)
    content = pickle.dumps(predictor)
    card: dict[str, Any] = {"num_gpus": gpus_per_worker} if gpus_per_worker else {}
    return dataset.map_batches(
        Adder, fn_constructor_args=(content, duty, form, Names(image, name, prefix, keep_image, explain)),
        batch_size=batch_size, batch_format="pyarrow", compute=pool, num_cpus=cpus_per_worker,
        **card,
    )


def _refuse_all_cpus(workers: int | None, cpus: int) -> None:
    """Raise where workers would leave no CPU to what reads for them: Ray would wait forever and say nothing."""
    ray = need_ray()
    if workers is None or not ray.is_initialized():
        return
    there = ray.cluster_resources().get("CPU", 0)
    if workers * cpus >= there:
        raise NsfrcError(f"{workers} workers with {cpus} CPU each would take all {there:g} CPUs that Ray has, and "
                         f"leave none to read with: workers={max(1, int((there - 1) // cpus))}, or more CPUs")


class Names:
    """What columns are called; see `map_batches`."""

    def __init__(self, image: str | None, name: str | None, prefix: str, keep_image: bool, explain: bool) -> None:
        self.image, self.name, self.prefix, self.keep_image, self.explain = image, name, prefix, keep_image, explain

    def image_in(self, columns: list[str]) -> str:
        found = self.image or next((one for one in (*IMAGES, "path") if one in columns), None)
        if found is None or found not in columns:
            raise NsfrcError(f"the dataset has no column {self.image or 'of images'}: there are {', '.join(columns)}; "
                             f"map_batches(..., image=NAME) names it")
        return found

    def name_in(self, columns: list[str], image: str) -> str | None:
        if self.name is not None and self.name not in columns:
            raise NsfrcError(f"the dataset has no column {self.name}: there are {', '.join(columns)}")
        return self.name or next((one for one in NAMES if one in columns and one != image), None)


class Adder:
    """Adds answers to batches; Ray keeps one in every worker."""

    def __init__(self, predictor: bytes, duty: Duty, form: Form, names: Names) -> None:
        self.predictor, self.form, self.names = restored(predictor, duty), form, names

    def __call__(self, batch: Any) -> Any:
        """An Arrow table → the same with the columns of the answers."""
        from nsfrc.inference.images import quietly

        names = self.names
        image = names.image_in(batch.column_names)
        called = names.name_in(batch.column_names, image)
        with quietly():
            decoded = [self.predictor.decode(item) for item in _items(batch, image, called)]
            found = self.form.table(self.predictor(decoded))
        kept = batch if names.keep_image else batch.drop_columns([image])
        for column in found.column_names:
            if column == "file" or (column.startswith("reason") and not names.explain):
                continue
            if names.prefix + column in kept.column_names:
                raise NsfrcError(f"the dataset has a column {names.prefix + column} already: map_batches(..., "
                                 f'prefix="nsfrc_") names the new ones otherwise')
            kept = kept.append_column(names.prefix + column, found.column(column))
        return kept


def _items(batch: Any, image: str, called: str | None) -> list[Item]:
    """The images of a batch: bytes, paths, arrays, or Hugging Face's struct of bytes and path."""
    from nsfrc.inference.folders import printable

    column = batch.column(image)
    tensors = hasattr(column.type, "to_pandas_dtype") and "Tensor" in type(column.type).__name__
    cells = list(column.combine_chunks().to_numpy(zero_copy_only=False)) if tensors else column.to_pylist()
    names = batch.column(called).to_pylist() if called is not None else [None] * len(cells)
    items = []
    for number, (cell, name) in enumerate(zip(cells, names, strict=True), 1):
        text = printable(str(name)) if name is not None else f"row {number} of a batch"
        data = cell.get("bytes") or cell.get("path") if isinstance(cell, dict) else cell
        empty = data is None or (isinstance(data, bytes | str) and not data)
        items.append(Item(Path(data) if isinstance(data, str) else Path(text), text, error=EMPTY if empty else None,
                          image=None if isinstance(data, str) else data))
    return items
