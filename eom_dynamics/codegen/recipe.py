# SPDX-License-Identifier: Apache-2.0
"""Recipe of a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..robot import Robot
from .cache import digest
from .program import Program


@dataclass(frozen=True)
class Recipe:
    """How to trace a program for a robot.

    Attributes:
        name: name of the program.
        trace: traces the program for a robot.
        details: what the program depends on beside the name and the dynamics of the robot, such as a frame.
        of_links: whether it depends on the dynamics of the robot.
    """

    name: str
    trace: Callable[[Robot], Program]
    details: tuple[str, ...] = ()
    of_links: bool = True

    def __call__(self, robot: Robot) -> Program:
        """The program for a robot."""
        return self.trace(robot)


def recipe_of(program: Program) -> Recipe:
    """Recipe of a program that has been traced, for any robot."""
    content = digest(repr(program.inputs), repr(program.outputs), repr(program.nodes), repr(program.results))
    return Recipe(program.name.removeprefix("eom_"), lambda robot: program, (content,), of_links=False)
