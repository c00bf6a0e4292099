"""The names of perceptions, known without torch, so that a wrong one is told at once."""

from __future__ import annotations

from importlib.metadata import entry_points

from nsfrc.errors import NsfrcError, did_you_mean

GROUP = "nsfrc.perception"  # entry points of other packages: a name and "module:Class"
BUILT_IN = {
    "yolo": "nsfrc.perception.yolo:Yolo",
    "yolo_clevr": "nsfrc.perception.yolo_clevr:YoloClevr",
    "slot_attention": "nsfrc.perception.slot_attention:SlotAttention",
}


def names() -> list[str]:
    """Every name that a perception can be asked for by, besides "module:Class" and model files."""
    return sorted({*BUILT_IN, *(found.name for found in entry_points(group=GROUP))})


def address(name: str) -> str | None:
    """Where the perception of a name is, as "module:Class"; None where "module:Class" is its name."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    for found in entry_points(group=GROUP):
        if found.name == name:
            return found.value
    if ":" in name:
        return None
    hint = did_you_mean(name, names()) or f"there are {', '.join(names())}"
    raise NsfrcError(f"there is no perception called {name!r}: {hint}; for your own give a model file, best.onnx, or "
                     f"write module:Class")
