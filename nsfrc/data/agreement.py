"""Labels checked with the shipped programs: what the rule says of the true objects must be the label."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from nsfrc.data.kandinsky import DIMENSIONS, Labelled, truth
from nsfrc.errors import NsfrcError

if TYPE_CHECKING:
    from nsfrc.program import Program
    from nsfrc.reasoner import Reasoner
    from nsfrc.valuation import FactsConverter


def scores(pattern: str, labelled: Sequence[Labelled]) -> np.ndarray:
    """The value of the pattern's program on the true objects of each figure: [figures]."""
    import torch

    from nsfrc.pipelines import object_count

    program, facts, reasoner = _judge(pattern)
    vectors = np.stack([truth(one.figure, object_count(program)) for one in labelled])
    with torch.no_grad():
        values: np.ndarray = reasoner(facts(torch.from_numpy(vectors)))[:, 0].numpy()
    return values


def check(pattern: str, labelled: Sequence[Labelled], first: int) -> None:
    """Raise when the program disagrees with the label of a figure; `first` is the number of the first one."""
    for i, (one, score) in enumerate(zip(labelled, scores(pattern, labelled), strict=True), first):
        if (score > 0.5) != one.label:
            raise NsfrcError(
                f"figure {i} of {pattern} is labelled {str(one.label).lower()}, but the program gives it {score:.3f}: "
                f"the generator and the rule disagree, which is a mistake in nsfrc; please report it with the seed"
            )


@lru_cache
def _judge(pattern: str) -> tuple[Program, FactsConverter, Reasoner]:
    from nsfrc.program import compile
    from nsfrc.valuation import FactsConverter

    program = compile(pattern)
    return program, FactsConverter(program, DIMENSIONS), program.reasoner(inputs="neural", outputs="targets")
