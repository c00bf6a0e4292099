"""Model files as perception: headers, heads, what is refused; see benchmarks/agreement.py for ultralytics beside it."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import nsfrc
from nsfrc.benchmarks.tiny_detector import NAMES, write_tiny
from nsfrc.errors import NsfrcError
from nsfrc.inference.images import read, to_tensor
from nsfrc.models.model_file import read_header
from nsfrc.models.names import atom, class_names, split_values
from nsfrc.perception import create
from nsfrc.perception.detector import open_detector
from nsfrc.perception.heads import choose, kept
from nsfrc.perception.vectors import Layout, Wishes

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

PROGRAM = """
:- type(image, [img]).
:- type(object, slots(auto)).
:- type(class, from_perception).
:- neural(in(object, image)).
:- neural(class(object, class)).
:- perception('tiny.onnx').
:- target(warm(img)).
warm(X) :- in(A, X), class(A, 'red square'), in(B, X), class(B, blue_square).
"""


def paint(path: Path, squares: dict[tuple[int, int], str], size: tuple[int, int] = (64, 64)) -> Path:
    """A white picture with squares of 16 pixels, by their cells."""
    picture = Image.new("RGB", size, "white")
    for (column, row), colour in squares.items():
        picture.paste(Image.new("RGB", (16, 16), colour), (16 * column, 16 * row))
    picture.save(path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny(tmp_path / "tiny.onnx")
    (tmp_path / "rules.pl").write_text(PROGRAM)
    paint(tmp_path / "a.png", {(0, 0): "red", (3, 2): "blue"})
    return tmp_path


@pytest.mark.parametrize("layout", ["v8", "v5", "end-to-end", "rt-detr"])
def test_every_head_finds_the_same(tmp_path: Path, layout: str) -> None:
    model = open_detector(write_tiny(tmp_path / "m.onnx", layout=layout), 10, Wishes())
    assert model.head.name == layout
    picture = read(paint(tmp_path / "a.png", {(0, 0): "red", (3, 2): "blue"}), model.size, model.fit)
    rows = model.detections(to_tensor([picture.pixels])[0].numpy(), picture.frame)
    found = {int(row[5]): row[:5].round(4).tolist() for row in rows}
    assert found == {0: [0, 0, 0.25, 0.25, 1.0], 2: [0.75, 0.5, 1.0, 0.75, 1.0]}


def test_boxes_are_fractions_of_the_picture_not_of_the_frame(tmp_path: Path) -> None:
    model = open_detector(write_tiny(tmp_path / "m.onnx"), 10, Wishes())
    picture = read(paint(tmp_path / "wide.png", {(3, 1): "red"}, (64, 32)), model.size, model.fit)
    assert picture.frame == (0, 0.25, 1, 0.75)
    assert picture.pixels[0, 0].tolist() == [114] * 3
    rows = model.detections(to_tensor([picture.pixels])[0].numpy(), picture.frame)
    assert rows[:, :4].tolist() == [[0.75, 0.5, 1.0, 1.0]]


def test_a_pipeline_by_file_with_names_and_reasons(folder: Path) -> None:
    pipe = nsfrc.pipeline(folder / "rules.pl")
    assert pipe.perception.dimensions == (
        "x1", "y1", "x2", "y2", "red_square", "green_square", "blue_square", "objectness", "confidence")
    found = pipe.predict(str(folder / "a.png"))
    assert found.scores.tolist() == [[1.0]]
    assert "class(obj1,red_square) 1.00" in found.why()
    digest = read_header(folder / "tiny.onnx").file.digest
    assert pipe.perception.identity == f"tiny.onnx:{digest[:16]}"
    again = pickle.loads(pickle.dumps(pipe.perception))
    images = pipe.read(folder / "a.png")
    assert torch.equal(again(images), pipe.perception(images))


def test_names_and_sizes_from_elsewhere(folder: Path) -> None:
    write_tiny(folder / "bare.onnx", metadata={})
    with pytest.raises(NsfrcError, match="does not say what its classes are called"):
        create(str(folder / "bare.onnx"), 4)
    wishes = Wishes(names=("r", "g", "b"))
    assert create(str(folder / "bare.onnx"), 4, wishes=wishes).dimensions[4:7] == ("r", "g", "b")
    (folder / "data.yaml").write_text("names:\n  0: rot\n  1: grün\n  2: blau\n")
    assert create(str(folder / "bare.onnx"), 4).dimensions[4:7] == ("rot", "grün", "blau")
    with pytest.raises(NsfrcError, match="takes images of 64 × 64 alone"):
        create(str(folder / "bare.onnx"), 4, wishes=Wishes(size=(96, 96)))


def test_wrong_class_names_are_said_with_what_came_out(folder: Path) -> None:
    with pytest.raises(NsfrcError, match=r"puts out \[1, 7, 16\] for one image of 64 × 64; with 2 .*\[1, 6, N\]"):
        create(str(folder / "tiny.onnx"), 4, wishes=Wishes(names=("one", "two")))


@pytest.mark.parametrize(("shapes", "classes", "told", "name"), [
    ([(1, 84, 8400)], 80, {}, "v8"), ([(1, 25200, 85)], 80, {}, "v5"), ([(1, 300, 6)], 80, {}, "end-to-end"),
    ([(1, 300, 84)], 80, {}, "rt-detr"), ([(1, 300, 6)], 2, {"head": "RTDETRDecoder"}, "rt-detr"),
    ([(1, 25200, 6)], 1, {}, "v5"), ([(1, 300, 6)], 1, {}, "end-to-end"),
    ([(1, 300, 6)], 2, {"end2end": True}, "end-to-end"), ([(1, 5, 8400)], 1, {}, "v8"),
])
def test_which_head(shapes: list[tuple[int, ...]], classes: int, told: dict[str, object], name: str) -> None:
    assert choose(shapes, (640, 640), classes, told, "m").name == name


@pytest.mark.parametrize("shapes", [[(1, 1000)], [(1, 100, 4), (1, 100)], [(2, 84, 8400)], [(1, 3, 80, 80, 85)]])
def test_other_outputs_are_refused(shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises(NsfrcError, match=r"write a class for it"):
        choose(shapes, (640, 640), 80, {}, "m.onnx")
    with pytest.raises(NsfrcError, match="task 'segment'"):
        choose([(1, 84, 8400)], (640, 640), 80, {"task": "segment"}, "m.onnx")


def test_a_model_that_names_other_files_is_refused(tmp_path: Path) -> None:
    write_tiny(tmp_path / "m.onnx")
    model = onnx.load(str(tmp_path / "m.onnx"))
    onnx.save(model, str(tmp_path / "two.onnx"), save_as_external_data=True, location="weights.bin", size_threshold=0)
    with pytest.raises(NsfrcError, match=r"keeps weights in another file \('weights.bin'\)"):
        create(str(tmp_path / "two.onnx"), 4)


@pytest.mark.parametrize(("domain", "operator"), [("com.example", "Evil"), ("com.microsoft", "EPContext")])
def test_operators_of_others_are_refused_even_deep_inside(tmp_path: Path, domain: str, operator: str) -> None:
    write_tiny(tmp_path / "m.onnx")
    model = onnx.load(str(tmp_path / "m.onnx"))
    node = onnx.helper.make_node(operator, [], ["x"], domain=domain)
    inner = onnx.helper.make_graph([node], "inner", [], [onnx.helper.make_tensor_value_info("x", 1, [1])])
    model.graph.node.append(onnx.helper.make_node("If", ["c"], ["x"], then_branch=inner, else_branch=inner))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(NsfrcError, match=f"operators that are not standard .*{operator}"):
        create(str(tmp_path / "m.onnx"), 4)


def test_files_that_are_no_models(tmp_path: Path) -> None:
    sound = write_tiny(tmp_path / "m.onnx").read_bytes()
    for data in (b"", b"\0" * 50, b"PK\3\4 and so on", sound[: len(sound) // 2], struct.pack("<Q", 7) * 9):
        (tmp_path / "x.onnx").write_bytes(data)
        with pytest.raises(NsfrcError, match=r"x.onnx .*(is not an ONNX model|cannot be run)"):
            create(str(tmp_path / "x.onnx"), 4)
    with pytest.raises(NsfrcError, match="there is no model file"):
        create(str(tmp_path / "missing.onnx"), 4)


def test_a_pickle_is_not_loaded_without_trust(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
            return Path.touch, (tmp_path / "was-here",)

    (tmp_path / "best.pt").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(NsfrcError, match=r"is a pickle.*yolo export model=.*best.pt format=onnx.*--trust"):
        create(str(tmp_path / "best.pt"), 4)
    assert not (tmp_path / "was-here").exists()


def test_names_as_constants() -> None:
    assert [atom(name) for name in ("traffic light", "FACE_FEMALE", "T-shirt", "7", "3d printer", "Hund")] == [
        "traffic_light", "face_female", "t_shirt", "7", "c3d_printer", "hund"]
    same = class_names(["a b", "a_b"], "x")
    assert same.atoms == ("a b", "a_b")  # which could not be told apart otherwise
    with pytest.raises(NsfrcError, match="two classes are called 'a'"):
        class_names(["a", "a"], "x")


def test_classes_that_are_pairs_of_attributes() -> None:
    attributes = (("color", ("red", "dark red")), ("shape", ("square", "circle")))
    assert split_values(["red square", "Dark_Red-circle"], attributes) == [
        {"color": "red", "shape": "square"}, {"color": "dark red", "shape": "circle"}]
    with pytest.raises(NsfrcError, match="no class of the detector has the color dark red"):
        split_values(["red square", "red circle"], attributes)
    with pytest.raises(NsfrcError, match="'cup' has no value of color or shape"):
        split_values(["cup"], attributes)


def test_a_class_may_be_called_like_a_number(tmp_path: Path) -> None:
    layout = Layout(class_names(["x", "area", "cup"], "letters"))
    assert layout.dimensions == ("x1", "y1", "x2", "y2", "class:x", "class:area", "cup", "objectness")
    program = nsfrc.compile(source="""
        :- type(image, [img]). :- type(object, slots(1)). :- type(class, [x, area, cup]).
        :- neural(in(object, image)). :- neural(class(object, class)). :- target(kp(img)).
        kp(X) :- in(O, X), class(O, x), x(O) < 0.2.""")
    vectors = torch.from_numpy(layout.vectors(np.array([[0.0, 0.0, 0.1, 0.1, 1.0, 0]])))[None]
    V0 = nsfrc.FactsConverter(program, layout.dimensions)(vectors)
    assert float(program.reasoner()(V0).detach()[0, program.index("kp(img)")]) > 0.99


def test_attributes_of_a_detector(folder: Path) -> None:
    (folder / "pairs.pl").write_text("""
        :- type(image, [img]). :- type(object, slots(auto)).
        :- attributes([color-[red, green, blue], shape-[square]]).
        :- neural(in(object, image)). :- neural(color(object, color)). :- neural(shape(object, shape)).
        :- perception('tiny.onnx'). :- target(kp(img)).
        kp(X) :- in(O, X), color(O, red), shape(O, square).""")
    assert nsfrc.pipeline(folder / "pairs.pl").predict(str(folder / "a.png")).scores.tolist() == [[1.0]]


def test_presence(folder: Path) -> None:
    half = Image.new("RGB", (64, 64), "white")
    half.paste(Image.new("RGB", (16, 16), "red"), (0, 0))
    half.paste(Image.new("RGB", (16, 6), "white"), (0, 0))  # a square that is seen with .625
    half.save(folder / "half.png")
    rule = PROGRAM.replace(", in(B, X), class(B, blue_square)", "")
    scores = {}
    for name, more in {"crisp": "", "soft": ":- presence(soft).", "strict": ":- presence(crisp(0.7))."}.items():
        (folder / f"{name}.pl").write_text(rule + more)
        scores[name] = float(nsfrc.pipeline(folder / f"{name}.pl").predict(str(folder / "half.png")).scores)
    assert scores == {"crisp": 1.0, "soft": pytest.approx(0.25, abs=0.01), "strict": 0.0}
    assert float(nsfrc.pipeline(folder / "crisp.pl", conf=0.9).predict(str(folder / "half.png")).scores) == 0


def test_suppression_keeps_the_best_of_each_class() -> None:
    rows = np.array([[0, 0, 10, 10, 0.9, 0], [0, 0, 10, 9, 0.8, 0], [0, 0, 10, 10, 0.7, 1], [20, 0, 30, 10, 0.6, 0]])
    assert kept(rows) == [0, 2, 3]


def test_names_of_the_shipped_detector_stay(tmp_path: Path) -> None:
    assert NAMES[0] == "red square"
    with pytest.raises(NsfrcError, match="leave out --weights"):
        create(str(write_tiny(tmp_path / "m.onnx")), 4, weights=tmp_path / "w.safetensors")
