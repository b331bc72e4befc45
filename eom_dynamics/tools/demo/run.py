# SPDX-License-Identifier: Apache-2.0
"""Run the node and the player as two processes, and return the player's recording."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ...messages.fields import COMMAND_FIELDS
from ...scratch import scratch_folder
from ..robot_options import RobotOptions
from .data import setpoints
from .evaluate import Answers
from .plan import Plan
from .processes import Process, environment_of, exit_by_signals, follow
from .robot_parameters import parameter_file

# Time until the first answer of the node, s; the first run for a robot compiles its dynamics.
_STARTUP = 60.0

# Time that the player waits for answers after the last setpoint, s.
_GRACE = 5.0


def play(plan: Plan, robot: str, options: RobotOptions, report: Callable[[int, int], None]) -> Answers:
    """Play a plan to a node.

    Args:
        plan: setpoints to play.
        robot: the robot that the node loads, as for :func:`eom_dynamics.load_robot`.
        options: part of the robot to load.
        report: called ten times per second with the numbers of setpoints sent and answered so far.

    Raises:
        RunError: the node or the player ended early.
        RobotDescriptionError: the node cannot load this part of the robot.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(exit_by_signals())
        folder = stack.enter_context(scratch_folder())
        environment = environment_of(folder)
        file = parameter_file(robot, options, folder)
        np.savez(folder / "setpoints.npz", **setpoints(plan))
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
