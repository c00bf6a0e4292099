"""What to know of images before one trusts their answers: counted as rows go by, told in a line each at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsfrc.compiler import ir
from nsfrc.inference.sinks import Sink

if TYPE_CHECKING:
    from nsfrc.inference.rows import Row
    from nsfrc.inference.session import Session


class Notes(Sink):
    """Counts images that perception was not made for, that hold too many objects, or of which only a part was read."""

    def __init__(self, session: Session) -> None:
        self.perception = session.perception
        self.slots, self.object_type = session.pipe.perception.objects, _object_type(session)
        self.doubtful = self.crowded = self.animated = 0
        self.doubts: Counter[str] = Counter()

    def rows(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.doubtful += bool(row.doubts)
            self.doubts.update(row.doubts)
            self.crowded += row.further > 0
            self.animated += row.animated

    def remarks(self) -> tuple[str, ...]:
        """A line for each kind of thing that was met."""
        found = []
        if self.doubtful:
            found.append(f"{_images(self.doubtful, 'is', 'are')} not as {self.perception} expects ({self._kinds()}): "
                         f"answers may be wrong")
        if self.crowded:
            found.append(f"{_images(self.crowded, 'has', 'have')} more objects than slots({self.slots}) of the program "
                         f"takes: the least sure were left out, and answers may be wrong; "
                         f"nsfrc compile PROGRAM --slots {self.object_type}=N takes more")
        if self.animated:
            found.append(f"{_images(self.animated, 'is', 'are')} animated: only the first frame was judged")
        return tuple(found)

    def _kinds(self) -> str:
        if len(self.doubts) == 1:
            return next(iter(self.doubts))
        return ", ".join(f"{count} {kind}" for kind, count in sorted(self.doubts.items()))


def _object_type(session: Session) -> str:
    types = session.pipe.program.ground.herbrand.types
    return next((ir.quoted(t.name) for t in types if t.role == ir.OBJECT), "object")


def _images(count: int, one: str, several: str) -> str:
    return f"1 image {one}" if count == 1 else f"{count} images {several}"
