# SPDX-License-Identifier: Apache-2.0
"""The file of an identified robot: a parameter file, or a URDF."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...identification import Fit
from ...robot import Robot
from ...robot.readers.loading import MAX_BYTES
from ...robot.writers.parameters import robot_as_yaml
from ...robot.writers.urdf import robot_as_urdf
from .patched_urdf import patched_urdf
from .summary import comments


def robot_file(
    output: Path, source: str, robot: Robot, fit: Fit, about: Mapping[str, str]
) -> tuple[str, tuple[str, ...]]:
    """Write a robot; returns the text, and a line for each thing that it cannot say.

    Args:
        output: path of the file; its ending is the format.
        source: what the robot was loaded from. A URDF that is to be written from a URDF is patched.
        robot: the identified robot.
        fit: what was found, for comments on the uncertainty.
        about: names and values for comments.

    Raises:
        RobotDescriptionError: the robot cannot be written in this format.
    """
    if output.suffix == ".urdf":
        if source.endswith(".urdf") and Path(source).is_file():
            return patched_urdf(Path(source).read_text(encoding="utf-8"), robot), _unsaid(fit)
        written = robot_as_urdf(robot)
        return written.text, (*written.lost, *_unsaid(fit))
    written = robot_as_yaml(robot)
    remarks = comments(fit, about)
    # What is read must not be longer than what a reader takes; the numbers come first.
    fits = len((remarks + written.text).encode()) <= MAX_BYTES
    return (remarks if fits else "") + written.text, written.lost


def _unsaid(fit: Fit) -> tuple[str, ...]:
    if fit.options.side == "motor":
        return ("friction and rotor inertia of motors are left out: a URDF has them of joints only; write .yaml",)
    return ()
