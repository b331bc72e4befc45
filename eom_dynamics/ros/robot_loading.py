# SPDX-License-Identifier: Apache-2.0
"""What a source gives as a robot, and the solver that comes of it."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..actuators import ElasticArm
from ..exceptions import EomDynamicsError
from ..robot import Robot, robot_from_parameters, robot_from_urdf
from ..stream.solver import Solver
from .parameters import ROBOT, URDF, nested


class Given(Protocol):
    """A robot as a source gives it, not looked into yet. Those that say the same are equal."""

    def robot(self) -> Robot:
        """Read it; RobotDescriptionError if it cannot be used."""
        ...


@dataclass(frozen=True)
class GivenSection:
    """The parameters of a robot, by their names after ``robot.``; ``source`` starts every message about them."""

    parameters: Mapping[str, Any]
    source: str

    def robot(self) -> Robot:
        """Read it; RobotDescriptionError if it cannot be used."""
        return robot_from_parameters(nested(self.parameters, ROBOT, self.source), self.source)


@dataclass(frozen=True)
class GivenUrdf:
    """A URDF, and the node's parameters that add to it by their names after ``urdf.``."""

    text: str
    additions: Mapping[str, Any]
    source: str

    def robot(self) -> Robot:
        """Read it; RobotDescriptionError if it cannot be used."""
        return robot_from_urdf(self.text, nested(self.additions, URDF, "parameters"), self.source)


@dataclass(frozen=True)
class Loaded:
    """What came of a robot that was given.

    Attributes:
        given: the robot as it was given.
        solver: ready to answer; None where the robot cannot be used.
        doubts: warnings about it.
        error: why it cannot be used, on one line.
        detail: a traceback, where the error is one of the node itself.
    """

    given: Given
    solver: Solver | None = None
    doubts: tuple[str, ...] = ()
    error: str = ""
    detail: str = ""


def load(given: Given) -> Loaded:
    """Read, check and compile a robot. Never raises; not in two threads at a time, since it records warnings."""
    try:
        with warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("always")
            solver = Solver(ElasticArm(given.robot()))
    except EomDynamicsError as error:
        return Loaded(given, error=str(error))
    except Exception as error:
        reason = f"internal error: {type(error).__name__}: {error}"
        return Loaded(given, error=reason, detail=traceback.format_exc())
    return Loaded(given, solver, tuple(str(doubt.message) for doubt in doubts))
