"""leftside, rightside and front: what they compute, their gradients, and their learning from positions and scenes."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from nsfrc.cli.train_concept import command
from nsfrc.data.clevr.placing import MARGIN
from nsfrc.data.clevr.scenes import DIMENSIONS, Scene, Thing, to_json, truth
from nsfrc.errors import NsfrcError
from nsfrc.perception.camera import JITTER, PLACE, WIDTH, Camera
from nsfrc.training.concepts import labelled, learn
from nsfrc.training.concepts_clevr import MIDDLE, NOISE, WHERE, from_scene, seen
from nsfrc.valuation import FactsConverter
from nsfrc.valuation.concepts import shipped
from tests.valuation import support
from tests.valuation.support import compiled, program

RULES = """
:- neural(leftside(object)). :- neural(rightside(object)). :- neural(front(object, object)).
:- target(kp(img)).
kp(X) :- in(O, X), leftside(O), rightside(P), front(O, P).
"""


def scenes(count: int, things: int, seed: int) -> list[Scene]:
    """Scenes of small spheres anywhere, each from a camera of its own."""
    rng = np.random.default_rng(seed)
    return [
        Scene(
            tuple(Thing("sphere", "small", "rubber", "red", (x, y, 0.35)) for x, y in rng.uniform(-3, 3, (things, 2))),
            Camera(tuple(np.array(PLACE) + rng.uniform(-JITTER, JITTER, 3))),
        )
        for _ in range(count)
    ]


def random_vectors(batch: int, objects: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(batch, objects, len(DIMENSIONS), generator=torch.Generator().manual_seed(seed))


def by_hand(name: str, *rows: np.ndarray) -> float:
    """The value of one atom from the rows [19] of its objects, in plain Python."""
    learnt = shipped(name)
    if name == "front":
        total = learnt["b"] + sum(w * x for w, x in zip(learnt["w"], [*rows[0][1:4], *rows[1][1:4]], strict=True))
    else:
        total = learnt["b"] + learnt["w"] * rows[0][1]
    return math.prod(float(r[0]) for r in rows) / (1 + math.exp(-total))


def test_every_atom_has_its_value(tmp_path: Path) -> None:
    rules = program(tmp_path, RULES)
    facts = FactsConverter(rules, DIMENSIONS)
    objects = random_vectors(3, 4)
    objects[2, 1] = 0
    V0 = facts(objects).detach()
    for image, values in zip(objects.double().numpy(), V0, strict=True):
        for i in range(4):
            for name in ("leftside", "rightside"):
                wanted = 0.0 if image[i, 0] == 0 else by_hand(name, image[i])
                assert values[rules.index(f"{name}(obj{i + 1})")].item() == pytest.approx(wanted, abs=1e-5)
            for j in set(range(4)) - {i}:
                wanted = 0.0 if image[i, 0] * image[j, 0] == 0 else by_hand("front", image[i], image[j])
                assert values[rules.index(f"front(obj{i + 1},obj{j + 1})")].item() == pytest.approx(wanted, abs=1e-5)


def test_entries_go_by_name_and_not_by_place(tmp_path: Path) -> None:
    rules = program(tmp_path, RULES)
    objects, order = random_vectors(2, 4), torch.randperm(len(DIMENSIONS), generator=torch.Generator().manual_seed(1))
    turned = FactsConverter(rules, [DIMENSIONS[i] for i in order])(objects[:, :, order])
    assert torch.equal(turned, FactsConverter(rules, DIMENSIONS)(objects))


def test_gradients_are_those_of_finite_differences(tmp_path: Path) -> None:
    facts = FactsConverter(program(tmp_path, RULES), DIMENSIONS).double()
    names = [name for name, _ in facts.named_parameters()]
    assert sorted(p.numel() for p in facts.parameters()) == [1, 1, 1, 1, 1, 6]
    objects = (0.45 + 0.1 * random_vectors(2, 4).double()).requires_grad_()  # where the slopes are
    with torch.no_grad():
        objects[1, 2] = 0

    def V0(objects: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        there = objects.clone()
        there[1, 2] = 0  # stays missing however little it is moved
        return torch.func.functional_call(facts, dict(zip(names, parameters, strict=True)), (there,))

    inputs = [objects, *(p.detach().clone().requires_grad_() for p in facts.parameters())]
    assert torch.autograd.gradcheck(V0, inputs, eps=1e-6, atol=1e-5)
    gradients = torch.autograd.grad(V0(*inputs).sum(), inputs)
    assert all((gradient != 0).any() for gradient in gradients)


def test_missing_objects_make_their_atoms_false_and_spoil_no_gradient() -> None:
    rules = compiled("clevr_hans7")
    facts = FactsConverter(rules, DIMENSIONS)
    objects = random_vectors(2, 10)
    objects[0, 3] = 0
    objects[1] = 0
    objects.requires_grad_()
    V0 = facts(objects)
    V0.sum().backward()
    lost = [rules.index(atom) for atom in ("leftside(obj4)", "rightside(obj4)", "front(obj4,obj1)", "front(obj2,obj4)")]
    assert (V0[0, lost] == 0).all() and V0[0, rules.index("front(obj1,obj2)")] > 0
    assert (V0[1, torch.from_numpy(rules.ground.neural)] == 0).all()
    assert objects.grad is not None and objects.grad.isfinite().all() and (objects.grad[0, 3] == 0).all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in facts.parameters())


def test_results_do_not_depend_on_the_batch() -> None:
    facts = FactsConverter(compiled("clevr_hans7"), DIMENSIONS)
    objects = random_vectors(5, 10)
    alone = torch.cat([facts(objects[i : i + 1]) for i in range(5)])
    torch.testing.assert_close(facts(objects), alone, rtol=2e-6, atol=1e-7)  # vectorised exp rounds its last few so


def test_vectors_without_places_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match=r"front/2.*object vectors have no dimension 'x'; there are x1, y1"):
        FactsConverter(program(tmp_path, RULES), support.DIMENSIONS)
    with pytest.raises(NsfrcError, match="object vectors have no dimension 'z'"):
        FactsConverter(compiled("clevr_hans7"), [d for d in DIMENSIONS if d != "z"])


def test_how_many_objects_they_are_about(tmp_path: Path) -> None:
    rules = ":- neural({}). :- target(kp(img)). kp(X) :- in(O, X), in(P, X), in(Q, X), {}."
    with pytest.raises(NsfrcError, match="leftside is about one object, not 2"):
        FactsConverter(program(tmp_path, rules.format("leftside(object, object)", "leftside(O, P)")), DIMENSIONS)
    with pytest.raises(NsfrcError, match="front is a relation between two objects, not 3"):
        FactsConverter(program(tmp_path, rules.format("front(object, object, object)", "front(O, P, Q)")), DIMENSIONS)


def test_shipped_predicates_say_what_a_camera_sees(tmp_path: Path) -> None:
    rules = program(tmp_path, RULES)
    facts = FactsConverter(rules, DIMENSIONS)
    seen, certain = 0, []
    for scene in scenes(100, 4, seed=5):
        V0 = facts(torch.from_numpy(truth(scene, 4))[None])[0]
        for i, (x, _, depth) in enumerate(scene.pixels):
            if abs(x - WIDTH / 2) < 0.03 * WIDTH:  # nearer to the middle than half a small object is wide
                continue
            left, right = (V0[rules.index(f"{name}(obj{i + 1})")].item() for name in ("leftside", "rightside"))
            assert (left > 0.5, right > 0.5) == (x < WIDTH / 2, x > WIDTH / 2)
            certain.append(max(left, right))
            for j in range(4):
                apart = np.array(scene.things[i].coords) - np.array(scene.things[j].coords)
                ahead = scene.camera.directions["front"] @ apart
                if abs(ahead) > MARGIN:
                    assert (V0[rules.index(f"front(obj{i + 1},obj{j + 1})")].item() > 0.5) == (ahead > 0)
                    assert (depth < scene.pixels[j, 2]) == (ahead > 0)  # all are of one height
                    seen += 1
    assert seen > 500 and len(certain) > 300
    assert np.median(certain) > 0.999 and np.mean(np.array(certain) > 0.98) > 0.95  # three of them are multiplied


@pytest.mark.parametrize("name", WHERE)
def test_made_examples_are_where_they_are_said_to_be(name: str) -> None:
    points, labels = labelled(name, 2000, 3)
    assert points.shape == (2000, WHERE[name].k, 3) and labels.sum() == 1000
    right, front, height = (8 * points - 4).transpose(2, 0, 1)
    blur = 8 * 5 * NOISE
    assert 3.5 < np.hypot(right, front).max() < 3 * math.sqrt(2) + blur
    assert height.min() > 0.35 - blur and height.max() < 0.7 + blur
    if name == "front":
        ahead, least = front[:, 0] - front[:, 1], MARGIN
        assert np.abs(right[:, 0] - right[:, 1]).mean() > 1  # anywhere, from left to right
    else:
        ahead, least = right[:, 0] * (1 if name == "rightside" else -1), MIDDLE
        assert np.abs(front).mean() > 1
    assert ahead[labels].min() > least - blur * math.sqrt(2) and ahead[~labels].max() < blur * math.sqrt(2) - least
    assert ahead[labels].max() > 3 and ahead[~labels].min() < -3
    assert ((ahead > 0) == labels).mean() > 0.98


def test_many_cameras_see_as_one_does() -> None:
    rng = np.random.default_rng(4)
    ground, places = rng.uniform(-3, 3, (20, 2, 2)), np.array(PLACE) + rng.uniform(-JITTER, JITTER, (20, 3))
    for points, place, found in zip(ground, places, seen(ground, places[:, :2]), strict=True):
        camera = Camera(tuple(place))
        ways = [camera.directions[name][:2] for name in ("right", "front")]
        np.testing.assert_allclose(found, points @ np.array(ways).T, atol=1e-12)


def test_examples_of_a_scene_are_labelled_by_its_own_camera() -> None:
    floor = [(2, 2), (-2, -2), (2, -2)]  # on the right, on the left, and in front, in the middle
    scene = Scene(tuple(Thing("cube", "small", "metal", "red", (x, y, 0.35)) for x, y in floor), Camera())
    points, labels = from_scene(WHERE["leftside"], scene)
    assert labels.tolist() == [False, True]  # the third is on neither side
    far = 2 * (PLACE[0] - PLACE[1]) / math.hypot(*PLACE[:2])
    np.testing.assert_allclose(points[:, 0, 0] * 8 - 4, [far, -far])
    np.testing.assert_allclose(points[:, 0, 2] * 8 - 4, 0.35)
    points, labels = from_scene(WHERE["front"], scene)
    np.testing.assert_allclose(points[labels][:, 0, 1] * 8 - 4, far)  # the third is in front of both
    assert len(labels) == 4 and labels.sum() == 2
    turned = Scene(scene.things, Camera((-PLACE[0], -PLACE[1], PLACE[2])))  # seen from the other side
    assert from_scene(WHERE["leftside"], turned)[1].tolist() == [True, False]
    assert from_scene(WHERE["front"], Scene((), Camera()))[0].shape == (0, 2, 3)


def written(folder: Path, made: list[Scene]) -> Path:
    """A scenes file as CLEVR-Hans has them; its images are not needed."""
    folder.mkdir()
    entries = [to_json(scene, "train", i, f"CLEVR_train_{i:06d}.png") for i, scene in enumerate(made)]
    (folder / "CLEVR_HANS_scenes_train.json").write_text(json.dumps({"info": {}, "scenes": entries}))
    return folder


@pytest.mark.parametrize("name", WHERE)
def test_learning_from_scene_files(name: str, tmp_path: Path) -> None:
    folder = written(tmp_path / "my scenes", scenes(60, 5, seed=2))
    learnt = learn(name, scenes=folder)
    assert learnt.examples > 200 and learnt.validation_accuracy > 0.95
    made = learn(name, learnt.examples)
    if name == "front":
        assert isinstance(learnt.w, tuple) and learnt.w[1] > 20 > -20 > learnt.w[4]
        assert max(abs(w) for w in (*learnt.w[::3], *learnt.w[2::3])) < 0.5 * learnt.w[1]
    else:
        assert isinstance(learnt.w, float) and isinstance(made.w, float) and 0.5 < learnt.w / made.w < 2
        assert learnt.boundary == pytest.approx(0.5, abs=0.02)
    assert learn(name, scenes=folder) == learnt
    assert learn(name, 50, scenes=folder).examples == 50
    out = tmp_path / "out.json"
    command.main([name, "--scenes", str(folder), "--out", str(out), "--json"], standalone_mode=False)
    entry = json.loads(out.read_text())[name]
    assert entry == learnt.entry() and f"--scenes '{folder}'" in entry["made_by"]["command"]


def test_scenes_that_teach_nothing(tmp_path: Path) -> None:
    folder = written(tmp_path / "scenes", scenes(60, 5, seed=2))
    with pytest.raises(NsfrcError, match="not learnt from CLEVR scenes; only leftside, rightside, front are"):
        learn("closeby", scenes=folder)
    with pytest.raises(NsfrcError, match=r"few has \d examples of leftside and \d of its opposite.*10 in all"):
        learn("leftside", scenes=written(tmp_path / "few", scenes(2, 3, seed=1)))
    with pytest.raises(NsfrcError, match="none has 0 examples of front and 0 of its opposite"):
        learn("front", scenes=written(tmp_path / "none", []))
    with pytest.raises(NsfrcError, match=r"cannot open the folder of scenes .*nowhere"):
        learn("front", scenes=tmp_path / "nowhere")


def test_what_is_learnt_is_said_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in WHERE:
        command.main([name, "--examples", "2000", "--out", str(tmp_path / "c.json")], standalone_mode=False)
    text = capsys.readouterr().out
    sides = re.findall(r"(leftside|rightside): 0.5 at x = ([0-9.]+),", text)
    assert [name for name, _ in sides] == ["leftside", "rightside"]
    assert [float(x) for _, x in sides] == pytest.approx([0.5, 0.5], abs=0.01)
    assert re.search(r"front: 0.5 where .*\+0.7\d·y1 .*-0.7\d·y2 ", text)
