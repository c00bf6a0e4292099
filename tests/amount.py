"""How much of the suite is run: a sample of the cases that repeat each other, or with NSFRC_THOROUGH=1 all of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

THOROUGH = bool(os.environ.get("NSFRC_THOROUGH"))
Amount = TypeVar("Amount", int, Sequence)


def sample(some: Amount, all_of_them: Amount) -> Amount:
    return all_of_them if THOROUGH else some
