# SPDX-License-Identifier: Apache-2.0
"""Simulated robot: commands in, sensor readings out, step by step."""

from __future__ import annotations

import warnings
from collections import deque
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..actuators import parameters as checks
from ..actuators.drive_units import SI_UNITS
from ..arguments import choice, count, not_negative, real_array
from ..arrays import Array
from ..elastic import ElasticArm
from ..elastic.limit_violations import refuse_degrees
from ..elastic.limits import arm_limits
from ..exceptions import RobotDescriptionError, RobotDescriptionWarning, SimulationError, StateError
from ..kinematics import Kinematics
from ..robot import Robot
from ..robot.model import DRIVE_INTERPOLATIONS
from .elastic_plant import ElasticPlant
from .stepping import Servo, Stepper, effort_only


class Readings(NamedTuple):
    """Sensor readings of an arm.

    Attributes:
        q, qd: (n,) positions and velocities of the links, rad or m, and per s.
        tau: (n,) efforts between motors and links, N m or N: spring efforts, or motor efforts at rigid joints.
        theta, thetad: (m,) positions and velocities of the motors on the link side of the gears, rad or m, and per s.
        motor_effort: (m,) mean motor efforts of the last step, valid at its middle, N m or N.
    """

    q: Array
    qd: Array
    tau: Array
    theta: Array
    thetad: Array
    motor_effort: Array


class SensorNoise(NamedTuple):
    """Standard deviations of independent sensor noise, each a number or (n,), equal for links and motors.

    Attributes:
        position: noise of positions, rad or m.
        velocity: noise of velocities, rad/s or m/s.
        effort: noise of efforts, N m or N.
    """

    position: ArrayLike = 0.0
    velocity: ArrayLike = 0.0
    effort: ArrayLike = 0.0


class SimulatedDrives(NamedTuple):
    """PD and timing of the drives of a :class:`SimulatedRobot`.

    Attributes:
        natural_frequency, damping_ratio: frequency, rad/s, and damping ratio of a motor without load under its PD; at
            rigid joints with the link inertia of the initial position.
        kp, kd: alternatively the gains, one number or (m,), N m/rad and N m s/rad (N/m, N s/m).
        command_period: period at which the drives take the latest command, s, in whole steps; 0 for one step. None for
            the robot's period, rounded to whole steps with a RobotDescriptionWarning.
        drive_delay: delay from taking a command to its effect, s, in whole steps. The PD has no delay. None as for
            ``command_period``.
        drive_interpolation: ``none`` holds a command for its period; ``linear`` moves in a straight line from the
            previous command to it, evaluated at the middle of each step. None for the robot's interpolation.
    """

    natural_frequency: float = 70.0
    damping_ratio: float = 1.0
    kp: ArrayLike | None = None
    kd: ArrayLike | None = None
    command_period: float | None = None
    drive_delay: float | None = None
    drive_interpolation: str | None = None


_DRIVES = SimulatedDrives()


