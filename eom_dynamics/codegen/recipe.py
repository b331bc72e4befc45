# SPDX-License-Identifier: Apache-2.0
"""Recipes of programs: inputs, outputs and computation; digests for the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..actuators.parameters import written_entries
from ..recursion import PARAMETERS
from ..robot import Robot
from .cache import digest
from .expressions import Expression, Scalar
from .program import Program, trace

if TYPE_CHECKING:
    from importlib.abc import Traversable


Inputs: TypeAlias = Mapping[str, list[Expression]]
"""Entries of the input vectors by name, in order."""

Outputs: TypeAlias = Sequence[Sequence[Scalar]]
"""Entries of the output vectors, in order."""


@dataclass(frozen=True)
class Recipe:
    """Recipe to trace a program for a robot.

    Attributes:
        name: name of the program.
        build: traces the program for a robot.
        details: further dependencies of the program, such as a frame, in addition to its name and the robot's dynamics.
        inputs, outputs: names of the vectors, if declared.
    """

    name: str
    build: Callable[[Any], Program]
    details: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    def __call__(self, robot: Robot | None) -> Program:
        """Program for a robot; None if it depends on no robot."""
        return self.build(robot)


def declared(
    name: str,
    inputs: Iterable[str],
    outputs: Iterable[str],
    compute: Callable[[Robot, Inputs], Outputs],
    details: tuple[str, ...] = (),
    lengths: Mapping[str, int] | None = None,
) -> Recipe:
    """Recipe of a computation for a robot.

    Args:
        compute: takes the robot and the inputs; returns the outputs in order.
        lengths: lengths of inputs that do not follow from their names.
    """
    names, results = tuple(inputs), tuple(outputs)

    def build(robot: Robot) -> Program:
        sizes = {vector: (lengths or {}).get(vector, _length(robot, vector)) for vector in names}
        return trace(name, sizes, lambda x: dict(zip(results, compute(robot, x), strict=True)))

    return Recipe(name, build, details, names, results)


def levels(x: Inputs, name: str) -> list[list[Expression]]:
    """A vector and its time derivatives x, xd, xdd, …, as far as they are inputs."""
    return [entries for vector, entries in x.items() if vector.rstrip("d") == name]


def _length(robot: Robot, vector: str) -> int:
    """Number of entries of a vector of one state, or of its time derivative."""
    n, tools = robot.n, len(robot.tools)
    lengths = {"W": 6 * tools, "P": PARAMETERS * tools, "pose": 16, "nu": 6 + n, "w": 3, "f": 3, "V": 6, "point": 3}
    return lengths.get(vector.rstrip("d"), n)


# The modules of this package that trace and emit kernels.
_GENERATOR = ("jet.py", "jet_functions.py", "elementary.py", "lie", "actuators", "recursion", "codegen")


def kernel_fingerprint(robot: Robot | None, recipe: Recipe) -> str:
    """Digest of a program, its robot and the code generator."""
    links = "" if robot is None else _robot_fingerprint(robot)
    return digest("kernel", links, recipe.name, *recipe.details, generator_fingerprint())


@cache
def generator_fingerprint() -> str:
    """Digest of the source files of the code generator."""
    package = resources.files(__package__.rpartition(".")[0])
    return digest(*(file.read_bytes() for name in _GENERATOR for file in _files(package / name)))


def _robot_fingerprint(robot: Robot) -> str:
    """Digest of all robot properties on which the dynamics depend."""
    parts: list[bytes | str] = [np.asarray(robot.gravity).tobytes()]
    parts += [array.tobytes() for array in robot.coupling]
    for tool in robot.tools:
        parts += [str(tool.joint), np.ascontiguousarray(tool.pose).tobytes()]
    for joint in robot.joints:
        numbers = [joint.screw, joint.reference_pose, joint.center_of_mass, joint.inertia_about_origin]
        parts += [str(joint.parent), float(joint.mass).hex(), *(np.ascontiguousarray(x).tobytes() for x in numbers)]
    for joint in robot.joints:
        spring = joint.parallel_spring
        parts += [float(joint.constant_effort).hex(), repr(None if spring is None else written_entries(spring))]
    if robot.joint_friction:
        laws = [joint.friction_law for joint in robot.joints]
        parts += [float(x).hex() for law in laws for x in (law.viscous, law.coulomb, law.smoothing_velocity)]
    if robot.joint_rotors:
        parts += ["rotors", robot.rigid_rotors.tobytes()]
    return digest(*parts)


def _files(at: Traversable) -> Iterator[Traversable]:
    """The file, or the folder's source files in a fixed order."""
    if at.is_file():
        yield at
        return
    for entry in sorted(at.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith((".py", ".c", ".h", ".in")) or (entry.is_dir() and entry.name == "csrc"):
            yield from _files(entry)
