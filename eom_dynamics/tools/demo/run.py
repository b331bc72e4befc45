# SPDX-License-Identifier: Apache-2.0
"""Run the node and the player as two processes, and return the player's recording."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ...exceptions import RobotDescriptionError
from ...messages.fields import COMMAND_FIELDS
from ...robot import packaged_robots
from ...robot.file_formats import URDF
from ...robot.formats import PARAMETER_FILE, format_of
from ...robot.readers.by_name import find_by_name, is_description_name
from ...robot.readers.xacro import expand_xacro
from ..robot_options import RobotOptions
from .evaluate import Answers
from .plan import Plan
from .processes import Process, environment_of, exit_by_signals, follow

# Time until the first answer of the node, s; the first run for a robot compiles its dynamics.
_STARTUP = 60.0

# Time that the player waits for answers after the last setpoint, s.
_GRACE = 5.0


def play(plan: Plan, robot: str, options: RobotOptions, report: Callable[[int, int], None]) -> Answers:
    """Play a plan to a node.

    Args:
        report: called ten times per second with the numbers of setpoints sent and answered so far.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(exit_by_signals())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="eom_dynamics-")))
        environment = environment_of(folder)
        file = parameter_file(robot, options, folder)
        np.savez(folder / "setpoints.npz", **plan.arrays())
        # Diagnostics name the backend; the default period is too long for a short run. Every command is recorded.
        values = ("diagnostic_period:=0.2", "qos_overrides./feedforward.publisher.depth:=1000")
        parameters = ("--params-file", str(file), *(word for value in values for word in ("-p", value)))
        node = stack.enter_context(
            Process("eom_dynamics.ros.dynamics_node", ("--ros-args", *parameters), folder, environment)
        )
        limits = ("--rate", str(plan.rate), "--timeout", str(_STARTUP), "--grace", str(_GRACE))
        player = stack.enter_context(
            Process("eom_dynamics.ros.player", ("setpoints.npz", "answers.npz", *limits), folder, environment)
        )
        follow({"the node": node}, player, report)
        return _recording(folder / "answers.npz")


def _recording(file: Path) -> Answers:
    with np.load(file) as answers:
        return Answers(
            sent=answers["sent"],
            received=answers["received"],
            answers={field: answers[field] for field in COMMAND_FIELDS},
            backend=str(answers["backend"]) or "not reported",
        )


def parameter_file(source: str, options: RobotOptions, folder: Path) -> Path:
    """Return the path of a ROS 2 parameter file with the robot.

    Args:
        source: name, path, or text of a URDF, as for :func:`eom_dynamics.load_robot`.

    Raises:
        RobotDescriptionError: the source is a parameter file, of which the node takes all, and options select a part.
    """
    parameters: dict[str, Any]
    packaged = source in packaged_robots()
    if is_description_name(source) and not Path(source).exists():
        named = find_by_name(source)
        given = {**named.xacro_arguments, **dict(options.xacro_arguments)}
        source, options = named.path, replace(options, xacro_arguments=tuple(given.items()))
    if packaged or format_of(source) is PARAMETER_FILE:
        if options != RobotOptions():
            raise RobotDescriptionError(f"{source}: the node takes parameter files whole; select a part of a URDF only")
        # By its path, since a URDF that it names may be relative to it.
        file = resources.files("eom_dynamics") / "config" / f"{source}.yaml" if packaged else source
        parameters = {"robot_file": str(Path(str(file)).resolve())}
    elif format_of(source) is not URDF:
        parameters = {"robot_file": str(Path(source).resolve()), "urdf": options.urdf_section()}
    else:
        parameters = {"robot_description": _urdf(source, options), "urdf": options.urdf_section()}
    written = folder / "robot.yaml"
    given = {name: value for name, value in parameters.items() if value}
    written.write_text(yaml.safe_dump({"/**": {"ros__parameters": given}}), encoding="utf-8")
    return written


def _urdf(source: str, options: RobotOptions) -> str:
    if source.endswith(".xacro"):
        return expand_xacro(Path(source), dict(options.xacro_arguments))
    return Path(source).read_text(encoding="utf-8") if source.endswith(URDF.endings) else source
