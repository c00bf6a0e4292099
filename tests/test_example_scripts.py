"""The scripts in examples/ run to their end, from any folder, and what they print is what they claim."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
        assert "for want of cyclist(obj2)" in parked and "for want of near(obj3,obj1)" in lane
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
    assert shares(r"([\d.]+)% are named rightly", text)[0] >= 98
    weights = {clause: float(weight) for weight, clause in re.findall(r"(\d\.\d{3})  (pair .+)", text)}
    assert len(weights) == 4 and weights["pair :- shape(A,circle), shape(B,circle)."] > 0.9


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
