# SPDX-License-Identifier: Apache-2.0
"""Runs of a task over ROS 2: dynamics node, simulated robot and player as three processes, recorded in a bag."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.recordings import Source
from eom_dynamics.recordings.bags import BagError, BagWriter, Storage
from eom_dynamics.recordings.bags.types import COMMAND, JOINT_STATE, SETPOINT
from eom_dynamics.recordings.sides import read_sides
from eom_dynamics.robot import Robot
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.simulation.simulated_robot import Readings, SensorNoise
from eom_dynamics.tools.processes import Run

from .experiment import NATURAL_FREQUENCY, IdentificationTask

if TYPE_CHECKING:
    from .command_lead import LeadTask

# Time until both nodes answer, s; the first run for a robot compiles its dynamics.
_STARTUP = 120.0


def over_ros(
    task: IdentificationTask | LeadTask, folder: Path, report: Callable[[str, int, int], None]
) -> Callable[[str, Robot, Any], Readings]:
    """Runs over ROS 2.

    Args:
        task: what is played.
        folder: for the bag of each run, named after it.
        report: called with the name of the run, and the numbers of setpoints and of readings so far.

    Returns:
        A function that raises RunError if a process fails, and BagError if its recording cannot be read.
    """

    def play(step: str, robot: Robot, motion: Any) -> Readings:
        with Run() as run:
            _write_inputs(run.folder, task, robot, motion)
            run.environment["PYTHONPATH"] = os.pathsep.join(map(str, _path()))
            run.start(
                "the dynamics node",
                "eom_dynamics.ros.dynamics_node",
                "--ros-args --params-file model.yaml -p safety:=permissive",
            )
            run.start(
                "the simulated robot",
                "eom_dynamics.ros.simulated_robot_node",
                "--ros-args -r feedforward:=applied_feedforward --params-file true.yaml --params-file simulation.yaml",
            )
            options = f"--rate {task.rate} --phase {task.phase} --timeout {_STARTUP}"
            run.play(
                lambda sent, received: report(step, sent, received),
                "closing_the_loop.lockstep_player",
                f"setpoints.npz recording.npz {options}",
            )
            write_bag(folder / step, run.folder / "recording.npz")
        return read_readings(folder / step, robot)

    return play


def _path() -> list[str | Path]:
    """Python path of the player in this folder, with the previous path."""
    return [Path(__file__).resolve().parents[1], *filter(None, [os.environ.get("PYTHONPATH")])]


def _write_inputs(folder: Path, task: IdentificationTask | LeadTask, robot: Robot, motion: Any) -> None:
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
        **_noise(task.noise),
    }
    document = {"/**": {"ros__parameters": parameters}}
    (folder / "simulation.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    times = task.times(motion).setpoints
    arrays: dict[str, Any] = dict(zip(STATE_NAMES, motion.derivatives(times, 4), strict=True))
    np.savez(folder / "setpoints.npz", joint_names=np.array(robot.joint_names), **arrays)


def _noise(noise: SensorNoise) -> dict[str, list[float]]:
    return {f"{name}_noise": np.atleast_1d(values).tolist() for name, values in noise._asdict().items()}


_TOPICS = {"setpoint": SETPOINT, "feedforward": COMMAND, "joint_states": JOINT_STATE, "motor_states": JOINT_STATE}


def write_bag(folder: Path, recording: Path) -> None:
    """Write a recording of :mod:`.lockstep_player` as a bag.

    Args:
        folder: made here.
        recording: .npz.

    Raises:
        OSError: a file cannot be read or written.
    """
    folder.mkdir(parents=True)
    with np.load(recording) as arrays:
        rows = [arrays[topic] for topic in _TOPICS]
        topics = {f"/{name}": kind for name, kind in _TOPICS.items()}
        with BagWriter(folder, folder.name, Storage.MCAP, topics) as writer:
            writer.write(arrays["stamp"], rows)


def read_readings(bag: Path, robot: Robot) -> Readings:
    """Read both sides of the springs from a bag.

    Args:
        bag: of :func:`write_bag`.
        robot: its joints and motors, one each, have equal names.

    Raises:
        BagError: the bag cannot be read, or lacks a topic or velocities.
        IdentificationError: it is of another robot.
    """
    sides = read_sides(bag, robot, Source(position_unit="rad"))
    links, motors = sides.links, sides.motors
    if links is None or motors is None or links.qd is None or motors.qd is None:
        raise BagError(f"{bag}: must have positions and velocities of links and motors of {robot.name}")
    return Readings(links.q, links.qd, links.tau, motors.q, motors.qd, motors.tau)
