"""The `fresh` fixture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nsfrc.valuation import registry


@pytest.fixture
def fresh() -> Iterator[None]:
    """What a test registers is forgotten after it."""
    before = dict(registry._registered)
    yield
    registry._registered.clear()
    registry._registered.update(before)
