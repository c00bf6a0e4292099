"""Two runs and one file of results: the second is told who holds it, and no partial file is ever called complete.

The pairs of writers are few here; NSFRC_PAIRS=20 runs as many.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nsfrc.errors import NsfrcError
from nsfrc.inference.lock import Lock
from nsfrc.inference.row_file import row_file
from nsfrc.inference.rows import Answered, Row
from nsfrc.questions import questions
from tests.cli.support import Run, arguments, csv_rows
from tests.inference.support import ONE, YES, install, save

ASKED, MADE = questions(["kp(img)"]), {"program": "rules 1"}
PAIRS = int(os.environ.get("NSFRC_PAIRS", "4"))
ROWS = 120

WRITER = """
import sys, time
from pathlib import Path
from nsfrc.errors import NsfrcError
from nsfrc.inference.measures import Measured
from nsfrc.inference.row_file import row_file
from nsfrc.inference.rows import Answered, Row
from nsfrc.inference.sinks import Closing
from nsfrc.questions import questions

out, score, resume, rows = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "resume", int(sys.argv[4])
try:
    with row_file(out, questions(["kp(img)"]), {"program": "rules 1"}, resume) as file:
        done = {row.file for row in file.earlier()}
        print("holding", flush=True)
        for i in range(rows):
            if f"{i}.png" not in done:
                file.rows([Row(f"{i}.png", Path("x"), {"kp(img)": Answered(None, "true")}, (score,))])
                time.sleep(0.002)
        file.end(Closing(Measured(questions(["kp(img)"]))))
except NsfrcError as error:
    print(error)
    sys.exit(1)
"""


def writer(out: Path, score: float, resume: bool = False, rows: int = ROWS) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(out), str(score), "resume" if resume else "", str(rows)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = process.communicate(timeout=60)
    return process.returncode, said


@pytest.mark.parametrize("pair", range(PAIRS))
def test_pairs_of_writers_leave_whole_files(pair: int, tmp_path: Path) -> None:
    chance = random.Random(pair)
    out = tmp_path / f"r.{chance.choice(['csv', 'jsonl'])}"
    first = writer(out, 0.25)
    time.sleep(chance.uniform(0, 1.2))
    second = writer(out, 0.75, resume=chance.random() < 0.5)
    results = [ended(first), ended(second)]
    assert 0 in [code for code, _ in results]
    for code, said in results:
        assert code == 0 or f"{out} is being written by another run (" in said, said
    lines = [line for line in out.read_text().splitlines() if ".png" in line]
    assert len(lines) == ROWS and len({line.replace(f"{i}.png", "") for i, line in enumerate(lines)}) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [out.name]


def test_the_second_is_told_who_holds_it_and_changes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    with row_file(out, ASKED, MADE) as first:
        first.rows([Row("a.png", Path("a.png"), {"kp(img)": Answered(None, "true")}, (0.5,))])
        before = first.part.read_bytes()
        for resume in (False, True):
            with pytest.raises(NsfrcError, match=rf"another run \(process {os.getpid()} on .*, since 20.*name another"):
                row_file(out, ASKED, MADE, resume)
        assert first.part.read_bytes() == before
        with row_file(tmp_path / "other.csv", ASKED, MADE):
            pass
        first.finish()
    assert len(csv_rows(out)) == 1
    with row_file(out, ASKED, MADE):
        pass


def test_a_killed_run_blocks_nobody(tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    killed = writer(out, 0.25, rows=100_000)
    assert killed.stdout is not None and killed.stdout.readline() == "holding\n"
    with pytest.raises(NsfrcError, match=f"process {killed.pid} on "):
        Lock(out)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    assert (tmp_path / ".r.csv.lock").exists()
    code, _ = ended(writer(out, 0.75, resume=True))
    assert code == 0 and not (tmp_path / ".r.csv.lock").exists()
    assert {row["file"] for row in csv_rows(out)} >= {f"{i}.png" for i in range(ROWS)}


def test_a_part_that_was_replaced_is_not_called_complete(tmp_path: Path) -> None:
    """As it may be where the file system has no locks."""
    for spoil in (Path.unlink, lambda part: part.replace(tmp_path / "x") and part.write_text("another's")):
        with row_file(tmp_path / "r.csv", ASKED, MADE) as file:
            spoil(file.part)
            with pytest.raises(NsfrcError, match=r"was removed or replaced .*r\.csv is not complete"):
                file.finish()
        assert not (tmp_path / "r.csv").exists()


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept")
    (tmp_path / ".r.csv.lock").symlink_to("precious")
    with pytest.raises(NsfrcError, match=r"cannot write .*r\.csv\.part"):
        row_file(tmp_path / "r.csv", ASKED, MADE)
    assert (tmp_path / "precious").read_text() == "kept"


def test_an_error_lets_go(tmp_path: Path) -> None:
    (tmp_path / "r.csv.part").write_text("")
    with pytest.raises(NsfrcError, match="it is not known"):
        row_file(tmp_path / "r.csv", ASKED, MADE, resume=True)
    assert not (tmp_path / ".r.csv.lock").exists()


@pytest.mark.parametrize("more", [(), ("--resume",)])
def test_on_the_command_line(more: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    install(run.folder, monkeypatch)
    (run.folder / "rules.pl").write_text(ONE)
    save(run.folder / "d" / "a.png", YES)
    lock = Lock(Path("r.csv"))
    message = run.refused(*arguments("--out", "r.csv", *more))
    assert f"r.csv is being written by another run (process {os.getpid()} on " in message
    lock.release()
    run.good(*arguments("--out", "r.csv", *more))
