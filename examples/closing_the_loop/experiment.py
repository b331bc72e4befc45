# SPDX-License-Identifier: Apache-2.0
"""A robot that differs from its file: excite, record, identify, and track another motion before and after.

The paths of data: ``plan`` finds the motions, ``close_circle`` plays them to the true robot, in this process
(``simulated``) or over ROS 2 (:mod:`.over_ros`), and identifies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from eom_dynamics.arrays import Array
from eom_dynamics.elastic import ElasticArm
from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.identification import Excitation, ExcitationOptions
from eom_dynamics.identification.elastic.arm import ArmFit, identify_arm
from eom_dynamics.identification.elastic.options import check_elastic
from eom_dynamics.identification.recording import ArmRecording
from eom_dynamics.robot import Robot
from eom_dynamics.robot.model import Joint
from eom_dynamics.simulation import SimulatedDrives, SimulatedRobot
from eom_dynamics.simulation.feedforward_comparison import perturbed
from eom_dynamics.simulation.simulated_robot import Readings, SensorNoise
from eom_dynamics.trajectory import Fourier

from .streaming import StreamTimes, stream, stream_times

NATURAL_FREQUENCY = 70.0
"""Natural frequency of the motors under their PD, rad/s: stiff."""

# Friction that no file has: Coulomb friction, and viscous friction at the highest speed, over the largest motor effort.
_FRICTION = 0.03

# Noise of encoders, rad and rad/s, and of efforts over their range.
_POSITION_NOISE, _VELOCITY_NOISE, _EFFORT_NOISE = 1e-5, 2e-3, 0.005

# Limits for joints without limits in their file: position, velocity and acceleration; rad or m, and per s and s².
_RANGE, _LARGEST = {"revolute": 3.0, "prismatic": 0.3}, {"revolute": (1.5, 10.0), "prismatic": (0.5, 3.0)}

# Fraction of limits, because efforts are computed with a model that is not identified.
_SHARE = 0.6

# Of the excitation: harmonics and period, s; the optimizer gains little after some iterations.
_HARMONICS, _PERIOD, _CANDIDATES, _ITERATIONS = 8, 10.0, 20, 40

_JUDGED_PERIOD, _SEED = 6.0, 1

SETTLE = 0.5
"""Time at rest before a motion is recorded, s."""


class IdentificationMotions(NamedTuple):
    """Motions for a robot as its file describes it.

    Attributes:
        robot: as described.
        excitation: motion to identify from.
        judged: another motion, for the comparison of errors.
        gain: standard deviation of parameters at the start of the optimization over its end.
        efforts, speeds: maximum motor efforts and speeds during the excitation (n,), N m and rad/s (N, m/s).
    """

    robot: Robot
    excitation: Fourier
    judged: Fourier
    gain: float
    efforts: Array
    speeds: Array


def plan(
    robot: Robot, *, iterations: int = _ITERATIONS, progress: Callable[[float], None] = lambda fraction: None
) -> IdentificationMotions:
    """Optimize the motion that identifies a robot, and draw the motion for the comparison.

    Args:
        robot: as its file describes it; joints without limits get some.
        iterations: largest number of the optimizer.
        progress: called with the fraction done.

    Raises:
        RobotDescriptionError: a joint has no spring with a motor of its own.
        TrajectoryError: no motion is within the limits of the robot.
    """
    check_elastic(robot)
    if rigid := [joint.name for joint in robot.independent_joints if joint.spring.is_rigid]:
        raise RobotDescriptionError(f"{', '.join(rigid)}: rigid; each joint needs a spring")
    limits = {joint.name: _limits(joint) for joint in robot.joints}

    def excitation(period: float) -> Excitation:
        return Excitation(robot, ExcitationOptions(period, _HARMONICS, limits=limits, share=_SHARE))

    search, other = excitation(_PERIOD), excitation(_JUDGED_PERIOD)
    found = search.optimize(
        candidates=_CANDIDATES, iterations=iterations, progress=lambda fraction, cost: progress(fraction)
    )
    judged = other.trajectory(other.random(np.random.default_rng(_SEED)))
    gained = found.information.log_det - found.start_information.log_det
    gain = float(np.exp(gained / (2 * len(search.model.columns))))
    return IdentificationMotions(robot, found.trajectory, judged, gain, *_peaks(ElasticArm(robot), found.trajectory))


@dataclass(frozen=True, eq=False)
class IdentificationTask:
    """A robot to identify, which differs from its file.

    The true robot also has more motor friction: Coulomb friction and, at the highest speed, viscous friction of
    3 % of the largest motor effort each.

    Attributes:
        plan: the robot as described, and its motions.
        stiffness_error, mass_error: true over described stiffness of all springs, and masses and inertias of all
            bodies, less 1.
        rate: of setpoints and readings, Hz.
        phase: of the stamp of a setpoint in its step, 0 to 1.
    """

    plan: IdentificationMotions
    stiffness_error: float = 0.2
    mass_error: float = -0.2
    rate: float = 500.0
    phase: ClassVar[float] = 0.5

    @property
    def robot(self) -> Robot:
        """The robot as described."""
        return self.plan.robot

    @property
    def true_coulomb(self) -> Array:
        """Coulomb friction of the motors in addition to the file (n,), N m or N."""
        return _FRICTION * self.plan.efforts

    @cached_property
    def true_robot(self) -> Robot:
        """The true robot."""
        changed = perturbed(self.robot, stiffness=self.stiffness_error, mass=self.mass_error)
        joints = list(changed.joints)
        for i, speed, dry in zip(changed.independent, self.plan.speeds, self.true_coulomb, strict=True):
            old, c = joints[i].actuator.friction, float(dry)
            more = replace(
                old, viscous=old.viscous + float(dry / speed), coulomb=old.coulomb + c, static=old.static + c
            )
            joints[i] = replace(joints[i], actuator=replace(joints[i].actuator, friction=more))
        return replace(changed, joints=tuple(joints))

    @property
    def noise(self) -> SensorNoise:
        """Noise of the sensors."""
        return SensorNoise(_POSITION_NOISE, _VELOCITY_NOISE, 2 * _EFFORT_NOISE * self.plan.efforts)

    def times(self, motion: Fourier) -> StreamTimes:
        """Times of setpoints and readings of a motion, after a rest."""
        return stream_times(motion.start, motion.end, self.rate, SETTLE)

    def start(self, motion: Fourier) -> Array:
        """Positions of the links (n,) at the start of a motion, rad or m."""
        return np.asarray(motion.derivatives(motion.start, 0)[0])

    def simulated(self, motion: Fourier) -> SimulatedRobot:
        """The true robot at the start of a motion."""
        return SimulatedRobot(
            ElasticArm(self.true_robot),
            period=1 / self.rate,
            position=self.start(motion),
            drives=SimulatedDrives(NATURAL_FREQUENCY),
            noise=self.noise,
        )


def _limits(joint: Joint) -> dict[str, float]:
    """Limits that the file of a joint lacks for an excitation."""
    given, given_range, largest = joint.limits, _RANGE[_kind(joint)], _LARGEST[_kind(joint)]
    found = {}
    if not np.isfinite(given.upper - given.lower):
        lower = given.lower if np.isfinite(given.lower) else min(-given_range, given.upper - given_range)
        upper = given.upper if np.isfinite(given.upper) else max(given_range, given.lower + given_range)
        found = {"lower": lower, "upper": upper}
    for name, value in zip(("velocity", "acceleration"), largest, strict=True):
        if not np.isfinite(getattr(given, name)):
            found[name] = value
    return found


def _kind(joint: Joint) -> str:
    return "revolute" if np.any(joint.screw[:3]) else "prismatic"


def _peaks(arm: ElasticArm, motion: Fourier) -> tuple[Array, Array]:
    """Largest motor efforts and speeds (n,) of a motion."""
    command = arm.feedforward(*motion.derivatives(np.linspace(motion.start, motion.end, 1000), 4))
    return np.max(np.abs(command.motor_effort), axis=0), np.max(np.abs(command.motor_velocity), axis=0)


Run = Callable[[str, Robot, Fourier], Readings]
"""Make the true robot follow a motion with the feedforward of a model; the first argument names the purpose."""


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
        task: the identification task.
        recording: of the excitation.
        fit: the identified robot.
        before, after: tracking with the feedforward of the robot file, and of the identified robot.
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
