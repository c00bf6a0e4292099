"""From images to answers: perception → facts converter → reasoner, as one differentiable torch module."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from nsfrc.compiler import ir
from nsfrc.errors import NsfrcError
from nsfrc.models.outside import Outside
from nsfrc.perception import adopt, create, present, usable_device
from nsfrc.perception.base import Perception
from nsfrc.perception.vectors import Wishes
from nsfrc.prediction import Prediction
from nsfrc.program import Program, open_program
from nsfrc.reasoner import Reasoner, empty_values
from nsfrc.valuation import FactsConverter
from nsfrc.valuation.valued import OBJECTNESS

if TYPE_CHECKING:
    from nsfrc.inference.images import Picture

PERCEPTION = "yolo"  # where neither the caller nor the program names another
BRIGHTEST = 2.0  # beyond this a pixel is no rounding or noise, but one of 0 … 255
SURE = 0.5  # the objectness from which on an object that the program does not speak of is told of
SHOWN = 480  # pixels of the longer side of the copy of an image that a prediction shows


class Pipeline(torch.nn.Module):
    """Images → the value of every target [B, targets]; gradients reach every part.

    perception: images → objects [B, E, D]; facts: objects → V0 [B, G]; reasoner: V0 → [B, targets].
    Images are a tensor [B, 3, H, W] with values 0 … 1, the path of a file, its bytes, a PIL image, an array [H, W, 3],
    or a list of these.
    """

    def __init__(self, program: Program, perception: Perception, facts: FactsConverter, reasoner: Reasoner) -> None:
        super().__init__()
        self.program = program
        self.perception, self.facts, self.reasoner = perception, facts, reasoner
        self._everything: list[Reasoner] = []  # a list hides it from torch: there is nothing in it to learn
        self._empty: dict[float, tuple[float, ...]] = {}

    @property
    def device(self) -> torch.device:
        """Where images must be."""
        return self.facts.constant.device

    def read(self, *paths: str | Path) -> torch.Tensor:
        """Image files → images [B, 3, H, W] of the size that perception takes, where they must be.

        Raises NsfrcError with a one-line reason for a file that is no image.
        """
        if not paths:
            raise NsfrcError("read at least one image")
        for path in paths:
            if not isinstance(path, str | Path):
                raise NsfrcError(f"read takes paths, as read(*paths), not a {type(path).__name__}")
        return self._images(list(paths))[0]

    def _images(self, given: Any) -> tuple[torch.Tensor, tuple[Picture | None, ...]]:
        """Images as a tensor [B, 3, H, W], with the picture that each was made of, None for a tensor.

        Everything but tensors is brought to the size and fit that perception wants.
        """
        if isinstance(given, torch.Tensor):
            refuse_images(given)
            return given, (None,) * len(given)
        from nsfrc.inference.given import picture_of, split
        from nsfrc.inference.images import to_tensor

        parts: list[torch.Tensor] = []
        pictures: list[Picture | None] = []
        for number, one in enumerate(split(given), 1):
            if isinstance(one, torch.Tensor):
                one = one[None] if one.ndim == 3 else one
                refuse_images(one)
                parts.append(one.to(self.device))
                pictures += [None] * len(one)
            else:
                picture = picture_of(one, f"image {number}", self.perception.size, self.perception.fit, SHOWN)
                parts.append(to_tensor([picture.pixels]).to(self.device))
                pictures.append(picture)
        sizes = {tuple(part.shape[2:]) for part in parts}
        if len(sizes) > 1:
            raise NsfrcError(f"the images have different sizes, {' and '.join(map(str, sorted(sizes)))}: bring tensors "
                             f"to the size of the perception, {self.perception.size}")
        return torch.cat(parts), tuple(pictures)

    def forward(self, images: Any) -> torch.Tensor:
        given, pictures = self._images(images)
        return self.reasoner(self.facts(self.perception.see(given, _frames(pictures))))

    @torch.no_grad()
    def predict(
        self, images: Any, everything: bool = False, padded: int | None = None,
        frames: Sequence[tuple[float, ...]] | None = None,
    ) -> Prediction:
        """The same without gradients, and with what was in between. Raises NsfrcError that names the part that fails.

        everything: whether to ask for the value of all atoms too. padded: up to so many images the batch is filled with
        black ones that nobody hears of, as the last digits of convolutions depend on how many there are. An image for
        which perception gives no number has scores that are none; the others go on. frames: where in each image the
        picture lies, for tensors that were read from files.
        """
        given, pictures = self._images(images)
        batch = _filled(given, padded or 0)
        with blame(f"perception {self.perception.identity}", len(batch)):
            objects = self.perception.see(batch, _frames(pictures) if frames is None else frames)
            further = self.perception.further if isinstance(self.perception.further, torch.Tensor) else None
        found = self.judge(objects, further, everything)
        return replace(found[: len(given)], pipe=self, pictures=pictures, pixels=given)

    @torch.no_grad()
    def judge(self, objects: torch.Tensor, further: torch.Tensor | None = None, everything: bool = False) -> Prediction:
        """What the program says of object vectors [B, E, D]. further: how many more there were than these, [B].

        Of rows beyond those that the program speaks of, the ones that are as sure as not are counted too.
        """
        finite = objects.isfinite().flatten(1).all(1)
        with blame(f"the facts converter of {self.program.name}", len(objects)):
            V0 = self.facts(torch.where(finite[:, None, None], objects, 0))
        with blame(f"the reasoner of {self.program.name}", len(objects)):
            # The scores come from the same run either way, so that they never depend on what else is asked for.
            scores = torch.where(finite[:, None], self.reasoner(V0), float("nan"))
            V_T = self.all_atoms(V0) if everything else None
        return Prediction(objects, V0, scores, V_T, self._left_out(objects, further), self)

    def _left_out(self, objects: torch.Tensor, further: torch.Tensor | None) -> torch.Tensor | None:
        """How many objects of each image the program does not speak of, [B]; None where nobody can know."""
        rows = objects[:, self.spoken_of :, self.facts.columns[OBJECTNESS]]
        if not rows.shape[1]:
            return further
        left = (rows >= SURE).sum(1)
        return left if further is None else left + further.to(left.device)

    @cached_property
    def spoken_of(self) -> int:
        """How many objects the program speaks of."""
        return object_count(self.program)

    @torch.no_grad()
    def all_atoms(self, V0: torch.Tensor) -> torch.Tensor:
        """V0 → the value of every ground atom after the same steps, [B, G]."""
        if not self._everything:
            self._everything.append(_reasoner(self.program, self.reasoner.run.steps, self.reasoner.run.gamma, "all"))
        return self._everything[0].to(V0.device)(V0)


    def empty_values(self) -> tuple[float, ...]:
        """The value of every target where perception sees nothing at all: 0 under `anchored`, the drift under `paper`.

        It is the level at which the highest of several classes is called none.
        """
        gamma = float(self.reasoner.gamma)
        if gamma not in self._empty:
            self._empty[gamma] = empty_values(self.reasoner, self.device)
        return self._empty[gamma]


def _frames(pictures: Sequence[Picture | None]) -> list[tuple[float, ...]] | None:
    """Where the picture lies in each image, if perception wants to know; None where some are tensors."""
    frames = [picture.frame for picture in pictures if picture is not None and picture.frame is not None]
    return list(frames) if frames and len(frames) == len(pictures) else None


def _filled(images: torch.Tensor, count: int) -> torch.Tensor:
    """With black images up to a number of them."""
    missing = count - len(images)
    return images if missing <= 0 else torch.cat([images, images.new_zeros(missing, *images.shape[1:])])


@contextmanager
def blame(part: str, images: int) -> Iterator[None]:
    """Turn whatever is raised into an error that names the part of the pipeline it comes from."""
    try:
        yield
    except NsfrcError:
        raise
    except Exception as error:  # such as from a user's own perception
        reason = " ".join(str(error).split())
        full = isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in reason
        if full:
            raise NsfrcError(f"{images} images at once do not fit in memory: use a smaller --batch-size") from None
        raise NsfrcError(f"{part} failed: {type(error).__name__}: {reason}") from error


def pipeline(
    program: Program | str | Path,
    perception: str | type | torch.nn.Module | None = None,
    *,
    weights: str | Path | None = None,
    concepts: str | Path | None = None,
    device: str = "cpu",
    steps: int | None = None,
    gamma: float | None = None,
    beside: str | Path | None = None,
    trust: bool = False,
    conf: float | None = None,
) -> Pipeline:
    """Build a pipeline for a program: compiled, or by file (.nsfrc, .pl) or shipped name.

    perception: a registered name, a model file such as best.onnx, "module:Class", a class, or a module that is built
    already; the program's own by default, else "yolo". weights: its safetensors file. concepts: learnt parameters of
    neural predicates, instead of the shipped ones. device: "cpu", "cuda", …, or "auto" for cuda where there is one.
    steps, gamma: from the program by default. beside: the program's file, if it is opened already; "module:Class" is
    looked for in its folder too. trust: whether that module, which is code, may be imported, and a .pt file loaded.
    conf: the least confidence of an object, instead of the program's own. All of it, a module that is built already
    too, is put into evaluation mode: call `pipe.train()` before training.
    """
    if not isinstance(program, Program):
        beside = program if beside is None else beside
        program = open_program(program, Outside(perception if isinstance(perception, str) else None))
    if not program.targets:
        raise NsfrcError(f"{program.name} has no target: add :- target(...). to it")
    where = usable_device(device)
    objects = object_count(program)
    if perception is None or isinstance(perception, str | type):
        name = perception or program.settings.perception or PERCEPTION
        asker = None if perception is not None else str(beside or program.name)
        model = create(name, objects, None if weights is None else Path(weights), where, _folder(beside), trust, asker,
                       wishes_of(program.settings, conf))
        source = name if isinstance(name, str) else name.__qualname__
    elif weights is not None:
        raise NsfrcError("weights are for a perception given by name; this one is built already")
    else:
        model = present(adopt(perception, objects, where), wishes_of(program.settings, conf), by_default=False)
        source = type(perception).__qualname__
    facts = FactsConverter(program, model.dimensions, None if concepts is None else Path(concepts), source)
    # Answers must not depend on the rest of a batch, as they would with a batch norm that is left in training mode.
    return Pipeline(program, model, facts, _reasoner(program, steps, gamma, "targets")).to(where).eval()


def wishes_of(settings: ir.Settings, conf: float | None = None) -> Wishes:
    """What a program says of its detector. conf: what its user says instead."""
    if conf is not None and not 0 <= conf <= 1:
        raise NsfrcError(f"conf is a confidence from 0 to 1, not {conf!r}")
    crisp = None if settings.presence is None else settings.presence == ir.CRISP
    return Wishes(settings.names, settings.size, settings.attributes, crisp, settings.conf if conf is None else conf)


def _folder(file: str | Path | None) -> Path | None:
    """The folder of a program's file; a shipped program has none that could hold a user's module."""
    return Path(file).resolve().parent if file is not None and Path(file).is_file() else None


def refuse_images(images: torch.Tensor) -> None:
    """Raise where images are not [B, 3, H, W] in floating point."""
    if images.ndim != 4 or images.shape[1] != 3:
        hint = ""
        if images.ndim == 3 and images.shape[0] == 3:
            hint = ": images[None] makes a batch of one image"
        elif images.ndim == 4 and images.shape[3] == 3:
            hint = ": images.permute(0, 3, 1, 2) puts colours before rows"
        raise NsfrcError(f"images have shape {list(images.shape)}; a pipeline takes [B, 3, H, W]{hint}")
    if not images.is_floating_point():
        hint = ": images / 255 brings bytes there; pipe.read does so for files" if images.dtype == torch.uint8 else ""
        raise NsfrcError(f"images are {images.dtype}; they must be floating point with values 0 … 1{hint}")
    # Elsewhere a look at the values would wait for the card.
    look = images.device.type == "cpu" and images.numel() and not torch.compiler.is_compiling()
    if look and (most := float(images.detach().amax())) > BRIGHTEST:
        raise NsfrcError(f"images have values up to {most:g}; they must be 0 … 1: images / 255 brings bytes there")


def object_count(program: Program) -> int:
    """How many objects perception must find: those of the one object type that predicates speak of."""
    herbrand = program.ground.herbrand
    types = [t for t in herbrand.types if t.role == ir.OBJECT]
    if not types:
        raise NsfrcError(f"{program.name} has no objects, so images tell it nothing: add :- type(object, slots(4)).")
    spoken_of = {name for predicate in herbrand.predicates for name in predicate.types}
    names = [ir.quoted(t.name) for t in types if t.name in spoken_of]
    if len(names) > 1:
        # Constant i of every type would be row i of what perception sees: an object would be beside itself.
        raise NsfrcError(
            f"{program.name} has {len(names)} object types, {', '.join(names[:-1])} and {names[-1]}; perception gives "
            f"one list of objects: use one type, and a neural predicate to tell its kinds apart"
        )
    return max(len(t.constants) for t in types if t.name in spoken_of or not names)


def _reasoner(program: Program, steps: int | None, gamma: float | None, outputs: str) -> Reasoner:
    with warnings.catch_warnings():
        if outputs == "all":
            warnings.simplefilter("ignore")  # said when the pipeline was built
        return program.reasoner(steps=steps, gamma=gamma, outputs=outputs, inputs="neural")
