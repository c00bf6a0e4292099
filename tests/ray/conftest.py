"""A folder with a program, a perception and labelled images, and the same images packed in other ways."""

from __future__ import annotations

import io
import tarfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.support import Run
from tests.inference.support import ONE, install, labelled

# Without the extra `ray`, what needs it is left out.
THERE = all(map(find_spec, ("ray", "pyarrow")))
collect_ignore = [] if THERE else ["test_cluster.py", "test_dest.py", "test_sources.py"]
IMAGES = 20  # of each label


@pytest.fixture
def here(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    install(run.folder, monkeypatch)
    (run.folder / "rules.pl").write_text(ONE)
    labelled(run.folder / "d", IMAGES)
    whole = (run.folder / "d/true/0.png").read_bytes()
    (run.folder / "d/true/cut.png").write_bytes(whole[: len(whole) // 2])
    (run.folder / "d/false/empty.png").write_bytes(b"")
    return run


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its name."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.png"))}


def pack_parquet(path: Path, files: dict[str, bytes], group: int = 7) -> Path:
    import pyarrow
    from pyarrow.parquet import write_table

    write_table(pyarrow.table({"file": list(files), "image": list(files.values())}), path, row_group_size=group)
    return path


def pack_tar(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            one = tarfile.TarInfo(name)
            one.size = len(data)
            archive.addfile(one, io.BytesIO(data))
    return path
