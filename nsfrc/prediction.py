"""What came of images: objects, values, scores, and on request the reason and a picture of it."""

from __future__ import annotations

import builtins
import io
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from nsfrc.errors import NsfrcError
from nsfrc.explain import Reason, as_text, explain
from nsfrc.questions import called

if TYPE_CHECKING:
    from PIL import Image

    from nsfrc.inference.images import Picture
    from nsfrc.pipelines import Pipeline


@dataclass(frozen=True, eq=False)
class Prediction:
    """What came of B images: object vectors, starting values, the value of every target, and of every atom if asked.

    objects: [B, E, D]; V0: [B, G]; scores: [B, targets]; V_T: [B, G] or None. further: how many more sure objects than
    E there are, [B], or None where perception does not say. `found[i]` is the prediction of image i alone.
    pipe: what made it. pictures: what each image was read from, None for a tensor; pixels: [B, 3, H, W].
    """

    objects: torch.Tensor
    V0: torch.Tensor
    scores: torch.Tensor
    V_T: torch.Tensor | None
    further: torch.Tensor | None = None
    pipe: Pipeline | None = field(default=None, repr=False)
    pictures: tuple[Picture | None, ...] = field(default=(), repr=False)
    pixels: torch.Tensor | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, which: int | slice) -> Prediction:
        """Some of the images; one is a prediction with B = 1."""
        if not isinstance(which, slice):
            which = range(len(self))[which]  # which raises IndexError, and so ends a loop
            which = slice(which, which + 1)
        V_T, further, pixels = (None if one is None else one[which] for one in (self.V_T, self.further, self.pixels))
        return replace(self, objects=self.objects[which], V0=self.V0[which], scores=self.scores[which], V_T=V_T,
                       further=further, pictures=self.pictures[which], pixels=pixels)

    def cpu(self) -> Prediction:
        """The same where numpy can read it."""
        V_T, further = (None if one is None else one.cpu() for one in (self.V_T, self.further))
        return replace(self, objects=self.objects.float().cpu(), V0=self.V0.cpu(), scores=self.scores.double().cpu(),
                       V_T=V_T, further=further)

    def reasons(self, target: str | None = None) -> list[Reason]:
        """Why a target has its value, for each image.

        target: an atom, or the name of a question; "classes" is the class with the highest value. By default it is the
        only question.
        """
        pipe = self._made_by()
        asked = pipe.program.questions
        if target is None and len(asked) > 1:
            raise NsfrcError(f"{pipe.program.name} asks {len(asked)} questions: name one, as in "
                             f"reasons({asked[0].name!r}); why() has the reasons for all of them")
        one = asked[0] if target is None else called(asked, target)
        found = self.cpu()
        V_T = pipe.all_atoms(self.V0).cpu() if found.V_T is None else found.V_T
        reasons = []
        for i, scores in enumerate(found.scores.tolist()):
            if not all(map(math.isfinite, scores)):
                raise NsfrcError(f"image {i + 1} has no reason: perception or reasoning gave no number for it")
            atom = one.best(scores) if one is not None else str(target)
            reasons.append(explain(pipe.program, V_T[i], atom, found.V0[i], pipe.reasoner.run.steps))
        return reasons

    def why(self, target: str | None = None) -> str:
        """The reasons as text, by default for every question; of several images each below its number."""
        names = [one.name for one in self._made_by().program.questions] if target is None else [target]
        each = zip(*(self.reasons(name) for name in names), strict=True)
        texts = ["\n".join(map(as_text, reasons)) for reasons in each]
        return texts[0] if len(texts) == 1 else "\n\n".join(f"image {i}\n{text}" for i, text in enumerate(texts, 1))

    def image(self) -> Image.Image:
        """The images with their objects, those that the reason names in full lines, as one picture."""
        from nsfrc.inference.drawing import sheet

        self._made_by()
        if not len(self):
            raise NsfrcError("there is nothing to show: the prediction has no images")
        return sheet(self)

    def show(self) -> None:
        """Show `image()`: in a notebook below the cell, elsewhere in the viewer of the system."""
        if hasattr(builtins, "get_ipython"):
            from IPython.display import display  # type: ignore[import-not-found]

            display(self)
        else:
            self.image().show()

    def _repr_png_(self) -> bytes | None:
        """What a notebook shows; None, and so only the text, where there is nothing to draw."""
        if self.pipe is None or not len(self):
            return None
        buffer = io.BytesIO()
        self.image().save(buffer, "PNG")
        return buffer.getvalue()

    def _repr_html_(self) -> str | None:
        """The picture, with scores and reasons beside it."""
        if self.pipe is None or not len(self):
            return None
        from nsfrc.inference.drawing import cards

        return cards(self)

    def _made_by(self) -> Pipeline:
        if self.pipe is None:
            raise NsfrcError("this prediction does not know its pipeline: pipe.predict(images) gives one that does")
        return self.pipe
