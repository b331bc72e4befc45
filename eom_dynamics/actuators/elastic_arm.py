# SPDX-License-Identifier: Apache-2.0
"""Feedforward of an arm with elastic joints, by differential flatness.

The reduced model of M. W. Spong, "Modeling and control of elastic joint robots", J. Dyn. Sys. Meas. Control
109 (1987): a spring K between motor and link at each joint, and rotors whose spin dominates their motion,

    M(q) qdd + C(q, qd) qd + Q_grav + Q_ext = tau,    tau = K (theta - q),    tau_m = B thetadd + tau.

The links' motion q(t) is a flat output: q to qdddd give tau, taud, taudd and with them the whole motor side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics import Dynamics
from ..exceptions import RobotDescriptionError
from ..robot import Robot

Array = NDArray[np.float64]


class Feedforward(NamedTuple):
    """What joints and motors must do in a state, each (n,) or (N, n); motors on the link side of the gear.

    Attributes:
        tau, taud, taudd: joint efforts, N m or N, and their time derivatives.
        motor_position, motor_velocity, motor_acceleration: rad or m, and per s, s².
        motor_effort: N m or N.
    """

    tau: Array
    taud: Array
    taudd: Array
    motor_position: Array
    motor_velocity: Array
    motor_acceleration: Array
    motor_effort: Array


class ElasticArm:
    """An arm whose joints are linear springs, rigid, or any mix of both.

    Attributes:
        dynamics: inverse dynamics of the links.
        stiffness: of the joint springs (n,), N m/rad or N/m; infinite where a joint is rigid.
        rotor_inertia: (n,) on the link side of the gear, kg m² or kg.
    """

    def __init__(
        self, robot: Robot, *, stiffness: ArrayLike | None = None, rotor_inertia: ArrayLike | None = None
    ) -> None:
        """Take joint elasticity from the robot's file, or from arguments where they are given.

        Args:
            robot: the robot.
            stiffness: (n,) or one number for all joints, instead of the robot's; ``inf`` is rigid.
            rotor_inertia: (n,) or one number for all joints, instead of the robot's.

        Raises:
            RobotDescriptionError: a stiffness is not positive, a rotor inertia is negative or not finite, or
                there are not n of them.
        """
        self.dynamics = Dynamics(robot)
        self.stiffness = _per_joint(robot, "stiffness", robot.stiffness if stiffness is None else stiffness)
        self.rotor_inertia = _per_joint(
            robot, "rotor_inertia", robot.rotor_inertia if rotor_inertia is None else rotor_inertia
        )
        if not np.all(self.stiffness > 0):
            raise RobotDescriptionError(f"stiffness must be greater than 0 at each joint, is {self.stiffness}")
        if not np.all((self.rotor_inertia >= 0) & np.isfinite(self.rotor_inertia)):
            raise RobotDescriptionError(
                f"rotor_inertia must be finite and not negative at each joint, is {self.rotor_inertia}"
            )

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.dynamics.robot

    def feedforward(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        qddd: ArrayLike,
        qdddd: ArrayLike,
        *,
        wrench: Sequence[ArrayLike] = (),
    ) -> Feedforward:
        """Joint efforts and the motor side for a motion of the links.

        Arguments, shapes, units and errors are those of :meth:`Dynamics.inverse_dynamics`.
        """
        tau, taud, taudd = self.dynamics.inverse_dynamics(q, qd, qdd, qddd, qdddd, wrench=wrench)
        position, velocity, acceleration = (np.asarray(x, dtype=float) for x in (q, qd, qdd))
        motor_acceleration = acceleration + taudd / self.stiffness
        return Feedforward(
            tau=tau,
            taud=taud,
            taudd=taudd,
            motor_position=position + tau / self.stiffness,
            motor_velocity=velocity + taud / self.stiffness,
            motor_acceleration=motor_acceleration,
            motor_effort=self.rotor_inertia * motor_acceleration + tau,
        )


def _per_joint(robot: Robot, name: str, value: ArrayLike) -> Array:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise RobotDescriptionError(f"{name} must be one number or {robot.n}, one a joint; is {value!r:.60}") from None
    if array.shape not in ((), (robot.n,)):
        raise RobotDescriptionError(f"{name} must be one number or {robot.n}, one a joint; has shape {array.shape}")
    return np.broadcast_to(array, (robot.n,)).copy()
