# SPDX-License-Identifier: Apache-2.0
"""Recipes of programs: what they take and return, declared once, and how they are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..recursion import PARAMETERS
from ..robot import Robot
from .expressions import Expression, Scalar
from .program import Program, trace

Inputs: TypeAlias = Mapping[str, list[Expression]]
"""Entries of the input vectors by name, in order."""


@dataclass(frozen=True)
class Recipe:
    """How to trace a program for a robot.

    Attributes:
        name: name of the program.
        build: traces the program for a robot.
        details: what the program depends on beside the name and the dynamics of the robot, such as a frame.
        inputs, outputs: names of the vectors, if they are declared.
    """

    name: str
    build: Callable[[Any], Program]
    details: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    def __call__(self, robot: Robot | None) -> Program:
        """The program for a robot; None where it depends on none."""
        return self.build(robot)


def declared(
    name: str,
    inputs: Iterable[str],
    outputs: Iterable[str],
    compute: Callable[[Robot, Inputs], Sequence[Sequence[Scalar]]],
    details: tuple[str, ...] = (),
    lengths: Mapping[str, int] | None = None,
) -> Recipe:
    """Recipe of a computation for a robot.

    Args:
        compute: takes the robot and the inputs, and returns the outputs in order.
        lengths: of inputs whose length does not follow from their name.
    """
    given, found = tuple(inputs), tuple(outputs)

    def build(robot: Robot) -> Program:
        sizes = {vector: (lengths or {}).get(vector, _length(robot, vector)) for vector in given}
        return trace(name, sizes, lambda x: dict(zip(found, compute(robot, x), strict=True)))

    return Recipe(name, build, details, given, found)


def levels(x: Inputs, name: str) -> list[list[Expression]]:
    """A vector with those of its time derivatives that are inputs: those of x, xd, xdd, …."""
    return [entries for vector, entries in x.items() if vector.rstrip("d") == name]


def _length(robot: Robot, vector: str) -> int:
    """Number of entries of a vector of one state, or of its time derivatives."""
    n, tools = robot.n, len(robot.tools)
    lengths = {"W": 6 * tools, "P": PARAMETERS * tools, "pose": 16, "nu": 6 + n, "w": 3, "f": 3, "V": 6, "point": 3}
    return lengths.get(vector.rstrip("d"), n)
