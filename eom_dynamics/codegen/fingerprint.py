# SPDX-License-Identifier: Apache-2.0
"""Digests of the inputs of a kernel's source: robot, program and code generator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from ..robot import Robot
from .cache import digest
from .recipe import Recipe

if TYPE_CHECKING:
    from importlib.abc import Traversable

# The modules of this package that trace and emit kernels.
_GENERATOR = ("jet.py", "jet_functions.py", "elementary.py", "lie", "actuators", "recursion", "codegen")


def kernel_fingerprint(robot: Robot | None, recipe: Recipe) -> str:
    """Digest of a program, of the robot that it depends on, and of the code generator."""
    links = "" if robot is None else _robot_fingerprint(robot)
    return digest("kernel", links, recipe.name, *recipe.details, generator_fingerprint())


@cache
def generator_fingerprint() -> str:
    """Digest of the source files of the code generator."""
    package = resources.files(__package__.rpartition(".")[0])
    return digest(*(file.read_bytes() for name in _GENERATOR for file in _files(package / name)))


def _robot_fingerprint(robot: Robot) -> str:
    """Digest of all properties of a robot on which its dynamics depend."""
    parts: list[bytes | str] = [np.asarray(robot.gravity).tobytes()]
    parts += [array.tobytes() for array in robot.coupling]
    for tool in robot.tools:
        parts += [str(tool.joint), np.ascontiguousarray(tool.pose).tobytes()]
    for joint in robot.joints:
        numbers = [joint.screw, joint.reference_pose, joint.center_of_mass, joint.inertia_about_origin]
        parts += [str(joint.parent), float(joint.mass).hex(), *(np.ascontiguousarray(x).tobytes() for x in numbers)]
    for joint in robot.joints:
        spring = joint.parallel_spring
        parts += [float(joint.constant_effort).hex(), repr(None if spring is None else spring.entries())]
    if robot.joint_friction:
        parts += [float(x).hex() for joint in robot.joints for x in (joint.damping, joint.friction)]
    if robot.joint_rotors:
        parts += ["rotors", robot.rigid_rotors.tobytes()]
    return digest(*parts)


def _files(at: Traversable) -> Iterator[Traversable]:
    """The file, or the source files of the folder, in a fixed order."""
    if at.is_file():
        yield at
        return
    for entry in sorted(at.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith((".py", ".c", ".h", ".in")) or (entry.is_dir() and entry.name == "csrc"):
            yield from _files(entry)
