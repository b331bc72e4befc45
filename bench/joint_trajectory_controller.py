# SPDX-License-Identifier: Apache-2.0
"""Link error of ``joint_trajectory_controller`` alone, and in front of the feedforward controller.

A controller manager runs both on the simulated robot of the package, in simulated time. Needs ros2_control and
this package in a sourced workspace. A whole run also writes the picture docs/joint_trajectory_controller.png.
"""

import tempfile
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import Section, Settings, picture, rms
from managed_arm import FEEDFORWARD, TRAJECTORY, ManagedArm, install, missing
from scipy.interpolate import BPoly

from eom_dynamics.arrays import Array

ROBOT = "sea_planar_2r"
DISTANCE, TIME, REST = 0.3, 1.0, 0.5  # rad; time of each way, and at rest before, s
RATIO = 10.0  # promised ratio of the error with its PID alone to the error with feedforward


class Motion(NamedTuple):
    """Points of a goal for all joints, forth and back: times, s, positions and their derivatives."""

    times: Sequence[float]
    derivatives: Sequence[Sequence[float]]

    def at(self, t: Array) -> Array:
        """The reference that joint_trajectory_controller interpolates, for one joint."""
        return np.asarray(BPoly.from_derivatives(self.times, np.transpose(self.derivatives))(t))


def _motions() -> dict[str, Motion]:
    peak = DISTANCE / (0.75 * TIME)
    quarter = peak * TIME / 8
    ramps = (0.0, 0.0, quarter, DISTANCE - quarter, DISTANCE, DISTANCE - quarter, quarter, 0.0)
    corners = [0.0, *(REST + TIME * x for x in (0, 0.25, 0.75, 1, 1.25, 1.75, 2))]
    speeds = (0.0, 0.0, peak, peak, 0.0, -peak, -peak, 0.0)
    knots, rest = [0.0, REST, REST + TIME, REST + 2 * TIME], (0.0,) * 4
    return {
        "trapezoidal": Motion(corners, (ramps, speeds)),
        "quintic": Motion(knots, ((0.0, 0.0, DISTANCE, 0.0), rest, rest)),
    }


def _alone(interface: str) -> Callable[[dict[str, Any]], None]:
    """Configuration of joint_trajectory_controller on the motors, with the gains of the feedforward controller."""

    def change(parameters: dict[str, Any]) -> None:
        given = parameters[FEEDFORWARD]["ros__parameters"]
        motors = given["motors"]
        alone = {"joints": motors, "command_interfaces": [interface], "state_interfaces": ["position", "velocity"]}
        gains = zip(motors, given["motor_kp"], given["motor_kd"], strict=True)
        alone["gains"] = {motor: {"p": p, "d": d} for motor, p, d in gains}
        parameters[TRAJECTORY] = {"ros__parameters": alone}

    return change


def _behind(**values: object) -> Callable[[dict[str, Any]], None]:
    """The configuration of the robot with other parameters of the feedforward controller."""

    def change(parameters: dict[str, Any]) -> None:
        parameters[FEEDFORWARD]["ros__parameters"] |= values

    return change


ALONE, BEHIND = "alone, `effort` by its PID", "in front of the feedforward, as exported"
WAYS = {
    "alone, `position`: the PD of the drives": (_alone("position"), [TRAJECTORY]),
    ALONE: (_alone("effort"), [TRAJECTORY]),
    "in front, `missing_derivatives: zero`": (_behind(missing_derivatives="zero"), [FEEDFORWARD, TRAJECTORY]),
    "in front, without `reference_lead`": (_behind(reference_lead=0.0), [FEEDFORWARD, TRAJECTORY]),
    BEHIND: (_behind(), [FEEDFORWARD, TRAJECTORY]),
}
"""Configurations, and controllers to activate."""


def joint_trajectory_controller(section: Section, settings: Settings) -> None:
    """Build the package, and send the same goals in each configuration, each to an arm at rest."""
    if reason := missing():
        raise SystemExit(f"joint_trajectory_controller: skipped, {reason}")
    motions, errors = _motions(), {}
    with tempfile.TemporaryDirectory() as folder:
        share = install(ROBOT, Path(folder))
        for (way, (change, controllers)), (name, motion) in product(WAYS.items(), motions.items()):
            arm = ManagedArm(share, ROBOT, Path(folder, f"{len(errors)}"), change)
            try:
                arm.load(*controllers)
                arm.switch(controllers)
                errors[way, name] = _error(arm, motion)
            finally:
                arm.close()
    title = f"{ROBOT}: distance of the links from the goal, rms / peak, mrad, and the same less that at rest before"
    columns = [f"{name}{less}" for name in motions for less in ("", ", less that at rest")]
    table = section.table(title, "joint_trajectory_controller", *columns)
    for way in WAYS:
        pairs = [errors[way, name] for name in motions]
        table.add(way, *(_cell(each) for _, error in pairs for each in (error, error - error[0])))
    for name in motions:
        ratio = rms(errors[ALONE, name][1]) / rms(errors[BEHIND, name][1])
        promise = f"{name}: at least {RATIO:g} × less error than with the PID alone, rms"
        section.promise(promise, f"{ratio:,.0f} ×", ratio >= RATIO)
    if not settings.quick:
        _write_picture(errors)


def _error(arm: ManagedArm, motion: Motion) -> tuple[Array, Array]:
    """Times from the start, s, and distances of the links from the reference, rad, until 0.3 s after the goal."""
    start, result = arm.follow(motion.times, *motion.derivatives, delay=1.0)
    arm.run(1.0 + REST - 0.01)
    t, q, _ = arm.run(2 * TIME + 0.31)
    arm.wait(result.done)
    outcome = result.result().result
    assert outcome.error_code == outcome.SUCCESSFUL, outcome.error_string
    t = t - start
    reference = motion.at(np.clip(t, motion.times[0], motion.times[-1]))
    return t - REST, q - reference[:, None]


def _cell(error: Array) -> str:
    return f"{1e3 * rms(error):.3g} / {1e3 * np.abs(error).max():.3g}"


def _write_picture(errors: dict[tuple[str, str], tuple[Array, Array]]) -> None:
    """Write the distance of the first link over time, for each motion."""
    names = list(dict.fromkeys(name for _, name in errors))
    with picture("joint_trajectory_controller.png", 12, 4.6, legend=2) as figure:
        for axes, name in zip(figure.subplots(1, len(names), sharey=True), names, strict=True):
            for way in WAYS:
                t, error = errors[way, name]
                axes.semilogy(t, 1e3 * np.maximum(np.abs(error).max(axis=1), 1e-7), label=way.replace("`", ""))
            axes.set(title=f"{name} motion of {DISTANCE:g} rad, forth and back", xlabel="time [s]")
            axes.grid(alpha=0.3)
        figure.axes[0].set_ylabel("largest distance of a link [mrad]")
