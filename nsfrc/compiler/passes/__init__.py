"""The passes of either semantics, in the order they run: one file each, and one line below."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from nsfrc.compiler.grounded import GroundProgram
from nsfrc.compiler.ir import ANCHORED, PAPER
from nsfrc.compiler.passes.asked import asked
from nsfrc.compiler.passes.fold import fold
from nsfrc.compiler.passes.live import live
from nsfrc.compiler.passes.merge_equal import merge_equal
from nsfrc.compiler.passes.multiset import multiset
from nsfrc.compiler.passes.needed import needed
from nsfrc.compiler.passes.settle import settle
from nsfrc.compiler.passes.share import share
from nsfrc.errors import NsfrcError, did_you_mean
from nsfrc.records import dataclass


@dataclass(frozen=True)
class Pass:
    """A pure rewrite of a ground program that keeps every value.

    note: what is left after it, for the report. needs_declared_start: it relies on atoms that are not neural starting
    as the program declares, so the plan for any other V0 leaves it out. needs_targets_only: likewise where all atoms
    are asked for. needs_as_given: likewise where clauses have weights, or what depends on itself takes fewer rounds
    than by default.
    """

    name: str
    run: Callable[[GroundProgram], GroundProgram]
    note: str
    needs_declared_start: bool = False
    needs_targets_only: bool = False
    needs_as_given: bool = False


_MULTISET = Pass("multiset", multiset, "equal rows counted")
_MERGE_EQUAL = Pass("merge_equal", merge_equal, "equal atoms merged", needs_declared_start=True)
_SHARE = Pass("share", share, "common products computed once")

PIPELINES: dict[str, tuple[Pass, ...]] = {
    PAPER: (
        Pass("live", live, "rows that are not all false"),
        _MULTISET,
        _MERGE_EQUAL,
        Pass("needed", needed, "only what the targets need"),
        _SHARE,
    ),
    ANCHORED: (
        Pass("fold", fold, "facts are constants", needs_declared_start=True),
        Pass("settle", settle, "what follows from facts is constant", needs_declared_start=True, needs_as_given=True),
        Pass("asked", asked, "only what the targets need", needs_targets_only=True),
        _MULTISET,
        _MERGE_EQUAL,
        _SHARE,
    ),
}
ALL: dict[str, Pass] = {one.name: one for pipeline in PIPELINES.values() for one in pipeline}
NAMES: tuple[str, ...] = tuple(ALL)


def run(
    program: GroundProgram, semantics: str, skip: Collection[str] = (), *,
    declared_start: bool = True, targets_only: bool = True, as_given: bool = True,
) -> Iterator[tuple[str, GroundProgram]]:
    """Run the pipeline without the passes named in `skip`; yields each pass's name and result.

    declared_start: non-neural atoms start as the program says. targets_only: nothing but the targets is asked for.
    as_given: every clause counts once, and what depends on itself takes its default rounds or more.
    """
    for name in skip:
        if name not in NAMES:
            raise NsfrcError(
                f"there is no pass called {name!r}: "
                f"{did_you_mean(name, NAMES) or 'the passes are ' + ', '.join(NAMES)}"
            )
    for one in PIPELINES[semantics]:
        exact = (
            (declared_start or not one.needs_declared_start) and (targets_only or not one.needs_targets_only)
            and (as_given or not one.needs_as_given)
        )
        if exact and one.name not in skip:
            program = one.run(program)
            yield one.name, program
