"""A small sample of what benchmarks/fuzz_detectors.py does with thousands: a message, never anything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from nsfrc.benchmarks import fuzz_detectors
from nsfrc.benchmarks.tiny_detector import write_tiny


def test_broken_detections(tmp_path: Path) -> None:
    ends = fuzz_detectors.try_detections(120, 7, tmp_path)
    assert ends["read"] + ends["message"] == 120 and ends["read"] and ends["message"] > 60


def test_broken_models(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    Image.new("RGB", (70, 50), "red").save(tmp_path / "a.png")
    ends = fuzz_detectors.child(write_tiny(tmp_path / "m.onnx"), tmp_path / "a.png", 40, 3)
    assert ends["ran"] + ends["message"] == 40 and ends["message"] > 10
