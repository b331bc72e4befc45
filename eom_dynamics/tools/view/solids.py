# SPDX-License-Identifier: Apache-2.0
"""Solids that show a robot: the visual geometry of its URDF, and rods and joints where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlparse

import numpy as np
import trimesh

from ... import lie
from ...arrays import Array
from ...exceptions import RobotDescriptionError
from ...kinematics.forward import body_poses
from ...robot import Joint, Robot
from ...robot.readers.element import Element
from ...robot.readers.loading import urdf_of
from ...robot.readers.packages import PACKAGE, located
from ...robot.readers.xml import parse

Colour = tuple[int, int, int]

_GREY: Colour = (190, 192, 198)

# m: two points closer than this are one.
_SAME = 1e-6


class Solid(NamedTuple):
    """A mesh on a body.

    Attributes:
        body: index of the joint that moves it; -1 for the base.
        mesh: in the body's frame, m.
        colour: red, green and blue, 0 to 255.
    """

    body: int
    mesh: trimesh.Trimesh
    colour: Colour


# --- Simple solids ----------------------------------------------------------------------------


def points_of(robot: Robot, q: Array) -> Array:
    """Positions (N, 3) of the base, joints, centres of mass and tools at q (n,), m."""
    poses = [np.eye(4), *body_poses(robot, q)]
    points = [pose[:3, 3] for pose in poses]
    points += [lie.transformed(poses[i], x.center_of_mass) for i, x in enumerate(robot.joints, start=1) if x.mass]
    points += [(poses[tool.joint + 1] @ tool.pose)[:3, 3] for tool in robot.tools]
    return np.stack(points)


def size_of(robot: Robot, q: Array) -> float:
    """Size of a robot at q (n,): the largest distance of its points from the base, m; 1 if all are there."""
    return float(np.max(np.linalg.norm(points_of(robot, q), axis=-1))) or 1.0


def rods(robot: Robot, size: float) -> list[Solid]:
    """Rods from each joint to the next ones, and on the last bodies to their tools or centres of mass."""
    found = []
    for body in range(-1, len(robot.joints)):
        ends = [joint.reference_pose[:3, 3] for joint in robot.joints if joint.parent == body]
        ends += [tool.pose[:3, 3] for tool in robot.tools if tool.joint == body]
        if body >= 0 and max(map(np.linalg.norm, ends), default=0.0) < _SAME:
            ends.append(robot.joints[body].center_of_mass)
        parts = [rod(np.zeros(3), end, 0.02 * size) for end in ends if np.linalg.norm(end) > _SAME]
        if parts:
            found.append(Solid(body, _joined(parts), _GREY))
    return found


def rod(start: Array, end: Array, radius: float) -> trimesh.Trimesh:
    """A cylinder with round ends between two points."""
    balls = [trimesh.creation.icosphere(2, radius).apply_translation(point) for point in (start, end)]
    return _joined([trimesh.creation.cylinder(radius, segment=[start, end]), *balls])


def hub(joint: Joint, size: float) -> trimesh.Trimesh:
    """The cylinder of a joint about its axis; of a prismatic one a box along it."""
    along = trimesh.geometry.align_vectors([0.0, 0.0, 1.0], joint.axis)
    if joint.type == "prismatic":
        return trimesh.creation.box(size * np.array([0.05, 0.05, 0.12]), along)
    return trimesh.creation.cylinder(0.032 * size, 0.1 * size, transform=along)


def dial(joint: Joint, size: float) -> tuple[trimesh.Trimesh, trimesh.Trimesh]:
    """A motor beside its joint, with a hand that turns or moves with it, and the same hand for the link."""
    axis = joint.axis
    across = joint.center_of_mass - (joint.center_of_mass @ axis) * axis
    if np.linalg.norm(across) < _SAME:
        across = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    direction = across / np.linalg.norm(across)

    def hand(height: float, radius: float) -> trimesh.Trimesh:
        return rod(height * size * axis, height * size * axis + 0.2 * size * direction, radius * size)

    ends = size * np.array([[0.06], [0.1]]) * axis
    motor = trimesh.creation.cylinder(0.06 * size, segment=ends)
    return _joined([motor, hand(0.08, 0.01)]), hand(0.08, 0.005)


def _joined(parts: Sequence[trimesh.Trimesh]) -> trimesh.Trimesh:
    mesh: Any = trimesh.util.concatenate(list(parts))
    return mesh


# --- Visual geometry of a URDF ----------------------------------------------------------------


def visual_solids(source: str, robot: Robot, xacro_arguments: Mapping[str, str]) -> tuple[list[Solid], list[str]]:
    """Load the visual geometry of the URDF that a robot comes from.

    Args:
        source: as for :func:`eom_dynamics.load_robot`.
        robot: the robot, or the part of it, that was loaded.
        xacro_arguments: as for :func:`eom_dynamics.load_robot`.

    Returns:
        The solids, none if the robot does not come from a URDF; and a line for meshes that cannot be loaded.
    """
    found = urdf_of(source, xacro_arguments)
    if found is None:
        return [], []
    text, path = found
    root, folder = parse(text, str(path)), path.parent.resolve()
    frames = {frame.name: frame for frame in robot.frames}
    named = {material.attributes.get("name"): material for material in root.all("material")}
    solids, failures = [], []
    for name, link in root.named("link").items():
        for visual in link.all("visual") if name in frames else ():
            try:
                material = visual.child("material")
                own = None if material is None else _colour(material) or _colour(named.get(material.attributes["name"]))
                pose = frames[name].pose @ _origin(visual)
                for mesh in _meshes(visual, folder):
                    solids.append(Solid(frames[name].joint, mesh.apply_transform(pose), own or _main_colour(mesh)))
            except Exception as error:  # of a visual, which the reader of robots ignores, and of readers of meshes
                failures.append(f"{name}: {error}")
    lines = [f"{len(failures)} visuals cannot be shown, the first: {failures[0]}"] if failures else []
    return solids, lines


def _meshes(visual: Element, folder: Path) -> list[trimesh.Trimesh]:
    """The meshes of a visual, in its frame; scaled, and with the transforms of their file applied."""
    shape = visual.needed("geometry").children[0]
    if shape.tag == "box":
        return [trimesh.creation.box(shape.vector("size"))]
    if shape.tag == "sphere":
        return [trimesh.creation.icosphere(3, shape.number("radius"))]
    if shape.tag == "cylinder":
        return [trimesh.creation.cylinder(shape.number("radius"), shape.number("length"))]
    scene = trimesh.load_scene(_located(shape.word("filename"), folder))
    scale = np.diag([*shape.vector("scale", (1.0, 1.0, 1.0)), 1.0])
    meshes = [mesh.apply_transform(scale) for mesh in scene.dump() if isinstance(mesh, trimesh.Trimesh)]
    if not meshes:
        raise RobotDescriptionError(f"{shape.word('filename')} has no mesh")
    return meshes


def _located(name: str, folder: Path) -> str:
    """The path of a mesh: of a package that is installed or lies around the URDF, or relative to the URDF."""
    if not name.startswith(PACKAGE):
        return str(folder / (unquote(urlparse(name).path) if name.startswith("file://") else name))
    package, _, rest = name.removeprefix(PACKAGE).partition("/")
    for parent in folder.parents:
        if (parent / package / rest).is_file():
            return str(parent / package / rest)
    try:
        return located(name)
    except LookupError as error:
        raise RobotDescriptionError(str(error)) from None


def _origin(visual: Element) -> Array:
    origin = visual.child("origin")
    if origin is None:
        return np.eye(4)
    zero = (0.0, 0.0, 0.0)
    return np.asarray(lie.pose(lie.rotation_from_rpy(origin.vector("rpy", zero)), origin.vector("xyz", zero)))


def _colour(material: Element | None) -> Colour | None:
    colour = None if material is None else material.child("color")
    if colour is None:
        return None
    red, green, blue = (round(255 * min(max(float(x), 0.0), 1.0)) for x in colour.word("rgba").split()[:3])
    return red, green, blue


def _main_colour(mesh: Any) -> Colour:
    """The colour of a mesh by its file."""
    if not mesh.visual.defined:
        return _GREY
    look = mesh.visual.material if mesh.visual.kind == "texture" else mesh.visual
    red, green, blue = (int(x) for x in look.main_color[:3])
    return red, green, blue