class SimulatedRobot:
    """Simulated links, springs, motors and PD drives; holds its initial position.

    Attributes:
        arm: the model.
        period: time step, s.
        kp, kd: drive gains (m,), N m/rad and N m s/rad (N/m, N s/m).
        command_period: period at which the drives take commands, s, a whole number of steps.
        drive_delay: delay until a command takes effect, s, a whole number of steps.
        drive_interpolation: name in :data:`.DRIVE_INTERPOLATIONS`.

    The PD compares its references with motor states delayed by :attr:`.Robot.drive_feedback_delay`.
    """

    def __init__(
        self,
        arm: ElasticArm,
        *,
        period: float = 1e-3,
        position: ArrayLike = 0.0,
        drives: SimulatedDrives = _DRIVES,
        limited: bool = True,
        noise: SensorNoise | None = None,
        seed: int = 0,
        compensates: bool = True,
    ) -> None:
        """Put the arm at rest.

        Args:
            arm: the model.
            period: time step, s.
            position: initial positions of the links, one number or (n,), rad or m.
            drives: PD and timing of the drives.
            limited: whether to clip motor efforts to the limits of the motors.
            noise: noise of the readings; the drives themselves have none.
            seed: seed of the noise.
            compensates: whether the drives add the efforts :attr:`.Robot.compensated_by_robot` to the sent efforts in
                each step; else sent efforts are complete.

        Raises:
            RobotDescriptionError: the arm cannot be simulated, see :class:`ElasticPlant`; or an argument has the wrong
                length, is not finite, or a gain or a standard deviation is negative.
            TypeError: ``arm`` is not an ElasticArm.
            StateError: the period is not positive, ``limited`` not a bool or the seed not an integer; the argument
                ``command_period`` or ``drive_delay`` is not a number of steps, ``drive_interpolation`` unknown; an
                antagonistic pair cannot hold its joint in the initial position at nominal stiffness; or this position
                seems to be in degrees.
        """
        natural_frequency = not_negative(drives.natural_frequency, "natural_frequency", RobotDescriptionError)
        damping_ratio = not_negative(drives.damping_ratio, "damping_ratio", RobotDescriptionError)
        plant = ElasticPlant(arm)
        self.arm, self.period = arm, period
        if (sticking := arm.side.presliding).any():
            names = ", ".join(np.array(arm.motor_names)[sticking])
            text = f"{arm.robot.name}: friction of {names} is simulated by its smooth law, without presliding_distance"
            warnings.warn(text, RobotDescriptionWarning, stacklevel=2)
        self._stepper = Stepper(plant, period, limited=limited)
        self._adding: ElasticArm | None = None
        if compensates and arm.robot.compensated_by_robot:
            joints = tuple(replace(joint, drive=SI_UNITS) for joint in arm.robot.joints)
            self._adding = ElasticArm(replace(arm.robot, joints=joints), backend=arm.backend)
        n, m = arm.robot.n, len(arm.motor_joint)
        q = checks.finite("initial_position", checks.repeated_parameter("initial_position", position, n))
        refuse_degrees(arm.robot, q, *arm_limits(arm).of_leaders[:2])
        zero = np.zeros(n)
        inertia = plant.driven_inertia(q)
        own_kp, own_kd = inertia * natural_frequency**2, 2 * damping_ratio * natural_frequency * inertia
        self.kp, self.kd = (
            default if value is None else checks.not_negative(name, checks.repeated_parameter(name, value, m))
            for name, value, default in (("kp", drives.kp, own_kp), ("kd", drives.kd, own_kd))
        )
        self._hold_steps = _whole_steps(drives.command_period, arm.robot, period, "command_period", least=1)
        self._delay_steps = _whole_steps(drives.drive_delay, arm.robot, period, "drive_delay")
        self.command_period, self.drive_delay = self._hold_steps * period, self._delay_steps * period
        interpolation = drives.drive_interpolation
        self.drive_interpolation = arm.robot.drive_interpolation if interpolation is None else interpolation
        choice(self.drive_interpolation, "drive_interpolation", DRIVE_INTERPOLATIONS)
        self._steps = 0
        self._kinematics: Kinematics | None = None
        self.push(None)
        self._noise = None if noise is None else _scales(noise, arm)
        self._random = np.random.default_rng(count(seed, "seed"))
        self._state = plant.on_trajectory(q, zero, zero, zero, zero)
        self._qdd: Array = zero
        self._thetadd: Array = np.zeros(m)
        self._held: Array | None = None
        self.hold()
        self._motor_effort = self._stepper.motor_effort(self._state, self._servo)

    def follow(self, position: Array, velocity: Array, effort: Array) -> None:
        """Let the drives follow motor positions and velocities (m,), with efforts (m,) added to their PD."""
        self._commanded = Servo(effort, position, velocity, self.kp, self.kd)
        self._held = position

    def apply(self, effort: Array) -> None:
        """Let the motors apply efforts (m,) without feedback."""
        self._commanded = effort_only(effort)
        self._held = None

    def hold(self) -> None:
        """Let the drives hold the position that they follow, or else the present position.

        The effort added to the PD compensates gravity; for antagonistic pairs it is the spring effort.
        """
        plant, arm = self._stepper.plant, self.arm
        q, theta, qd, thetad = plant.parts(self._state)
        gravity = arm.dynamics.effort(q, np.zeros_like(q), np.zeros_like(q))
        springs = plant.springs.loads(plant.deflection(theta, q), plant.deflection(thetad, qd))
        balance = np.where(arm.paired[arm.motor_joint], springs, gravity[arm.motor_joint])
        at_rest = np.zeros_like(theta)
        position = theta.copy() if self._held is None else self._held
        self.follow(position, at_rest, plant.motor_load(balance, at_rest) - self._own_efforts())
        # The drives hold by themselves, without a command.
        self._former = self._taken = self._commanded
        self._servo = self._added(self._commanded)
        self._line = deque([self._commanded] * self._delay_steps)

    def push(self, wrench: ArrayLike | None, frame: str | None = None) -> None:
        """Apply an external wrench to the robot from now on; None ends it.

        Args:
            wrench: (6,) on the robot, moment first, at the frame and along its axes, N m and N.
            frame: name of the frame; by default the first tool.

        Raises:
            StateError: the wrench has another shape, or is not finite.
            RobotDescriptionError: the robot has no such frame.
        """
        push = None if wrench is None else real_array(wrench, "wrench", (6,))
        if push is not None:
            self._kinematics = self._kinematics or Kinematics(self.arm.robot)
            frame = self._kinematics.frame(frame).name
        self._push, self._pushed = push, frame

    def advance(self, wrench: ArrayLike | None = None) -> None:
        """Advance the simulation by one period.

        Args:
            wrench: W (6,), or (k, 6) of k tools, that the robot exerts at its tools during this period, moment first,
                in the frame of the tool, N m and N; by default none.

        Raises:
            StateError: the wrench has another shape, or is not finite.
            SimulationError: the motion leaves all bounds. The arm is then put to rest at its last position and holds
                it.
        """
        plant = self._stepper.plant
        at_tools = None if wrench is None else real_array(wrench, "wrench", self.arm.robot.wrench_shape)
        before = self._state
        number = self._steps % self._hold_steps
        if number == 0:
            self._former, self._taken = self._taken, self._commanded
        self._steps += 1
        interpolates = self.drive_interpolation == "linear"
        share = (number + 0.5) / self._hold_steps if interpolates else 1.0
        self._line.append(self._taken.after(self._former, share))
        self._servo = self._added(self._line.popleft())
        try:
            external: Array | float = 0.0
            if self._push is not None and self._kinematics:
                external = self._kinematics.jacobian(plant.parts(before).q, self._pushed).T @ self._push
            self._state = self._stepper.step(before, self._servo, at_tools, external)
        except SimulationError:
            q, theta, qd, thetad = plant.parts(before)
            self._state = np.concatenate([q, theta, np.zeros_like(qd), np.zeros_like(thetad)])
            self._qdd, self._thetadd, self._held = np.zeros_like(qd), np.zeros_like(theta), None
            self.hold()
            self._motor_effort = self._stepper.motor_effort(self._state, self._servo)
            raise
        now, then = plant.parts(self._state), plant.parts(before)
        self._qdd, self._thetadd = (now.qd - then.qd) / self.period, (now.thetad - then.thetad) / self.period
        self._motor_effort = self._stepper.mean_effort(before, self._state, self._servo)

    def _added(self, sent: Servo) -> Servo:
        """Servo with the efforts that the drives add in the present state, and with the age of its feedback.

        The delayed motor position is theta - a thetad + a²/2 thetadd, the velocity thetad - b thetadd, with thetadd of
        the last step. A PD of these equals a PD of theta and thetad with another reference and less damping.
        """
        if any(ages := self.arm.robot.drive_feedback_delay):
            a, b = ages
            before = sent.effort + sent.kd * (sent.velocity + b * self._thetadd)
            kd = sent.kd - a * sent.kp
            position = sent.position - 0.5 * a**2 * self._thetadd
            sent = Servo(before, position, np.zeros_like(position), sent.kp, kd)
        return sent if self._adding is None else sent._replace(effort=sent.effort + self._own_efforts())

    def _own_efforts(self) -> Array:
        """Efforts (m,) that the drives add in the middle of the next step, N m or N."""
        q, theta, qd, thetad = self._stepper.plant.parts(self._state)
        zero = np.zeros_like(theta)
        if self._adding is None:
            return zero
        return self._adding.drive_state(theta, thetad, zero, sent_at=(q + 0.5 * self.period * qd, qd)).motor_effort

    def readings(self) -> Readings:
        """Present sensor readings; each call draws new noise."""
        q, theta, qd, thetad = self._stepper.plant.parts(self._state)
        tau = self._stepper.joint_effort(self._state, self._servo, self._qdd)
        exact = Readings(q, qd, tau, theta, thetad, self._motor_effort)
        if self._noise is None:
            return exact
        pairs = zip(exact, self._noise, strict=True)
        return Readings(*(x + scale * self._random.standard_normal(len(x)) for x, scale in pairs))


def _whole_steps(wanted: float | None, robot: Robot, period: float, name: str, least: int = 0) -> int:
    """Number of steps of the time ``wanted``, s; None for the time of the robot, which is rounded."""
    time = not_negative(getattr(robot, name) if wanted is None else wanted, name)
    steps = max(round(time / period), least)
    if time and abs(time / period - steps) > 1e-6:
        if wanted is not None:
            raise StateError(f"{name} must be a multiple of the step of {period:g} s, is {time:g} s")
        warnings.warn(
            f"{robot.name}: {name} of {time:g} s is not a multiple of the step of {period:g} s; simulated as "
            f"{steps * period:g} s",
            RobotDescriptionWarning,
            stacklevel=3,
        )
    return steps


def _scales(noise: SensorNoise, arm: ElasticArm) -> Readings:
    """Standard deviations of all readings."""
    links = [
        checks.not_negative(f"{name}_noise", checks.repeated_parameter(f"{name}_noise", values, arm.robot.n))
        for name, values in noise._asdict().items()
    ]
    return Readings(*links, *(values[arm.motor_joint] for values in links))
