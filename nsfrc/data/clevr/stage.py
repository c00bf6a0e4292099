"""What `blender` renders with, built in code: camera, lights, floor, materials and shapes."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

from nsfrc.data.clevr.scenes import COLORS
from nsfrc.perception.camera import LENS, SENSOR

# Where the lights stand, how strong they are (watts) and how wide; places differ a little each time.
LIGHTS = {
    "key": ((6.45, -2.91, 4.26), 78.0, 1.0), "fill": ((-4.67, -4.01, 3.01), 26.0, 1.0),
    "back": ((-1.17, 2.65, 5.82), 39.0, 1.0),
}
SUN = 0.47
SKY = 0.12
FLOOR = 0.66


def add_camera(stage: Any) -> None:
    import bpy

    lens = bpy.data.cameras.new("camera")
    lens.lens, lens.sensor_width = LENS, SENSOR
    stage.camera = bpy.data.objects.new("camera", lens)
    stage.collection.objects.link(stage.camera)


def add_lights(stage: Any) -> None:
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


def add_floor(stage: Any) -> None:
    import bmesh
    import bpy

    mesh = bpy.data.meshes.new("floor")
    with _building(mesh) as shape:
        bmesh.ops.create_grid(shape, size=60.0)
    mesh.materials.append(_surface("floor", (FLOOR,) * 3, metallic=0.0, roughness=0.9, specular=0.1))
    stage.collection.objects.link(bpy.data.objects.new("floor", mesh))


def material(material: str, color: str) -> Any:
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
    try:
        yield shape
        shape.to_mesh(mesh)
    finally:
        shape.free()


def mesh(kind: str) -> Any:
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
