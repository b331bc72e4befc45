# SPDX-License-Identifier: Apache-2.0
"""Recipe of a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..robot import Robot
from .program import Program


@dataclass(frozen=True)
class Recipe:
    """How to trace a program for a robot.

    Attributes:
        name: name of the program.
        trace: traces the program for a robot.
        details: what the program depends on beside the name and the dynamics of the robot, such as a frame.
    """

    name: str
    trace: Callable[[Any], Program]
    details: tuple[str, ...] = ()

    def __call__(self, robot: Robot | None) -> Program:
        """The program for a robot; None where it depends on none."""
        return self.trace(robot)
