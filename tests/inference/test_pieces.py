"""Pieces side by side: rows to the last digit, order, failures, Ctrl-C, and what is held."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import nsfrc
from nsfrc.data import figure_folder
from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import Item, folder
from nsfrc.inference.images import quietly
from nsfrc.inference.look_ahead import look
from nsfrc.inference.pieces import AHEAD, NAME
from nsfrc.inference.predictor import Asked, Predictor
from nsfrc.inference.rows import Row
from nsfrc.inference.stream import Reading, reading_with, stream
from nsfrc.perception.base import Perception
from nsfrc.pipelines import Pipeline, pipeline
from tests.inference.support import ONE, install, labelled, save
from tests.inference.test_stream import Counting

FIGURES = 75  # two pieces and a part of one
BROKEN = (3, 40)  # one in each of two pieces


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Figures of which two are damaged and one has more objects than the program has room for."""
    root = tmp_path_factory.mktemp("figures")
    paths = list(figure_folder.write("twopairs", root / "d", FIGURES - 1, 5))
    crowded = next(iter(figure_folder.write("nine_circles", root / "other", 1, 5)))
    crowded.rename(root / "d" / "zzz.png")
    for number in BROKEN:
        paths[number].write_bytes(paths[number].read_bytes()[:600])
    return root / "d"


@pytest.fixture(scope="module")
def yolo() -> Pipeline:
    return pipeline("twopairs")


def said(row: Row) -> tuple[object, ...]:
    objects = None if row.objects is None else row.objects.tobytes()
    answers = {name: (one.label, one.answer, one.reason) for name, one in row.answers.items()}
    return row.file, answers, row.scores, row.error, objects, row.doubts, row.further, row.animated


def rows_of(predictor: Predictor, items: list[Item], reading: Reading) -> list[Row]:
    with quietly():
        return [row for batch in stream(predictor, items, reading) for row in batch]


@pytest.mark.parametrize("onnx", [True, False], ids=["onnx", "torch"])
def test_rows_are_the_same_to_the_last_digit_with_any_number_of_threads(
    onnx: bool, figures: Path, yolo: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not onnx:
        monkeypatch.setattr(yolo.perception, "onnx_allowed", False)
    elif not yolo.perception.onnx_allowed:
        pytest.skip("ONNX Runtime is not installed")
    predictor = Predictor(yolo, Asked(reasons=True))
    items = list(folder(figures))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        first = rows_of(predictor, items, Reading(decoders=0))
        assert sum(row.error is not None for row in first) == len(BROKEN) and first[-1].further > 0
        assert len({row.scores for row in first}) > 10
        for threads, batch_size in ((2, 16), (3, 7)):
            found = rows_of(predictor, items, reading_with(threads, batch_size))
            assert [said(row) for row in found] == [said(row) for row in first]
    finally:
        torch.set_num_threads(before)


class Side(Counting):
    """It says of the images of a call, beside its result, what only that call can know, and takes its time."""

    side_by_side = True
    at_once = most = 0

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        cls = type(self)
        cls.at_once += 1
        cls.most = max(cls.most, cls.at_once)
        self.further = (images[:, 0, 0, 0] * 255).round().long()
        time.sleep(0.02)  # lets another thread come between
        cls.at_once -= 1
        return super().forward(images)


@pytest.fixture
def side(tmp_path: Path) -> Predictor:
    (tmp_path / "rules.pl").write_text(ONE)
    Side.at_once = Side.most = 0
    return Predictor(pipeline(tmp_path / "rules.pl", Side(2)))


def numbered(root: Path, count: int) -> list[Item]:
    for i in range(count):
        image = np.random.default_rng(i).integers(0, 256, (16, 16, 3), dtype=np.uint8)
        image[0, 0, 0] = i
        save(root / f"{i:03}.png", image)
    return list(folder(root))


def test_pieces_overlap_in_order_and_each_has_what_belongs_to_it(side: Predictor, tmp_path: Path) -> None:
    items = numbered(tmp_path / "d", 38)
    found = rows_of(side, items, Reading(threads=3))
    assert [row.file for row in found] == [item.name for item in items]
    assert [row.further for row in found] == list(range(38))
    assert Side.most > 1
    assert [said(row) for row in rows_of(side, items, Reading(decoders=0))] == [said(row) for row in found]


def test_one_piece_alone_has_all_threads(side: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsfrc.inference.stream.side_by_side", None)
    assert len(rows_of(side, numbered(tmp_path / "d", 4), reading_with(3, 16))) == 4 and Side.most == 1


def threads_of_pieces() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(NAME)]


def test_torch_has_the_threads_it_had_and_one_in_each_piece(side: Predictor, tmp_path: Path) -> None:
    seen: list[int] = []
    original = side.pipe.facts.forward
    side.pipe.facts.forward = lambda *given: seen.append(torch.get_num_threads()) or original(*given)  # type: ignore
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        rows_of(side, numbered(tmp_path / "d", 12), Reading(threads=2))
        later: list[int] = []
        thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert set(seen) == {1} and torch.get_num_threads() == 2 and later == [2]
    finally:
        torch.set_num_threads(before)


def test_no_more_pieces_are_taken_than_are_at_work(side: Predictor, tmp_path: Path) -> None:
    (item,) = numbered(tmp_path / "d", 1)
    taken = 0

    def endless() -> Iterator[Item]:
        nonlocal taken
        while True:
            taken += 1
            yield Item(item.path, f"{taken}.png")

    batches = stream(side, endless(), Reading(threads=2))
    for done in range(1, 8):
        assert len(next(batches)) == 4
        assert taken <= 4 * (done + 2 * AHEAD)
    batches.close()
    assert not threads_of_pieces()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no such luck")])
def test_what_a_piece_raises_comes_in_its_turn(side: Predictor, tmp_path: Path, error: BaseException) -> None:
    items = numbered(tmp_path / "d", 38)
    decode, done = side.pipe.perception.forward, []

    def failing(images: torch.Tensor) -> torch.Tensor:
        if bool((images[:, 0, 0, 0] * 255).round().eq(17).any()):
            raise error
        return decode(images)

    side.pipe.perception.forward = failing  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else NsfrcError):
        for batch in stream(side, items, Reading(threads=3)):
            done += [row.file for row in batch]
    assert done == [item.name for item in items[:16]]
    assert not threads_of_pieces()


