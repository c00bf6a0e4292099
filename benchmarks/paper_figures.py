"""The paper's figures, drawn from what this code computes: `nsfrc figures` (a module paper_figures_NAME each)."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from nsfrc.benchmarks.paper_figures_base import LETTERS, Drawn, Wanted, as_csv, as_png
from nsfrc.errors import NsfrcError, did_you_mean
from nsfrc.files import write_whole

NAMES = ("softor", "batch", "statistics", "confusion")


def chosen_names(text: str) -> tuple[str, ...]:
    """"softor,batch" → the names in it, each once, in the order of NAMES."""
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in NAMES:
            hint = did_you_mean(name, NAMES) or f"there are {', '.join(NAMES)}"
            raise NsfrcError(f"there is no figure called {name!r}: {hint}")
    if not wanted:
        raise NsfrcError(f"--only is empty: the figures are {', '.join(NAMES)}")
    return tuple(name for name in NAMES if name in wanted)


def ready(out: Path) -> None:
    """Refuse at once what would only fail after the work is done."""
    if find_spec("matplotlib") is None:
        raise NsfrcError("drawing needs matplotlib: pip install 'nsfrc[bench]'")
    if out.exists() and not out.is_dir():
        raise NsfrcError(f"--out {out} is a file: name a folder")


def draw(name: str, wanted: Wanted) -> Drawn:
    """One figure of NAMES; `Missing` where what it is drawn from is not there."""
    import matplotlib

    with matplotlib.rc_context(LETTERS):
        drawn = importlib.import_module(f"nsfrc.benchmarks.paper_figures_{name}").draw(wanted)
    assert isinstance(drawn, Drawn)
    return drawn


def write(name: str, out: Path, wanted: Wanted) -> Sequence[Path]:
    """Draw a figure into a folder: NAME.png, and NAME.csv with the numbers behind it."""
    import matplotlib

    drawn = draw(name, wanted)
    paths = out / f"{name}.png", out / f"{name}.csv"
    with matplotlib.rc_context(LETTERS):
        write_whole(paths[0], as_png(drawn.figure))
    write_whole(paths[1], as_csv(drawn.rows))
    return paths
