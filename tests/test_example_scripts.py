"""The scripts in examples/ run to their end, from any folder, and what they print is what they claim."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
import torch

from examples import digits as example
from nsfrc.valuation import concepts

EXAMPLES = Path(__file__).parent.parent / "examples"


def shown(name: str, folder: Path, *arguments: str) -> str:
    """What a script prints, run by its path and in another folder."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, str(EXAMPLES / f"{name}.py"), *arguments], cwd=folder, env=environment,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def shares(pattern: str, text: str) -> list[float]:
    """Every percentage that a pattern with one group finds."""
    return [float(found) for found in re.findall(pattern, text)]


def test_own_detections(tmp_path: Path) -> None:
    by_name, by_vector = shown("own_detections", tmp_path).split("Facts from vectors")
    for way in (by_name, by_vector):
        assert re.findall(r"(\w+\.jpg): (.+)", way) == [
            ("crossing.jpg", "care"), ("parked.jpg", "go on"), ("lane.jpg", "go on"),
        ]
        crossing, parked, lane = way.split(".jpg: ")[1:]
        assert "because class(obj2,person) 1.00, class(obj3,bicycle) 1.00, on(obj2,obj3)" in crossing
        assert "missing cyclist(obj2)" in parked and "missing near(obj3,obj1)" in lane
    assert not list(tmp_path.iterdir())


def test_learn_a_concept(tmp_path: Path) -> None:
    text = shown("learn_a_concept", tmp_path)
    before, *learnt = shares(r"right in ([\d.]+)%", text)
    assert before < 90 and len(learnt) == 2 and min(learnt) >= 98
    times = shares(r"much larger from ([\d.]+) times", text)
    assert times[0] == 1 and times[1:] == pytest.approx([3, 3], abs=0.2)
    entry = concepts.read(tmp_path / "build" / "much_larger.json")["much_larger"]
    assert f"w = {entry['w']:.2f}, b = {entry['b']:.2f}" in text


def test_train_through_rules(tmp_path: Path) -> None:
    text = shown("train_through_rules", tmp_path)
    right = shares(r"right in ([\d.]+)% of 1000 new scenes", text)
    assert len(right) == 2 and min(right) >= 98
    assert shares(r"([\d.]+)% are named correctly", text)[0] >= 98
    weights = {clause: float(weight) for weight, clause in re.findall(r"(\d\.\d{3})  (pair .+)", text)}
    assert len(weights) == 4 and weights["pair :- shape(A,circle), shape(B,circle)."] > 0.9


def test_digits(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    text = shown("digits", tmp_path, "--baseline")
    through, exact, labels = shares(r"([\d.]+)%", text)
    assert through >= 95 and min(exact, labels) >= 95


@pytest.mark.parametrize("digits", [2, 3])
def test_digits_that_are_made_up(
    digits: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    generator = torch.Generator().manual_seed(0)
    looks, shown_digits = torch.rand(10, 64, generator=generator), torch.randint(10, (400,), generator=generator)
    made = looks[shown_digits] + 0.1 * torch.randn(400, 64, generator=generator)
    monkeypatch.setattr(example, "load", lambda: example.Data(made, shown_digits))
    example.main(["--digits", str(digits), "--baseline", "--epochs", "30"])
    text = capsys.readouterr().out
    assert len(shares(r"([\d.]+)%", text)) == 3 and min(shares(r"([\d.]+)%", text)) >= 95, text


def test_digits_by_exact_probability() -> None:
    for digits in example.PROGRAMS:
        likely = torch.rand(4, digits, 10, generator=torch.Generator().manual_seed(digits)).softmax(-1)
        expected = torch.zeros(4, 9 * digits + 1)
        for chosen in product(range(10), repeat=digits):
            expected[:, sum(chosen)] += likely[:, range(digits), chosen].prod(1)
        assert torch.allclose(example.exact(likely), expected, atol=1e-6)
        assert torch.allclose(example.Sums(digits, 1000.0)(likely), expected, atol=1e-5)  # a very soft soft-or adds


def test_digits_without_scikit_learn(tmp_path: Path) -> None:
    (tmp_path / "sklearn.py").write_text("raise ImportError('not here')")
    path = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, str(EXAMPLES / "digits.py")], cwd=tmp_path, env=os.environ | path,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and not done.stdout
    assert done.stderr == "this example needs the digits of scikit-learn: pip install 'nsfrc[examples]'\n"


def test_ahead_of_time(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    text = shown("ahead_of_time", tmp_path, "made")
    assert "the parser was imported: False" in text
    near, far = (float(value) for value in re.findall(r"kp\(img\) ([\d.]+)", text))
    assert near > 0.5 > far
    made = tmp_path / "made"
    compile((made / "closeby_gpu.py").read_text(), "closeby_gpu.py", "exec")
    manifest = json.loads((made / "closeby.sm_80" / "kernels.json").read_text())
    (kernel,) = manifest["kernels"]
    code = (made / "closeby.sm_80" / kernel["file"]).read_bytes()
    assert code.startswith(b"\x7fELF") and f"{len(code):,} bytes, {kernel['registers']} registers" in text


def test_all_scripts_are_listed() -> None:
    listed = set(re.findall(r"^\| `(\w+)\.py`", (EXAMPLES / "README.md").read_text(), re.MULTILINE))
    assert listed == {path.stem for path in EXAMPLES.glob("*.py")} - {"__init__"}
