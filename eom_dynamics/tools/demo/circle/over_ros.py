# SPDX-License-Identifier: Apache-2.0
"""Runs of a task over ROS 2: dynamics node, simulated robot and player as three processes, recorded in a bag."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ....robot import Robot
from ....robot.writers.parameters import robot_as_yaml
from ....scratch import scratch_folder
from ....simulation.simulated_robot import Readings, SensorNoise
from ....states import STATE_NAMES
from ....trajectory import Fourier
from ..processes import Process, environment_of, exit_by_signals, follow
from .bags import read_readings, write_bag
from .result import Run
from .task import NATURAL_FREQUENCY, IdentificationTask

# Time until both nodes answer, s; the first run for a robot compiles its dynamics.
_STARTUP = 120.0


def over_ros(task: IdentificationTask, folder: Path, report: Callable[[str, int, int], None]) -> Run:
    """Runs over ROS 2.

    Args:
        task: what to identify.
        folder: for the bag of each run, named after it.
        report: called with the name of the run, and the numbers of setpoints and of readings so far.

    Returns:
        A function that raises RunError if a process fails, and BagError if its recording cannot be read.
    """

    def run(step: str, robot: Robot, motion: Fourier) -> Readings:
        with contextlib.ExitStack() as stack:
            stack.enter_context(exit_by_signals())
            scratch = stack.enter_context(scratch_folder())
            _write_inputs(scratch, task, robot, motion)
            environment = environment_of(scratch)
            nodes = {
                "the dynamics node": stack.enter_context(
                    Process("dynamics_node", ("--ros-args", "--params-file", "model.yaml"), scratch, environment)
                ),
                "the simulated robot": stack.enter_context(
                    Process(
                        "simulated_robot_node",
                        ("--ros-args", "--params-file", "true.yaml", "--params-file", "simulation.yaml"),
                        scratch,
                        environment,
                    )
                ),
            }
            files = ("setpoints.npz", "recording.npz", "--rate", str(task.rate), "--timeout", str(_STARTUP))
            player = stack.enter_context(Process("lockstep_player", files, scratch, environment))
            follow(nodes, player, lambda sent, received: report(step, sent, received))
            write_bag(folder / step, scratch / "recording.npz")
        return read_readings(folder / step, robot)

    return run


def _write_inputs(folder: Path, task: IdentificationTask, robot: Robot, motion: Fourier) -> None:
    (folder / "model.yaml").write_text(robot_as_yaml(robot).text, encoding="utf-8")
    (folder / "true.yaml").write_text(robot_as_yaml(task.true_robot).text, encoding="utf-8")
    parameters = {
        "use_sim_time": True,
        "command": "feedforward",
        "rate": task.rate,
        "publish_rate": task.rate,
        "initial_position": task.start(motion).tolist(),
        "natural_frequency": NATURAL_FREQUENCY,
        # Steps may take long between two times of /clock.
        "command_timeout": 0.0,
        "diagnostic_period": 0.2,
        **_noise(task.noise),
    }
    document = {"/**": {"ros__parameters": parameters}}
    (folder / "simulation.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    times = task.times(motion).setpoints
    arrays: dict[str, Any] = dict(zip(STATE_NAMES, motion.derivatives(times, 4), strict=True))
    np.savez(folder / "setpoints.npz", t=times, joint_names=np.array(robot.joint_names), **arrays)


def _noise(noise: SensorNoise) -> dict[str, list[float]]:
    return {f"{name}_noise": np.atleast_1d(values).tolist() for name, values in noise._asdict().items()}
