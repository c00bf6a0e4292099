"""The fixture `here`, for `nsfrc infer`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.support import Run
from tests.inference.support import ONE, install


@pytest.fixture
def here(run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """A folder with a program rules.pl and the perception that reads pixels."""
    import torch

    install(run.folder, monkeypatch)
    (run.folder / "rules.pl").write_text(ONE)
    threads = torch.get_num_threads()
    yield run
    assert torch.get_num_threads() == threads
