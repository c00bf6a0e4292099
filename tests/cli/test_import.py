"""`nsfrc import` and `nsfrc programs`."""

from __future__ import annotations

import shutil
from pathlib import Path

from nsfrc import load
from nsfrc.compiler.parse import find_program
from tests.cli.support import Run
from tests.examples import SHIPPED


def test_programs(run: Run) -> None:
    entries = run.good("programs").strip().split("\n\n")
    examples = {path.stem for path in (find_program(SHIPPED[0]).parents[1] / "examples").glob("*.pl")}
    assert len(examples) >= 12
    assert {entry.split()[0] for entry in entries} == {*SHIPPED, *examples}
    for entry in entries:
        line, _, about = entry.partition("\n")
        assert Path(line.split(maxsplit=1)[1]).is_file()
        assert ": " in about and about.endswith(".") and "%" not in about


def language(folder: Path) -> Path:
    folder.mkdir()
    (folder / "consts.txt").write_text("image:img\nobject:obj1,obj2\ncolor:red,blue\n")
    (folder / "preds.txt").write_text("kp:1:image\nsame:2:object,object\n")
    (folder / "neural_preds.txt").write_text("in:2:object,image\ncolor:2:object,color\n")
    (folder / "bk.txt").write_text("")
    (folder / "clauses.txt").write_text(
        "kp(X):-in(O1,X),in(O2,X),same(O1,O2).\nsame(X,Y):-color(X,Z),color(Y,Z).\n"
    )
    return folder


def test_import(run: Run) -> None:
    language(run.folder / "pairs")
    assert "written to pairs.pl" in run.good("import", "pairs")
    assert ":- type(object, slots(2))." in (run.folder / "pairs.pl").read_text()
    run.good("compile", "pairs.pl")
    program = load(run.folder / "pairs.nsfrc")
    assert (program.ground.C, program.targets) == (2, ["kp(img)"])
    assert "pairs.pl exists" in run.refused("import", "pairs")
    run.good("import", "pairs", "--force")
    run.good("import", "pairs", "--out", "sub/other name.pl")
    assert (run.folder / "sub" / "other name.pl").read_text() == (run.folder / "pairs.pl").read_text()


def test_import_says_what_it_leaves_out(run: Run) -> None:
    folder = language(run.folder / "pairs")
    (folder / "preds.txt").write_text("kp:1:image\nsame:2:object,object\nfar:1:planet\n")
    result = run("import", "pairs")
    assert result.code == 0 and "written to pairs.pl" in result.out
    assert "preds.txt:3:1: warning: no clause and no fact uses far/1: it is left out" in result.err
    assert "far" not in (run.folder / "pairs.pl").read_text()


def test_import_of_what_is_no_language(run: Run) -> None:
    assert "there is no folder gone" in run.refused("import", "gone")
    folder = language(run.folder / "pairs")
    (folder / "clauses.txt").write_text("kp(X):-in(O1,X),colour(O1,red).\n")
    assert "clauses.txt:1:17: error: unknown predicate colour/2" in run.refused("import", "pairs")
    (folder / "consts.txt").write_bytes(b"\xff\xfe")
    assert "consts.txt" in run.refused("import", "pairs")
    shutil.rmtree(folder)
    folder.mkdir()
    assert "clauses.txt" in run.refused("import", "pairs")
    (run.folder / "file").write_text("x")
    assert "file" in run.refused("import", "file")
    assert not (run.folder / "pairs.pl").exists()
