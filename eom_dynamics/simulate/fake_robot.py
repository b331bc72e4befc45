# SPDX-License-Identifier: Apache-2.0
"""An arm with drives that is not there: commands in, sensor readings out, step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuators import ElasticArm
from ..drivetrain.actuator import IDEAL_ACTUATOR
from ..drivetrain.springs import RigidSpring
from ..exceptions import RobotDescriptionError
from ..robot import Robot
from .elastic_plant import ElasticPlant
from .integration import SimulationError
from .servo import Servo, effort_only
from .stepping import Stepper

Array = NDArray[np.float64]


class Readings(NamedTuple):
    """What the sensors of an arm say.

    Attributes:
        q, qd: (n,) of the links, rad or m, and per s.
        tau: (n,) between motors and links: what springs give, at rigid joints what their motors give, N m or N.
        theta, thetad: (m,) of the motors, link side of the gear, rad or m, and per s.
        motor_effort: (m,) N m or N.
    """

    q: Array
    qd: Array
    tau: Array
    theta: Array
    thetad: Array
    motor_effort: Array


class FakeRobot:
    """Links, springs, motors, and drives with a PD.

    It starts at rest, holding its position.

    Attributes:
        arm: what it is.
        period: of a step, s.
        kp, kd: gains (m,) of the drives, N m/rad and N m s/rad (N/m, N s/m).
    """

    def __init__(
        self,
        arm: ElasticArm,
        *,
        period: float = 1e-3,
        position: ArrayLike = 0.0,
        natural_frequency: float = 70.0,
        damping_ratio: float = 1.0,
        kp: ArrayLike | None = None,
        kd: ArrayLike | None = None,
        limited: bool = True,
    ) -> None:
        """Put the arm at rest.

        Args:
            arm: links, springs, motors.
            period: of a step, s.
            position: where links are at the start, one number or (n,), rad or m.
            natural_frequency, damping_ratio: of a motor alone under its PD, rad/s and 1; where the joint is rigid,
                with the inertia that the joint has at the start.
            kp, kd: gains themselves instead, one number or (m,), N m/rad and N m s/rad (N/m, N s/m).
            limited: whether motors give no more than their limits allow.

        Raises:
            RobotDescriptionError: the arm cannot be simulated, see :class:`ElasticPlant`; or an argument has the wrong
                length, is not finite, or a gain is negative.
            StateError: two motors cannot hold their joint there at nominal stiffness.
        """
        self.arm, self.period = arm, period
        plant = ElasticPlant(arm)
        self._stepper = Stepper(plant, period, limited=limited)
        n, m = arm.robot.n, len(arm.motor_joint)
        q, zero = _numbers("initial_position", position, n), np.zeros(n)
        inertia = arm.motor_inertia + np.where(plant.rigid, np.diag(arm.dynamics.mass_matrix(q))[arm.motor_joint], 0.0)
        own_kp, own_kd = inertia * natural_frequency**2, 2 * damping_ratio * natural_frequency * inertia
        self.kp, self.kd = (
            own if given is None else _numbers(name, given, m, least=0.0)
            for name, given, own in (("kp", kp, own_kp), ("kd", kd, own_kd))
        )
        self._state = plant.on_trajectory(q, zero, zero, zero, zero)
        self._qdd = zero
        self._held: Array | None = None
        self.hold()

    def follow(self, position: Array, velocity: Array, effort: Array) -> None:
        """Let the drives follow a motor motion (m,) from now on, with an effort (m,) beside their PD."""
        self._servo = Servo(effort, position, velocity, self.kp, self.kd)
        self._held = position

    def apply(self, effort: Array) -> None:
        """Let the motors give these efforts (m,) from now on."""
        self._servo = effort_only(effort)
        self._held = None

    def hold(self) -> None:
        """Let the drives hold the position that they follow, or else that where motors are now.

        The effort beside the PD is that against gravity; of two motors at a joint, that of their springs now.
        """
        plant, arm = self._stepper.plant, self.arm
        q, theta, qd, thetad = plant.parts(self._state)
        gravity = arm.dynamics.effort(q, np.zeros_like(q), np.zeros_like(q))
        springs = plant.springs.effort(plant.deflection(theta, q), plant.deflection(thetad, qd))
        balance = np.where(arm.paired[arm.motor_joint], springs, gravity[arm.motor_joint])
        at_rest = np.zeros_like(theta)
        position = theta.copy() if self._held is None else self._held
        self.follow(position, at_rest, plant.motor_load(balance, at_rest))

    def advance(self) -> None:
        """Go a period further.

        Raises:
            SimulationError: the motion leaves all bounds. The arm then is at rest where it was, and holds that.
        """
        plant = self._stepper.plant
        before = self._state
        try:
            self._state = self._stepper.step(before, self._servo)
        except SimulationError:
            q, theta, qd, thetad = plant.parts(before)
            self._state = np.concatenate([q, theta, np.zeros_like(qd), np.zeros_like(thetad)])
            self._qdd, self._held = np.zeros_like(qd), None
            self.hold()
            raise
        self._qdd = (plant.parts(self._state).qd - plant.parts(before).qd) / self.period

    def readings(self) -> Readings:
        """What the sensors say now."""
        q, theta, qd, thetad = self._stepper.plant.parts(self._state)
        tau = self._stepper.joint_effort(self._state, self._servo, self._qdd)
        return Readings(q, qd, tau, theta, thetad, self._stepper.motor_effort(self._state, self._servo))


def torque_controlled(robot: Robot) -> Robot:
    """The robot as drives make it that control the effort at the link side, ideally: links alone, efforts (n,) in.

    What is between motor and link - spring, rotor, gear, friction - is what such drives compensate.
    """
    joints = (
        replace(
            joint,
            stiffness=np.inf,
            elasticity=RigidSpring(),
            rotor_inertia=0.0,
            gear_ratio=1.0,
            actuator=IDEAL_ACTUATOR,
        )
        for joint in robot.joints
    )
    return replace(robot, joints=tuple(joints), coupled_stiffness=None, transmission=None, rotor_model="reduced")


def _numbers(name: str, value: ArrayLike, count: int, *, least: float = -np.inf) -> Array:
    array = np.atleast_1d(np.asarray(value, dtype=float))
    if array.shape not in ((1,), (count,)):
        raise RobotDescriptionError(f"{name} must have 1 or {count} entries, has {array.size}")
    if not np.all(np.isfinite(array) & (array >= least)):
        raise RobotDescriptionError(f"{name} must be finite{' and not negative' if least == 0 else ''}, is {array}")
    return np.broadcast_to(array, (count,)).copy()