def test_ctrl_c_while_waiting_ends_the_threads(side: Predictor, tmp_path: Path) -> None:
    batches = stream(side, numbered(tmp_path / "d", 38), Reading(threads=2))
    next(batches)
    with pytest.raises(KeyboardInterrupt):
        batches.throw(KeyboardInterrupt)
    assert not threads_of_pieces()


def test_what_is_the_users_own_runs_in_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rules.pl").write_text(ONE)
    install(tmp_path, monkeypatch)
    own = Predictor(pipeline(tmp_path / "rules.pl", "readable:Readable", trust=True))
    assert not own.side_by_side and not Perception.side_by_side
    assert len(rows_of(own, list(folder(labelled(tmp_path / "d"))), Reading(threads=2))) == 6


def test_a_predicate_of_the_users_own_runs_in_one_thread(tmp_path: Path, side: Predictor) -> None:
    assert side.side_by_side

    @nsfrc.neural_predicate("bright_in_pieces")
    def bright(a):  # type: ignore[no-untyped-def]
        return a["objectness"]

    text = ONE.replace("kp(X) :- in(O, X)", ":- neural(bright_in_pieces(object)).\nkp(X) :- bright_in_pieces(O)")
    (tmp_path / "own.pl").write_text(text.replace("color(O, red)", "in(O, X)"))
    assert not Predictor(pipeline(tmp_path / "own.pl", Side(2))).side_by_side


def test_looking_ahead_in_several_threads(side: Predictor, tmp_path: Path) -> None:
    items = numbered(tmp_path / "d", 22)
    (tmp_path / "d" / "005.png").write_bytes(b"nothing")
    one, several = (look(side.pipe.perception, items, "cpu", threads=threads) for threads in (1, 3))
    assert set(one) == set(several) == {item.name for item in items} and one["005.png"].error is not None
    for name, known in one.items():
        other = several[name]
        assert (known.error, known.further, known.doubts) == (other.error, other.further, other.doubts)
        assert known.vectors(2).tobytes() == other.vectors(2).tobytes()
