"""The ultralytics package without its side effects: no network, no messages, no files that stay behind."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile

import numpy as np
import torch
from PIL import Image

from nsfrc.errors import NsfrcError

_SETTINGS = {"YOLO_OFFLINE": "1", "YOLO_AUTOINSTALL": "0", "YOLO_VERBOSE": "0"}


def load_ultralytics() -> None:
    """Import ultralytics once, quiet and offline; call it before any `from ultralytics … import …`."""
    if "ultralytics" in sys.modules:
        return
    # Set before the import, where they are read; a folder the user chose stays as it is.
    os.environ.update(_SETTINGS)
    threads = os.environ.get("OMP_NUM_THREADS")
    if "YOLO_CONFIG_DIR" not in os.environ:
        os.environ["YOLO_CONFIG_DIR"] = folder = tempfile.mkdtemp(prefix="nsfrc-ultralytics-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    numbers = np.get_printoptions()
    torch_save, image_open = torch.save, Image.open
    try:
        from ultralytics.utils import SETTINGS
    except ImportError as error:
        remedy = "pip install ultralytics-opencv-headless"
        raise NsfrcError(f"yolo needs the ultralytics package ({error}): {remedy}") from None
    SETTINGS.update(sync=False)
    # The import changes these for the whole process, and with them how other libraries run and print.
    if threads is None:
        os.environ.pop("OMP_NUM_THREADS", None)
    torch.save = torch_save
    Image.open = image_open  # theirs installs a package for files that are not images
    np.set_printoptions(**numbers)
    torch.set_printoptions(profile="default")
