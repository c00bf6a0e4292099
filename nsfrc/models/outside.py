"""What a program is told of the world that it will see while it is compiled: the classes of its detector."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsfrc.errors import NsfrcError
from nsfrc.records import dataclass

if TYPE_CHECKING:
    from nsfrc.models.names import ClassNames

EXAMPLE = ":- perception('best.onnx')."


@dataclass(frozen=True)
class Outside:
    """perception: what the user names in the place of the program's own. names: those of the user's detections."""

    perception: str | None = None
    names: ClassNames | None = None

    def class_names(self, own: str | None, names: tuple[str, ...], folder: Path) -> ClassNames:
        """The classes a program speaks of. own: its perception; names: those that it lists; folder: where it is."""
        from nsfrc.models.model_file import find_model, is_model_file, is_pickled, read_header
        from nsfrc.models.names import class_names

        if names:
            return class_names(list(names), "the program")
        if self.names is not None:
            return self.names
        name = self.perception or own
        if name is None:
            raise NsfrcError(f"from_perception needs a model file or detections: add {EXAMPLE} or pass "
                             f"--perception FILE or --detections FILE")
        if not is_model_file(name):
            raise NsfrcError(f"from_perception needs a model file, such as best.onnx; the perception is {name}")
        path = find_model(name, folder)
        if is_pickled(path):
            raise NsfrcError(f"{path} is a pickle, of which no names are read: export it with `yolo export "
                             f"model={path} format=onnx`, or list them: :- model([names([person, car])]).")
        found = read_header(path).names
        if found is None:
            raise NsfrcError(f"{path} does not say what its classes are called, and there is no data.yaml beside it: "
                             f"list them: :- model([names([person, car])]).")
        return found
