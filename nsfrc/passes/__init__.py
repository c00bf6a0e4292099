"""The passes, in the order they run; each is a pure `GroundProgram -> GroundProgram`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from nsfrc.errors import NsfrcError, did_you_mean
from nsfrc.grounded import GroundProgram
from nsfrc.passes.goal import goal
from nsfrc.passes.live import live
from nsfrc.passes.multiset import multiset
from nsfrc.passes.number import number
from nsfrc.passes.share import share

Pass = Callable[[GroundProgram], GroundProgram]

PIPELINE: tuple[tuple[str, Pass], ...] = (
    ("live", live),
    ("multiset", multiset),
    ("number", number),
    ("goal", goal),
    ("share", share),
)

NAMES: tuple[str, ...] = tuple(dict.fromkeys(name for name, _ in PIPELINE))


def run(program: GroundProgram, skip: Collection[str] = ()) -> Iterator[tuple[str, GroundProgram]]:
    """Run the pipeline without the passes named in `skip`; yields each stage's name and result."""
    for name in skip:
        if name not in NAMES:
            raise NsfrcError(
                f"there is no pass called {name!r}: "
                f"{did_you_mean(name, NAMES) or 'the passes are ' + ', '.join(NAMES)}"
            )
    for name, rewrite in PIPELINE:
        if name not in skip:
            program = rewrite(program)
            yield name, program
