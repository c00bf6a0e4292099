"""More images than one machine has time for: `nsfrc infer --ray`, and `map_batches` for a Ray Data pipeline.

Nothing here schedules, queues or retries: Ray Data does. What is ours is how images are cut into blocks, and that a
block's rows are written whole or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nsfrc.ray.batches import map_batches

__all__ = ["map_batches"]


def __getattr__(name: str) -> Any:
    """Import on first use: the parts below are of use without Ray, too."""
    if name != "map_batches":
        raise AttributeError(f"module 'nsfrc.ray' has no attribute {name!r}")
    from nsfrc.ray.batches import map_batches

    return map_batches
