# SPDX-License-Identifier: Apache-2.0
"""The arm with elastic joints as a plant: links and motors, coupled by springs.

The reduced model of M. W. Spong, "Modeling and control of elastic joint robots", J. Dyn. Sys. Meas. Control
109 (1987), the other way round than the feedforward: motor efforts in, motion of links and motors out,

    M(q) qdd + C(q, qd) qd + Q_grav = tau,    tau = K (theta - q),    B thetadd = tau_m - tau.

Where a joint is rigid its motor moves with the link, and the rotor's inertia adds to that of the links.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuators import ElasticArm
from ..exceptions import RobotDescriptionError
from .forward_dynamics import forward_dynamics

Array = NDArray[np.float64]


class ElasticPlant:
    """Links and motors of an arm, in one state or many at once.

    A state is an array (4, n), or (4, N, n) for N arms side by side: q, theta, qd, thetad, positions of links and
    motors and their rates, rad or m and per s, motors on the link side of the gear. At a rigid joint theta is q.

    Attributes:
        arm: links, springs and rotors.
        rigid: (n,) whether a joint is rigid.
    """

    def __init__(self, arm: ElasticArm) -> None:
        """Take the arm.

        Raises:
            RobotDescriptionError: a motor behind a spring has no rotor inertia, so that its speed can jump.
        """
        self.arm = arm
        self.rigid = np.isinf(arm.stiffness)
        light = ~self.rigid & (arm.rotor_inertia == 0)
        if np.any(light):
            names = [name for name, none in zip(arm.robot.joint_names, light, strict=True) if none]
            raise RobotDescriptionError(
                f"{arm.robot.name}: rotor_inertia must be greater than 0 at elastic joints to simulate them; "
                f"is 0 at {', '.join(names)}"
            )
        self._stiffness = np.where(self.rigid, 0.0, arm.stiffness)
        self._link_added = np.where(self.rigid, arm.rotor_inertia, 0.0)
        # Of rigid joints never used as a divisor that matters: their motors take the acceleration of the link.
        self._rotor = np.where(self.rigid, 1.0, arm.rotor_inertia)

    def on_trajectory(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike) -> Array:
        """The state (4, n) in which links are in this motion, and motors where it needs them.

        Arguments, shapes, units and errors are those of :meth:`Dynamics.inverse_dynamics`.
        """
        command = self.arm.feedforward(q, qd, qdd, qddd, np.zeros_like(np.asarray(q, dtype=float)))
        return np.stack([np.asarray(q), command.motor_position, np.asarray(qd), command.motor_velocity])

    def spring_effort(self, state: Array) -> Array:
        """Efforts (n,) or (N, n) of the springs on the links, N m or N; zero at rigid joints."""
        q, theta = state[:2]
        return self._stiffness * (theta - q)

    def spring_energy(self, state: Array) -> Array:
        """Energy of all springs, a number or (N,), J."""
        q, theta = state[:2]
        energy: Array = np.sum(0.5 * self._stiffness * (theta - q) ** 2, axis=-1)
        return energy

    def rate(self, state: Array, motor_effort: Array) -> Array:
        """Time derivative of the state, of its shape, under motor efforts (n,) or (N, n), N m or N."""
        q, _, qd, thetad = state
        spring = self.spring_effort(state)
        on_links = np.where(self.rigid, motor_effort, spring)
        qdd = forward_dynamics(self.arm.dynamics, q, qd, on_links, added_inertia=self._link_added)
        thetadd = np.where(self.rigid, qdd, (motor_effort - spring) / self._rotor)
        return np.stack([qd, thetad, qdd, thetadd])

    def step(self, state: Array, motor_effort: Array, period: float) -> Array:
        """The state a period (s) later under constant motor efforts, at a fixed cost: for real time.

        Semi-implicit: velocities first, then positions by the new velocities; the springs, whose vibration is too
        fast for a period of a millisecond, act at their deflection at the end of the period. Stable for any
        stiffness. The error is of the order of the period, and vibration faster than it is damped away.
        """
        q, theta, qd, thetad = state
        coming = np.stack([q + period * qd, theta + period * thetad, qd, thetad])
        spring = self.spring_effort(coming)
        # spring(end) = spring + k (thetadd - qdd): thetadd follows from the second equation, and what is left of k
        # in the first is an inertia.
        k = period**2 * self._stiffness
        series = k * self._rotor / (self._rotor + k)
        on_links = np.where(self.rigid, motor_effort, spring + k * (motor_effort - spring) / (self._rotor + k))
        qdd = forward_dynamics(self.arm.dynamics, q, qd, on_links, added_inertia=self._link_added + series)
        thetadd = np.where(self.rigid, qdd, (motor_effort - spring + k * qdd) / (self._rotor + k))
        qd, thetad = qd + period * qdd, thetad + period * thetadd
        return np.stack([q + period * qd, theta + period * thetad, qd, thetad])

    def power(self, state: Array, motor_effort: Array) -> Array:
        """Power that motors put in, a number or (N,), W."""
        power: Array = np.sum(motor_effort * state[3], axis=-1)
        return power
