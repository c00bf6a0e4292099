"""Pictures of scenes by Blender's Cycles, from the `bpy` package; the only module that imports it.

Shapes, materials and lights are built here in code. Blender writes to standard output as it likes and keeps state for
the whole process, so it runs in processes of its own: `rendered` starts them.
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

from nsfrc.artifact import write_whole
from nsfrc.camera import LENS, SENSOR
from nsfrc.data.clevr.scenes import COLORS, Scene, Thing
from nsfrc.errors import NsfrcError


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


# Where the lights stand, how strong they are (watts) and how wide; each place differs by up to 1 either way.
LIGHTS = {
    "key": ((6.45, -2.91, 4.26), 78.0, 1.0), "fill": ((-4.67, -4.01, 3.01), 26.0, 1.0),
    "back": ((-1.17, 2.65, 5.82), 39.0, 1.0),
}
LIGHT_JITTER = 1.0
STRENGTH = 0.25  # lights are up to so much stronger or weaker than usual
SUN = 0.47
SKY = 0.12
FLOOR = 0.66
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
            with _without_ctrl_c():
                waiting.append((job, None if job.path.exists() else pool.submit(_render, job)))
            if len(waiting) > 2 * workers:
                yield _done(*waiting.popleft())
        while waiting:
            yield _done(*waiting.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


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
        raise NsfrcError(f"Blender stopped while it made {job.path}: try again with fewer --workers") from None
    except (RuntimeError, OSError) as error:
        raise NsfrcError(f"Blender could not make {job.path}: {error}") from None
    return job


_stage: dict[str, Any] = {}  # of a process that renders: the scene in Blender, and what is used again


def _begin(quality: Quality) -> None:
    """Set up Blender in a new process: quiet, on one thread, with an empty stage."""
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
    _stage["materials"] = {(m, c): _material(m, c) for m in ("rubber", "metal") for c in COLORS}
    _stage["meshes"] = {shape: _mesh(shape) for shape in ("sphere", "cube", "cylinder")}
    _add_camera(stage)
    _add_lights(stage)
    _add_floor(stage)


def _render(job: Job) -> None:
    """One picture, written whole or not at all."""
    import bpy

    stage = _stage["scene"]
    rng = np.random.default_rng(job.seed)
    placed = [_place(stage, thing) for thing in job.scene.things]
    camera = stage.camera
    camera.location = job.scene.camera.place
    camera.rotation_euler = _towards_origin(job.scene.camera.place)
    for name, (place, watts, _) in LIGHTS.items():
        light = stage.objects[name]
        light.location = np.array(place) + rng.uniform(-LIGHT_JITTER, LIGHT_JITTER, 3)
        light.rotation_euler = _towards_origin(light.location)
        light.data.energy = watts * (1 + rng.uniform(-STRENGTH, STRENGTH))
    stage.cycles.seed = int(rng.integers(2**31))
    with tempfile.TemporaryDirectory() as folder:
        stage.render.filepath = os.path.join(folder, "picture.png")
        bpy.ops.render.render(write_still=True)
        picture = Path(stage.render.filepath).read_bytes()
    for thing in placed:
        bpy.data.objects.remove(thing)
    write_whole(job.path, picture)


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


def _add_camera(stage: Any) -> None:
    import bpy

    lens = bpy.data.cameras.new("camera")
    lens.lens, lens.sensor_width = LENS, SENSOR
    stage.camera = bpy.data.objects.new("camera", lens)
    stage.collection.objects.link(stage.camera)


def _add_lights(stage: Any) -> None:
    import bpy

    for name, (_, _, wide) in LIGHTS.items():
        light = bpy.data.lights.new(name, "AREA")
        light.size = wide
        stage.collection.objects.link(bpy.data.objects.new(name, light))
    sun = bpy.data.lights.new("sun", "SUN")
    sun.energy, sun.angle = SUN, 0.5
    stage.collection.objects.link(bpy.data.objects.new("sun", sun))
    stage.world = bpy.data.worlds.new("world")
    stage.world.use_nodes = True
    stage.world.node_tree.nodes["Background"].inputs["Strength"].default_value = SKY
    stage.world.node_tree.nodes["Background"].inputs["Color"].default_value = (0.5, 0.5, 0.5, 1.0)


def _add_floor(stage: Any) -> None:
    import bmesh
    import bpy

    mesh = bpy.data.meshes.new("floor")
    with _building(mesh) as shape:
        bmesh.ops.create_grid(shape, size=60.0)
    mesh.materials.append(_surface("floor", (FLOOR,) * 3, metallic=0.0, roughness=0.9, specular=0.1))
    stage.collection.objects.link(bpy.data.objects.new("floor", mesh))


def _material(material: str, color: str) -> Any:
    # CLEVR's numbers are taken as they are for the share of light that comes back, without sRGB's curve.
    share = tuple(value / 255 for value in COLORS[color])
    if material == "metal":
        return _surface(f"metal {color}", share, metallic=1.0, roughness=0.2, specular=0.5)
    return _surface(f"rubber {color}", share, metallic=0.0, roughness=0.55, specular=0.25)


def _surface(name: str, share: tuple[float, ...], metallic: float, roughness: float, specular: float) -> Any:
    import bpy

    made = bpy.data.materials.new(name)
    made.use_nodes = True
    shader = made.node_tree.nodes["Principled BSDF"]
    shader.inputs["Base Color"].default_value = (*share, 1.0)
    shader.inputs["Metallic"].default_value = metallic
    shader.inputs["Roughness"].default_value = roughness
    shader.inputs["Specular IOR Level"].default_value = specular
    return made


@contextlib.contextmanager
def _building(mesh: Any) -> Generator[Any, None, None]:
    import bmesh

    shape = bmesh.new()
    yield shape
    shape.to_mesh(mesh)
    shape.free()


def _mesh(kind: str) -> Any:
    """A shape of radius 1, smooth, its edges slightly rounded."""
    import bmesh
    import bpy

    mesh = bpy.data.meshes.new(kind)
    with _building(mesh) as shape:
        if kind == "sphere":
            bmesh.ops.create_uvsphere(shape, u_segments=64, v_segments=32, radius=1.0)
        elif kind == "cube":
            bmesh.ops.create_cube(shape, size=2.0)
            _round(shape, list(shape.edges), 0.12)
        else:
            bmesh.ops.create_cone(shape, cap_ends=True, segments=64, radius1=1.0, radius2=1.0, depth=2.0)
            rims = [e for e in shape.edges if abs(e.verts[0].co.z - e.verts[1].co.z) < 1e-6]
            _round(shape, rims, 0.06)
        for face in shape.faces:
            face.smooth = kind == "sphere" or face.calc_area() < 0.5  # not the flat sides, which the edges would bend
    mesh.materials.append(None)
    return mesh


def _round(shape: Any, edges: list[Any], by: float) -> None:
    import bmesh

    bmesh.ops.bevel(shape, geom=edges, offset=by, offset_type="OFFSET", segments=4, profile=0.5, affect="EDGES")
