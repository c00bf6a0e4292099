"""Where weights that a user imported are kept: one folder, one file per perception."""

from __future__ import annotations

import os
from pathlib import Path

from nsfrc.errors import NsfrcError


def weights_home() -> Path:
    """$NSFRC_HOME, or else nsfrc in the user's folder for data of programs. It may not exist yet."""
    try:
        if chosen := os.environ.get("NSFRC_HOME"):
            return Path(chosen).expanduser()
        data = Path(os.environ.get("XDG_DATA_HOME", ""))
        if data.is_absolute():  # a relative one is to be ignored, says the standard
            return data / "nsfrc"
        return Path.home() / ".local" / "share" / "nsfrc"
    except RuntimeError:
        raise NsfrcError("there is no home folder to keep weights in: set NSFRC_HOME to a folder") from None


def kept_weights(model: str) -> Path:
    """The file in which the weights of a perception are kept, if they are."""
    return weights_home() / f"{model}.safetensors"
