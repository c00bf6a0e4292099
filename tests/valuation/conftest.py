"""The `fresh` fixture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nsfrc.valuation import registry


@pytest.fixture
def fresh() -> Iterator[None]:
    """What a test registers is forgotten after it."""
    before = [(table, dict(table)) for table in (registry._registered, registry._numbers)]
    yield
    for table, was in before:
        table.clear()
        table.update(was)
