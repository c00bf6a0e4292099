"""Pictures of scenes by Blender's Cycles, from the `bpy` package, which only this module and `stage` import.

Blender writes to standard output as it likes and keeps state for the whole process, so it runs in processes of its
own: `rendered` starts them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing
import os
import signal
import tempfile
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from nsfrc.data.clevr.scenes import COLORS, Scene, Thing
from nsfrc.data.clevr.stage import LIGHTS, add_camera, add_floor, add_lights, material, mesh
from nsfrc.data.png import png
from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole


@dataclass(frozen=True)
class Quality:
    """Size in pixels, and paths a pixel; the picture is denoised afterwards."""

    width: int = 480
    height: int = 320
    samples: int = 32


@dataclass(frozen=True)
class Job:
    """A picture to make: which scene, into which file, and the seed of what differs between pictures."""

    scene: Scene
    path: Path
    seed: tuple[int, ...]


LIGHT_JITTER = 1.0  # of each coordinate of a light's place, either way
STRENGTH = 0.25  # lights are up to so much stronger or weaker than usual
RENEWED = 400  # pictures after which a process is replaced, so that Blender's memory does not grow for ever


def check_blender() -> None:
    """Raise NsfrcError where there is no Blender to render with."""
    if importlib.util.find_spec("bpy") is None:
        raise NsfrcError("pictures need Blender's bpy package: pip install 'nsfrc[clevr]', "
                         "or make scenes without pictures with --no-render")


def rendered(jobs: Iterable[Job], quality: Quality, workers: int = 1) -> Generator[Job, None, None]:
    """Make pictures in `workers` processes of a thread each; yields each job, in order, when its picture is on disk.

    A picture that is there already is not made again.
    """
    check_blender()
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _begin, (quality,), max_tasks_per_child=RENEWED)
    waiting: deque[tuple[Job, Future[None] | None]] = deque()
    try:
        for job in jobs:
            waiting.append((job, None if job.path.exists() else _submitted(pool, job)))
            if len(waiting) > 2 * workers:
                yield _done(*waiting.popleft())
        while waiting:
            yield _done(*waiting.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


def _submitted(pool: ProcessPoolExecutor, job: Job) -> Future[None]:
    try:
        with _without_ctrl_c():
            return pool.submit(_render, job)
    except BrokenProcessPool:
        raise _stopped(job) from None


@contextlib.contextmanager
def _without_ctrl_c() -> Generator[None, None, None]:
    """Ctrl-C waits; processes that are started meanwhile never hear of it: the one that starts them decides."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _done(job: Job, picture: Future[None] | None) -> Job:
    try:
        if picture is not None:
            picture.result()
    except BrokenProcessPool:
        raise _stopped(job) from None
    except (RuntimeError, OSError) as error:
        raise NsfrcError(f"Blender could not make {job.path}: {error}") from None
    return job


def _stopped(job: Job) -> NsfrcError:
    return NsfrcError(f"Blender stopped while it made {job.path}: try again with fewer --workers")


_stage: dict[str, Any] = {}  # of a process that renders: the scene in Blender, and what is used again; or "failure"


def _begin(quality: Quality) -> None:
    """Set up Blender in a new process. Why it cannot be is kept for `_render` to tell: here it would break the pool."""
    try:
        _set_up(quality)
    except ImportError as error:
        _stage["failure"] = f"pictures need Blender's bpy package, which cannot be imported: {error}"
    except Exception as error:  # whatever it is, the user should read the reason and no traceback
        _stage["failure"] = f"Blender cannot be set up: {error or type(error).__name__}"


def _set_up(quality: Quality) -> None:
    """Blender quiet, on one thread, with an empty stage."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    import bpy

    bpy.ops.wm.read_factory_settings(use_empty=True)
    stage = bpy.context.scene
    stage.render.engine = "CYCLES"
    stage.render.resolution_x, stage.render.resolution_y = quality.width, quality.height
    stage.render.resolution_percentage = 100
    stage.render.threads_mode, stage.render.threads = "FIXED", 1
    stage.render.image_settings.color_mode = "RGB"
    stage.view_settings.view_transform = "Standard"
    cycles = stage.cycles
    cycles.device, cycles.samples, cycles.use_denoising = "CPU", quality.samples, True
    cycles.denoising_prefilter = "FAST"  # half of the time of a small picture otherwise
    cycles.max_bounces, cycles.diffuse_bounces, cycles.glossy_bounces = 4, 2, 3
    cycles.caustics_reflective = cycles.caustics_refractive = False
    cycles.blur_glossy = 2.0
    _stage["scene"] = stage
    _stage["materials"] = {(m, c): material(m, c) for m in ("rubber", "metal") for c in COLORS}
    _stage["meshes"] = {shape: mesh(shape) for shape in ("sphere", "cube", "cylinder")}
    add_camera(stage)
    add_lights(stage)
    add_floor(stage)


def _render(job: Job) -> None:
    """One picture, written whole or not at all."""
    if "failure" in _stage:
        raise NsfrcError(f"{_stage['failure']}; --no-render makes scenes without pictures")
    stage = _stage["scene"]
    rng = np.random.default_rng(job.seed)
    with _things(stage, job.scene.things):
        stage.camera.location = job.scene.camera.place
        stage.camera.rotation_euler = _towards_origin(job.scene.camera.place)
        _vary_lights(stage, rng)
        stage.cycles.seed = int(rng.integers(2**31))
        picture = _picture(stage)
    write_whole(job.path, picture)


@contextlib.contextmanager
def _things(stage: Any, things: Iterable[Thing]) -> Generator[None, None, None]:
    """Things on the stage; whatever happens they leave it, or the next picture would show them too."""
    import bpy

    placed: list[Any] = []
    try:
        for thing in things:
            placed.append(_place(stage, thing))
        yield
    finally:
        for one in placed:
            bpy.data.objects.remove(one)


def _vary_lights(stage: Any, rng: np.random.Generator) -> None:
    for name, (place, watts, _) in LIGHTS.items():
        light = stage.objects[name]
        light.location = np.array(place) + rng.uniform(-LIGHT_JITTER, LIGHT_JITTER, 3)
        light.rotation_euler = _towards_origin(light.location)
        light.data.energy = watts * (1 + rng.uniform(-STRENGTH, STRENGTH))


def _picture(stage: Any) -> bytes:
    import bpy

    with tempfile.TemporaryDirectory() as folder:
        stage.render.filepath = os.path.join(folder, "picture.png")
        bpy.ops.render.render(write_still=True)
        with Image.open(stage.render.filepath) as made:
            return png(np.asarray(made.convert("RGB")))  # without the dates and times that Blender adds


def _place(stage: Any, thing: Thing) -> Any:
    import bpy

    placed = bpy.data.objects.new("thing", _stage["meshes"][thing.shape])
    placed.location, placed.scale = thing.coords, (thing.radius,) * 3
    placed.rotation_euler = (0.0, 0.0, np.radians(thing.rotation))
    placed.material_slots[0].link = "OBJECT"
    placed.material_slots[0].material = _stage["materials"][thing.material, thing.color]
    stage.collection.objects.link(placed)
    return placed


def _towards_origin(place: Any) -> Any:
    from mathutils import Vector

    return (-Vector(place)).to_track_quat("-Z", "Y").to_euler()
