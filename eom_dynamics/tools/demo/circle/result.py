# SPDX-License-Identifier: Apache-2.0
"""Tracking errors of the links before and after an identification, and identified numbers beside the true ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ....arrays import Array
from ....elastic import ElasticArm
from ....identification.both_sides import ArmRecording
from ....identification.elastic_arm import ArmFit, identify_arm
from ....robot import Robot
from ....simulation.simulated_robot import Readings
from ....simulation.streaming import StreamTimes, stream
from ....trajectory import Fourier
from .task import IdentificationTask

Run = Callable[[str, Robot, Fourier], Readings]
"""Let the true robot follow a motion with the feedforward of a model; the first argument says what for."""

STEPS = ("excite", "before", "after")
"""Names of the three runs."""


@dataclass(frozen=True, eq=False)
class Tracking:
    """Errors of the links.

    Attributes:
        t: (N,) s.
        error: (N, n) actual less desired positions, rad or m.
    """

    t: Array
    error: Array

    @property
    def rms(self) -> Array:
        """(n,) rad or m."""
        rms: Array = np.sqrt(np.mean(np.square(self.error), axis=0))
        return rms


@dataclass(frozen=True, eq=False)
class IdentificationResult:
    """An identification of a simulated robot, and tracking before and after.

    Attributes:
        task: what was to be identified.
        recording: of the excitation.
        fit: the identified robot.
        before, after: tracking with the feedforward of the robot's file, and of the identified one.
    """

    task: IdentificationTask
    recording: ArmRecording
    fit: ArmFit
    before: Tracking
    after: Tracking

    @property
    def gain(self) -> float:
        """RMS over all joints before, over that after."""
        before, after = (float(np.sqrt(np.mean(np.square(each.error)))) for each in (self.before, self.after))
        return before / after if after else np.inf


def close_circle(
    task: IdentificationTask, run: Run, progress: Callable[[str, float], None] | None = None
) -> IdentificationResult:
    """Excite, record, identify, and compare tracking errors.

    Args:
        task: what to identify.
        run: plays a motion to the true robot.
        progress: of the identification, called with the step and the fraction of it that is done.

    Raises:
        EomDynamicsError: a run fails, or a joint is not identifiable from the recording.
    """
    recording = recorded(task, task.plan.excitation, run("excite", task.robot, task.plan.excitation))
    readings = run("before", task.robot, task.plan.judged)
    before = tracking(task, readings)
    fit = identify_arm(task.robot, recording, recorded(task, task.plan.judged, readings), progress=progress)
    after = tracking(task, run("after", fit.robot, task.plan.judged))
    return IdentificationResult(task, recording, fit, before, after)


def simulated(task: IdentificationTask) -> Run:
    """Runs without ROS: the same commands and steps, in this process."""

    def run(step: str, robot: Robot, motion: Fourier) -> Readings:
        return stream(task.simulated(motion), ElasticArm(robot), motion, task.times(motion))

    return run


def recorded(task: IdentificationTask, motion: Fourier, readings: Readings) -> ArmRecording:
    """The recording of a motion, from its start."""
    moving, t = _moving(task.times(motion))
    q, qd, tau, theta, _, effort = (x[moving] for x in readings)
    # Motor efforts are means of the step before each reading.
    return ArmRecording(t, q, qd, tau, theta, effort).centered(0.5 / task.rate)


def tracking(task: IdentificationTask, readings: Readings) -> Tracking:
    """Errors on the motion that judges."""
    moving, t = _moving(task.times(task.plan.judged))
    return Tracking(t, readings.q[moving] - task.plan.judged.derivatives(t, 0)[0])


def _moving(times: StreamTimes) -> tuple[slice, Array]:
    first = int(np.searchsorted(times.readings, 0.0, side="right"))
    return slice(first, None), times.readings[first:]
