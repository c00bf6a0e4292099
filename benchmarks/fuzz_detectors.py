"""Model files and files of detections that somebody has broken: each ends in an answer or in a message.

    python -m nsfrc.benchmarks.fuzz_detectors [--count 1000] [--seed 0]

A small ONNX detector is made, and files of detections of every kind; bytes are flipped, cut, doubled and exchanged,
fields get other lengths, text other numbers, and some files are foreign altogether. Broken models run in processes of
their own, a few hundred at a time, so that one that kills its process would be seen and named.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

from nsfrc.errors import NsfrcError

CHUNK = 100
FOREIGN = (b"", b"\0" * 64, b"PK\x03\x04" + b"\0" * 100, b"\x89PNG\r\n\x1a\n" + b"\0" * 100,
           b"\x80\x04\x95" + b"\x8c" * 60, b"<html></html>", b"\xff" * 1000, b"\x0a" + b"\xff" * 9 + b"\x01")
NUMBERS = ("NaN", "Infinity", "-1", "1e999", "9" * 400, '""', "null", "[]", "{}", "true", "0.5", '"\\u0000"')


def mutated(data: bytes, rng: random.Random) -> bytes:
    """One to eight changes of some bytes."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        if not made:
            break
        place, kind = rng.randrange(len(made)), rng.randrange(6)
        if kind == 0:
            made[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            made[place] = rng.choice((0, 1, 127, 128, 255))
        elif kind == 2:
            del made[place:]
        elif kind == 3:
            del made[place : place + rng.randrange(1, 40)]
        elif kind == 4:
            made[place:place] = made[place : place + rng.randrange(1, 40)]
        else:
            other = rng.randrange(len(made))
            made[place : place + 8], made[other : other + 8] = made[other : other + 8], made[place : place + 8]
    return bytes(made)


def mutated_text(text: str, rng: random.Random) -> bytes:
    """A file of detections with other numbers, names or lines, or with its bytes broken."""
    if rng.random() < 0.4:
        return mutated(text.encode(), rng)
    if rng.random() < 0.5:  # which leaves JSON what it is
        places = list(re.finditer(r"-?\d+(\.\d+)?", text))
        one = rng.choice(places)
        return (text[: one.start()] + rng.choice(NUMBERS) + text[one.end() :]).encode()
    lines = text.splitlines()
    place = rng.randrange(len(lines))
    cells = lines[place].replace(",", " , ").split(" ")
    cells[rng.randrange(len(cells))] = rng.choice(NUMBERS)
    lines[place] = " ".join(cells)
    if rng.random() < 0.3:
        rng.shuffle(lines)
    return "\n".join(lines).encode()


def detection_files(folder: Path) -> dict[str, str]:
    """A sound file of every kind, by its name."""
    boxes = [("a.jpg", "cup", 0.9, 10, 20, 60, 80), ("a.jpg", "key", 0.5, 0, 0, 9, 9),
             ("b.jpg", "cup", 0.3, 5, 5, 6, 7)]
    lines = ["file,class,confidence,x1,y1,x2,y2,width,height"]
    lines += [",".join(map(str, (*box, 100, 100))) for box in boxes]
    objects = [{"file": f, "class": c, "confidence": s, "box": b, "width": 100, "height": 100} for f, c, s, *b in boxes]
    coco = {"images": [{"id": 1, "file_name": "a.jpg", "width": 100, "height": 100}],
            "categories": [{"id": 3, "name": "cup"}, {"id": 7, "name": "key"}],
            "annotations": [{"image_id": 1, "category_id": 3, "bbox": [1, 2, 30, 40], "score": 0.8},
                            {"image_id": 1, "category_id": 7, "bbox": [5, 5, 10, 10], "score": 0.4}]}
    (folder / "classes.txt").write_text("cup\nkey\n")
    return {"rows.csv": "\n".join(lines), "rows.jsonl": "\n".join(map(json.dumps, objects)),
            "coco.json": json.dumps(coco, indent=1), "a.txt": "0 0.5 0.5 0.2 0.2 0.9\n1 0.2 0.2 0.1 0.1 0.4"}


def try_detections(count: int, seed: int, folder: Path) -> Counter[str]:
    """Broken files of detections; raises where one of them ends in anything but detections or a message."""
    from nsfrc.models.detections import detections

    rng, ends = random.Random(seed), Counter[str]()
    sound = detection_files(folder)
    (folder / "labels").mkdir(exist_ok=True)
    for number in range(count):
        name, text = list(sound.items())[number % len(sound)]
        data = rng.choice(FOREIGN) if rng.random() < 0.03 else mutated_text(text, rng)
        path = folder / "labels" / name if name.endswith(".txt") else folder / name
        path.write_bytes(data)
        try:
            found = detections(path.parent if name.endswith(".txt") else path)
            for key in found.rows:
                found.fractions(key, (100, 100))
            ends["read"] += 1
        except NsfrcError:
            ends["message"] += 1
    return ends


def try_models(count: int, seed: int, sound: Path, picture: Path) -> Counter[str]:
    """Broken models in child processes; raises where one of them ends in a traceback or kills its process."""
    ends = Counter[str]()
    for first in range(0, count, CHUNK):
        command = [sys.executable, "-m", "nsfrc.benchmarks.fuzz_detectors", "--child", str(sound), "--picture",
                   str(picture), "--count", str(min(CHUNK, count - first)), "--seed", str(seed + first)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssertionError(f"seed {seed + first}: ended with {done.returncode}\n{done.stdout[-500:]}\n"
                                 f"{done.stderr[-2000:]}")
        ends.update(json.loads(done.stdout.splitlines()[-1]))
    return ends


def child(sound: Path, picture: Path, count: int, seed: int) -> Counter[str]:
    """Broken copies of one model in this process, each asked about one picture if it opens."""
    from nsfrc.inference.images import read, to_tensor
    from nsfrc.perception.detector import open_detector
    from nsfrc.perception.vectors import Wishes

    rng, ends, data = random.Random(seed), Counter[str](), sound.read_bytes()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "broken.onnx"
        for number in range(count):
            path.write_bytes(rng.choice(FOREIGN) if rng.random() < 0.03 else mutated(data, rng))
            print(f"model {number} of seed {seed}", file=sys.stderr, flush=True)
            try:
                model = open_detector(path, 10, Wishes())
                seen = read(picture, model.size, model.fit)
                model.see(to_tensor([seen.pixels]), [seen.frame or (0.0, 0.0, 1.0, 1.0)])
                ends["ran"] += 1
            except NsfrcError:
                ends["message"] += 1
            except Exception:
                traceback.print_exc()
                raise
    return ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--picture", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        print(json.dumps(child(options.child, options.picture, options.count, options.seed)))
        return
    from PIL import Image

    from nsfrc.benchmarks.tiny_detector import write_tiny

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Image.new("RGB", (70, 50), "red").save(folder / "a.png")
        print("detections", dict(try_detections(options.count, options.seed, folder)))
        sound = write_tiny(folder / "tiny.onnx")
        print("models", dict(try_models(options.count, options.seed, sound, folder / "a.png")))


if __name__ == "__main__":
    main()
