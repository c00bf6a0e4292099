"""Labels checked with the shipped programs: what the rule says of the true objects must be the label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from nsfrc.data import kandinsky
from nsfrc.data.kandinsky import Labelled
from nsfrc.errors import NsfrcError

if TYPE_CHECKING:
    from nsfrc.reasoner import Reasoner
    from nsfrc.valuation import FactsConverter


def values(name: str, dimensions: tuple[str, ...], truth: Callable[[int], np.ndarray]) -> np.ndarray:
    """The value of each target of a shipped program on true objects: [n, targets].

    truth: how many objects the program knows, E → object vectors [n, E, D] whose entries are `dimensions`.
    """
    import torch

    objects, facts, reasoner = _judge(name, dimensions)
    with torch.no_grad():
        found: np.ndarray = reasoner(facts(torch.from_numpy(truth(objects)))).numpy()
    return found


def scores(pattern: str, labelled: Sequence[Labelled]) -> np.ndarray:
    """The value of the pattern's program on the true objects of each figure: [figures]."""

    def truth(objects: int) -> np.ndarray:
        return np.stack([kandinsky.truth(one.figure, objects) for one in labelled])

    found: np.ndarray = values(pattern, kandinsky.DIMENSIONS, truth)[:, 0]
    return found


def check(pattern: str, labelled: Sequence[Labelled], first: int) -> None:
    """Raise when the program disagrees with the label of a figure; `first` is the number of the first one."""
    for i, (one, score) in enumerate(zip(labelled, scores(pattern, labelled), strict=True), first):
        if (score > 0.5) != one.label:
            raise disagreement(f"figure {i} of {pattern} is labelled {str(one.label).lower()}, "
                               f"but the program gives it {score:.3f}")


def disagreement(what: str) -> NsfrcError:
    return NsfrcError(f"{what}: the generator and the rule disagree, which is a mistake in nsfrc; "
                      f"please report it with the seed")


@lru_cache
def _judge(name: str, dimensions: tuple[str, ...]) -> tuple[int, FactsConverter, Reasoner]:
    from nsfrc.pipelines import object_count
    from nsfrc.program import compile
    from nsfrc.valuation import FactsConverter

    program = compile(name)
    reasoner = program.reasoner(inputs="neural", outputs="targets")
    return object_count(program), FactsConverter(program, dimensions), reasoner
