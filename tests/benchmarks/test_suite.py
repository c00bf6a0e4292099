"""The suite on a part that is made up: rows kept as they come, read back, compared, drawn and told."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import pytest

from nsfrc.benchmarks import compare, measure, suite
from nsfrc.benchmarks.measure import Compared, Timing, compared, read_csv, timed, timed_beside, timing, write_csv
from nsfrc.benchmarks.parts import RATIO, Judged, Part, Results, Table, markdown, seconds, times
from nsfrc.errors import NsfrcError
from tests.cli.support import Run


@dataclass(frozen=True)
class Row(Compared):
    case: str
    batch: int
    share: float | None = None


@dataclass(frozen=True)
class Mean:
    batch: int
    mean: float


def row(case: str, batch: int, median: float, base: float | None = 1.0, spread: float = 0.0) -> Row:
    base_timing = None if base is None else Timing(base, base, base, 5)
    mine = Timing(median, median * (1 - spread), median * (1 + spread), 5)
    return Row(**compared(mine, "slow way", base_timing), case=case, batch=batch)


ROWS = [row("a", 1, 0.5), row("a", 2, 0.25), row("b", 1, 0.1, None)]


def means(results: Results) -> Results:
    return {"made_up_means": [Mean(1, sum(r.median for r in results["made_up"]))]}


def picture(results: Results, folder: Path) -> list[Path]:
    (folder / "made_up.png").write_bytes(b"a picture of %d rows" % len(results["made_up"]))
    return [folder / "made_up.png"]


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Row]]:
    """The suite has this one part alone; what it measures is in the list."""
    rows = list(ROWS)

    def measuring(quick: bool, folder: Path) -> Iterator[Row]:
        for one in rows:
            if one.case == "interrupted":
                raise KeyboardInterrupt
            if one.case == "failing":
                raise NsfrcError("cannot be measured here")
            yield one

    module = ModuleType("made_up_part")
    tables = (Table("made_up", Row, ("case", "batch"), (RATIO, Judged("share", higher_is_better=False, slack=0.1))),
              Table("made_up_means", Mean, ("batch",), ()))
    module.PART = Part("made_up", "a part for tests", tables, measuring,  # type: ignore[attr-defined]
                       lambda results: f"{len(results['made_up'])} rows", picture, means)
    monkeypatch.setitem(sys.modules, "made_up_part", module)
    monkeypatch.setattr(suite, "PARTS", {"made_up": "made_up_part"})
    yield rows


def test_timing_and_ratio() -> None:
    assert timing([3.0, 1.0, 2.0, 5.0, 4.0]) == Timing(3.0, 2.0, 5.0, 5)
    assert row("a", 1, 0.5).ratio == 2 and row("a", 1, 0.5, None).ratio is None


def test_work_and_baseline_take_turns() -> None:
    calls: list[str] = []
    runs = timed(lambda: calls.append("alone"), budget=0.001).runs
    assert runs >= measure.LEAST and len(calls) == runs + 1
    calls.clear()
    mine, base = timed_beside(lambda: calls.append("work"), lambda: calls.append("base"), budget=0.01)
    turns = [name for name, _ in itertools.groupby(calls)]
    assert turns == ["work", "base"] * (measure.TURNS + 1)
    assert base is not None and (mine.runs, base.runs) == (calls.count("work") - 1, calls.count("base") - 1)


def test_what_takes_long_runs_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    took = iter([0.0, 0.0, *[1.0, 0.0] * 10])  # work's warm-up, work, then the baseline and work in turns
    monkeypatch.setattr(measure, "_seconds", lambda work: next(took))
    assert timed_beside(lambda: None, lambda: None, budget=0.0)[1] == Timing(1.0, 1.0, 1.0, measure.LEAST)
    took = iter([3.0, 3.0])
    assert timed(lambda: None) == Timing(3.0, 3.0, 3.0, 1)
    assert timed_beside(lambda: None, None) == (Timing(3.0, 3.0, 3.0, 1), None)


def test_rows_survive_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    write_csv(path, ROWS, first=("case", "batch"))
    assert path.read_text().startswith("case,batch,median,p20,p80,runs,baseline,")
    assert read_csv(path, Row) == ROWS
    assert "cpu" in measure.measured_with(ROWS[0]) and "median" not in measure.measured_with(ROWS[0])


def test_rows_keep_the_machine_they_were_measured_on(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    write_csv(path, ROWS[:1])
    path.write_text(path.read_text().replace(measure.machine()["cpu"], "another processor"))
    write_csv(path, [*read_csv(path, Row), ROWS[1]])
    again = read_csv(path, Row)
    assert "cpu another processor" in measure.measured_with(again[0])
    assert measure.machine()["cpu"] in measure.measured_with(again[1])


def test_files_of_other_versions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("case,batch\na,1\n")
    with pytest.raises(NsfrcError, match=r"rows\.csv has no column 'median': .* measure it again"):
        read_csv(path, Row)
    write_csv(path, ROWS)
    path.write_text(path.read_text().replace("0.5", "half", 1))
    with pytest.raises(NsfrcError, match="line 2: could not convert"):
        read_csv(path, Row)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(NsfrcError, match="cannot be read"):
        read_csv(path, Row)


def test_words_and_tables() -> None:
    assert [seconds(s) for s in (2.5, 0.0123, 4.56e-5, 3e-9, None)] == ["2.5 s", "12.3 ms", "45.6 µs", "3 ns", "–"]
    assert [times(r) for r in (1423.4, 12.0, 1.234, None)] == ["1,423×", "12×", "1.2×", "–"]
    assert markdown(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |"


def test_a_run_keeps_rows_pictures_and_a_summary(part: list[Row], tmp_path: Path, run: Run) -> None:
    told = run.good("bench", "--out", str(tmp_path / "r"))
    assert "1/1 made_up: a part for tests" in told and "made_up took" in told
    assert read_csv(tmp_path / "r" / "made_up.csv", Row) == ROWS
    assert read_csv(tmp_path / "r" / "made_up_means.csv", Mean) == [Mean(1, 0.85)]
    page = (tmp_path / "r" / "README.md").read_text()
    assert "## Made up" in page and "3 rows" in page and "![A part for tests.](made_up.png)" in page
    assert "nothing here ran on" in page and "cpu" in page


def test_stopping_keeps_what_was_measured(part: list[Row], tmp_path: Path, run: Run) -> None:
    part[2:] = [row("interrupted", 1, 1.0)]
    done = run("bench", "--out", str(tmp_path / "r"))
    assert done.code == 130 and "what was measured is in" in done.out
    assert read_csv(tmp_path / "r" / "made_up.csv", Row) == ROWS[:2]
    assert "2 rows" in (tmp_path / "r" / "README.md").read_text()


def test_stopping_keeps_earlier_rows_that_were_not_measured_again(part: list[Row], tmp_path: Path, run: Run) -> None:
    run.good("bench", "--out", str(tmp_path / "r"))
    part[:] = [row("a", 1, 0.4), row("interrupted", 1, 1.0)]
    assert run("bench", "--out", str(tmp_path / "r")).code == 130
    assert read_csv(tmp_path / "r" / "made_up.csv", Row) == [part[0], *ROWS[1:]]
    assert read_csv(tmp_path / "r" / "made_up_means.csv", Mean) == [Mean(1, 0.75)], "derived from the same rows"
    part[:] = [row("a", 1, 0.2)]
    run.good("bench", "--out", str(tmp_path / "r"))
    assert read_csv(tmp_path / "r" / "made_up.csv", Row) == part, "a part that came to its end is replaced"


def test_a_part_that_fails_does_not_stop_the_others(part: list[Row], tmp_path: Path, run: Run) -> None:
    part[1:] = [row("failing", 1, 1.0)]
    done = run("bench", "--out", str(tmp_path / "r"))
    assert done.code == 1 and "error: made_up: cannot be measured here" in done.err
    assert "1 rows" in (tmp_path / "r" / "README.md").read_text()


def test_what_others_wrote_is_left_alone(part: list[Row], tmp_path: Path, run: Run) -> None:
    run.good("bench", "--out", str(tmp_path / "r"))
    (tmp_path / "r" / "README.md").write_text("# My project")
    assert "is not a summary" in run.refused("bench", "--out", str(tmp_path / "r"))
    (tmp_path / "r" / "README.md").unlink()
    (tmp_path / "r" / "made_up.csv").write_text("case\na\n")
    told = run("bench", "--from", str(tmp_path / "r"))
    assert "left out: " in told.out and "measure it again" in told.out and "has no results" in told.err
    run.good("bench", "--out", str(tmp_path / "r"))
    (tmp_path / "afile").touch()
    assert "afile/x: cannot be created" in run.refused("bench", "--out", str(tmp_path / "afile" / "x"))


def verdicts(new: list[Row], old: list[Row], part: list[Row], folder: Path) -> dict[tuple[str, str], str]:
    for name, rows in (("new", new), ("old", old)):
        (folder / name).mkdir(exist_ok=True)
        write_csv(folder / name / "made_up.csv", rows)
    return {(c.row, c.column): c.verdict for c in compare.compare(folder / "new", folder / "old")}


def test_what_got_worse_is_told_from_noise(part: list[Row], tmp_path: Path) -> None:
    old = [row("a", 1, 0.5), row("b", 1, 0.5), row("c", 1, 0.5), row("d", 1, 0.5, spread=0.4), row("gone", 1, 0.5)]
    new = [row("a", 1, 0.8), row("b", 1, 0.3), row("c", 1, 0.52), row("d", 1, 0.8, spread=0.4), row("new", 1, 0.5)]
    found = verdicts(new, old, part, tmp_path)
    ratios = {key.split(",")[0].removeprefix("case "): verdict for (key, column), verdict in found.items()
              if column == "ratio"}
    assert ratios == {"a": "worse", "b": "better", "c": "same", "d": "same", "gone": "gone", "new": "new"}


def test_one_run_is_not_enough_to_be_sure(part: list[Row], tmp_path: Path) -> None:
    few = Timing(0.5, 0.5, 0.5, 1)
    old, new = (Row(**compared(replace(few, median=m, p20=m, p80=m), "slow way", few), case="a", batch=1)
                for m in (0.5, 0.7))
    assert verdicts([new], [old], part, tmp_path)["case a, batch 1", "ratio"] == "same"
    sure = [replace(one, runs=5, baseline_runs=5) for one in (new, old)]
    assert verdicts(sure[:1], sure[1:], part, tmp_path)["case a, batch 1", "ratio"] == "worse"


def test_a_slower_detector_is_not_taken_for_a_better_program() -> None:
    assert [judged.column for judged in suite.part("end_to_end").tables[0].judged] == ["facts_and_reasoning_share"]


def test_a_lower_share_may_be_the_better_one(part: list[Row], tmp_path: Path) -> None:
    old = [replace(row("a", 1, 0.5), share=0.5), replace(row("b", 1, 0.5), share=0.5)]
    new = [replace(row("a", 1, 0.5), share=0.3), replace(row("b", 1, 0.5), share=0.6)]
    found = verdicts(new, old, part, tmp_path)
    assert found["case a, batch 1", "share"] == "better" and found["case b, batch 1", "share"] == "worse"


def test_against_marks_and_may_fail(part: list[Row], tmp_path: Path, run: Run) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    run.good("bench", "--out", str(old))
    part[0] = row("a", 1, 2.0)
    told = run.good("bench", "--out", str(new), "--against", str(old))
    assert "worse   made_up: case a, batch 1: ratio 2 → 0.5" in told
    assert "1 of the 2 values in both folders got worse" in told
    assert "| made_up | case a, batch 1 | ratio | 2 | 0.5 |" in (new / "README.md").read_text()
    assert run("bench", "--from", str(new), "--against", str(old), "--fail-on-worse").code == 1
    data = json.loads(run.good("bench", "--from", str(new), "--against", str(old), "--json"))
    assert [c["row"] for c in data["changes"] if c["verdict"] == "worse"] == ["case a, batch 1"]
    assert "Nothing got worse" in (run.good("bench", "--from", str(old), "--against", str(new)) and
                                   (old / "README.md").read_text())


def test_what_cannot_be_asked(part: list[Row], tmp_path: Path, run: Run) -> None:
    out = str(tmp_path / "r")
    assert "did you mean made_up?" in run.refused("bench", "--parts", "madeup", "--out", out)
    assert "--parts is empty" in run.refused("bench", "--parts", ",", "--out", out)
    assert "there is no folder" in run.refused("bench", "--out", out, "--against", str(tmp_path / "none"))
    assert not Path(out).exists(), "nothing is measured before that is said"
    assert "has no results" in run.refused("bench", "--from", str(tmp_path))
    assert "leave out --quick" in run.refused("bench", "--from", out, "--quick")
    assert "needs --against" in run.refused("bench", "--out", out, "--fail-on-worse")
    run.good("bench", "--out", out)
    assert "is the folder itself" in run.refused("bench", "--out", out, "--against", out)
    (tmp_path / "empty").mkdir()
    assert "no part in common" in run.refused("bench", "--from", out, "--against", str(tmp_path / "empty"))


def test_without_matplotlib_there_is_all_but_pictures(
    part: list[Row], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = run.good("bench", "--out", str(tmp_path / "r"))
    assert "pip install 'nsfrc[bench]'" in told
    assert "![" not in (tmp_path / "r" / "README.md").read_text()


def test_the_list_of_parts(run: Run) -> None:
    told = run.good("bench", "--list")
    assert [line.split()[0] for line in told.splitlines()] == list(suite.PARTS)
    assert "only by name" in told.splitlines()[-1]
    assert json.loads(run.good("bench", "--list", "--json")).keys() == suite.PARTS.keys()
