# SPDX-License-Identifier: Apache-2.0
"""Link errors over ROS 2 with drives that hold or interpolate commands and act late, with and without the command lead.

    cd examples && python -m closing_the_loop.command_lead --robot sea_planar_2r -o lead

Dynamics node, simulated robot and a player in lockstep with ``/clock`` play a motion twice: with a robot file without
period and delay of the drives, and with a file that names them. Writes index.html, and a bag of each run. Exit
code 0, 1 if a run fails or the lead makes the error less than ten times smaller, 2 for wrong use.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from eom_dynamics import EomDynamicsError, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.robot import Robot
from eom_dynamics.robot.model import DRIVE_INTERPOLATIONS
from eom_dynamics.simulation.simulated_robot import SensorNoise
from eom_dynamics.tools.options import path
from eom_dynamics.tools.pages import add_joints, html_page, over_time
from eom_dynamics.tools.processes import RunError
from eom_dynamics.tools.quantity_text import milli, number, position_units, together
from eom_dynamics.tools.results import Result, ResultSection, TextTable, complain
from eom_dynamics.trajectory import Spline, Trajectory, through

from .over_ros import over_ros
from .streaming import StreamTimes

LEAST_GAIN = 10.0
"""Minimum factor between the errors without and with the lead."""

# Amplitude of the motion, rad or m, from rest to rest and back.
_DISTANCE = 0.6


@dataclass(frozen=True)
class LeadTask:
    """Robot with the timing of its drives in its file.

    Attributes:
        true_robot: the robot.
        phase: setpoints are stamped with the beginning of their step.
        noise: none.
    """

    true_robot: Robot
    phase: ClassVar[float] = 0.0
    noise: ClassVar[SensorNoise] = SensorNoise()

    @property
    def rate(self) -> float:
        """Rate of setpoints, commands and readings, Hz."""
        return 1 / self.true_robot.command_period

    def times(self, motion: Trajectory) -> StreamTimes:
        """Times of setpoints, and of the readings a period later."""
        T = self.true_robot.command_period
        setpoints = motion.start + T * np.arange(round((motion.end - motion.start) / T), dtype=float)
        return StreamTimes(setpoints, setpoints + T)

    def start(self, motion: Trajectory) -> Array:
        """Positions of the links (n,) at the start of a motion, rad or m."""
        return np.asarray(motion.derivatives(motion.start, 0)[0])


def forth_and_back(robot: Robot, duration: float) -> Spline:
    """Motion of all joints from rest to rest, from the middle of their ranges, if limited."""
    limits = [joint.limits for joint in robot.independent_joints]
    middle = np.array([0.5 * (x.lower + x.upper) if np.isfinite(x.upper - x.lower) else 0.0 for x in limits])
    return through([0.0, 0.5 * duration, duration], [middle, middle + _DISTANCE, middle])


def errors(task: LeadTask, motion: Spline, folder: Path) -> dict[str, Array]:
    """Errors (N, n) of the links at the readings without and with the lead, with a bag of each run in a folder.

    Raises:
        RunError: a process fails.
    """
    robot = task.true_robot
    run = over_ros(task, folder, lambda step, sent, received: None)
    desired = motion.derivatives(task.times(motion).readings, 0)[0]
    unnamed = replace(robot, command_period=0.0, drive_delay=0.0, drive_interpolation="none")
    models = {"without_lead": unnamed, "with_lead": robot}
    return {name: run(name, model, motion).q - desired for name, model in models.items()}


def write_page(file: Path, task: LeadTask, t: Array, found: Mapping[str, Array]) -> None:
    """Write the errors as an HTML page."""
    robot = task.true_robot
    units = milli(position_units(robot))
    figures = {}
    for name, error in found.items():
        title = f"Link error {name.replace('_', ' ')}"
        figures[name] = over_time(title, together(units), float(t[0]), float(t[-1]))
        add_joints(figures[name], robot.joint_names, units, t, 1e3 * error, points=2000)
    rows = []
    for k, (name, unit) in enumerate(zip(robot.joint_names, units, strict=True)):
        before, after = (1e3 * rms(found[run][:, k]) for run in ("without_lead", "with_lead"))
        rows.append((name, f"{number(before)} {unit}", f"{number(after)} {unit}", number(before / after)))
    T, D = 1e3 * robot.command_period, 1e3 * robot.drive_delay
    acts = "hold each command" if robot.drive_interpolation == "none" else "interpolate between commands"
    text = (
        f"Drives of a simulated robot {acts} for {T:g} ms and act {D:g} ms late. Player, dynamics node and "
        f"robot are processes over ROS 2. The robot file of the second run names this timing, so that all commands are "
        f"ahead by {1e3 * robot.command_lead:g} ms."
    )
    header = ("joint", "RMS without lead", "RMS with lead", "without / with")
    result = Result(
        title=f"Link errors of {robot.name} with and without command lead",
        sections=[ResultSection(caption=text, charts=figures, tables=[TextTable(header, rows)])],
        about={"robot": robot.name},
    )
    file.write_text(html_page("command_lead", result), encoding="utf-8")


def rms(error: Array) -> float:
    """Root mean square of an error."""
    return float(np.sqrt(np.mean(np.square(error))))


def main(arguments: list[str] | None = None) -> int:
    """Play both runs and write the page; returns the exit code."""
    parser = argparse.ArgumentParser(prog="command_lead", description=__doc__)
    parser.add_argument("--robot", default="sea_planar_2r", help="packaged robot or file; default: %(default)s")
    parser.add_argument("-o", "--output", metavar="DIR", type=path, required=True, help="new folder to write")
    parser.add_argument("--period", type=float, default=1e-3, help="of the commands, s; default: %(default)g")
    parser.add_argument("--delay", type=float, default=2e-3, help="of the drives, s; default: %(default)g")
    parser.add_argument("--interpolation", choices=tuple(DRIVE_INTERPOLATIONS), default="none")
    parser.add_argument("--duration", type=float, default=2.0, help="of the motion, s; default: %(default)g")
    options = parser.parse_args(arguments)
    timing = {"command_period": options.period, "drive_delay": options.delay}
    try:
        robot = replace(load_robot(options.robot), **timing, drive_interpolation=options.interpolation)
        task, motion = LeadTask(robot), forth_and_back(robot, options.duration)
        found = errors(task, motion, options.output)
    except RunError as error:
        complain(parser.prog, str(error))
        return 1
    except (EomDynamicsError, OSError) as error:
        complain(parser.prog, str(error))
        return 2
    page = options.output / "index.html"
    write_page(page, task, task.times(motion).readings, found)
    without, ahead = rms(found["without_lead"]), rms(found["with_lead"])
    print(
        f"RMS error of the links: {number(1e3 * without)} mrad without lead, {number(1e3 * ahead)} mrad with it: {page}"
    )
    if without < LEAST_GAIN * ahead:
        complain(parser.prog, f"failed: {number(without / ahead)} times smaller, not {LEAST_GAIN:g} times")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
