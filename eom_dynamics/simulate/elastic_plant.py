# SPDX-License-Identifier: Apache-2.0
"""The arm with elastic joints as a plant: links and motors, coupled by springs.

The reduced model of M. W. Spong, "Modeling and control of elastic joint robots", J. Dyn. Sys. Meas. Control
109 (1987), the other way round than the feedforward: motor efforts in, motion of links and motors out,

    M(q) qdd + C(q, qd) qd + Q_grav = tau,    tau = f(theta - q),    B thetadd = tau_m - tau - friction.

Where a joint is rigid its motor moves with the link, and the rotor's inertia adds to that of the links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuators import ElasticArm
from ..exceptions import RobotDescriptionError
from .forward_dynamics import forward_dynamics
from .spring_loads import SpringLoads

Array = NDArray[np.float64]


class State(NamedTuple):
    """The parts of a state, views of it.

    Attributes:
        q, qd: (…, n) links, rad or m and per s.
        theta, thetad: (…, m) motors on the link side of the gear, alike.
    """

    q: Array
    theta: Array
    qd: Array
    thetad: Array


class ElasticPlant:
    """Links and motors of an arm, in one state or many at once.

    A state is an array (2n + 2m,), or (N, 2n + 2m) for N arms side by side: q, theta, qd, thetad one after the
    other. At a rigid joint theta is q.

    Attributes:
        arm: links, springs, rotors and what the motors lose.
        springs: of the arm.
        rigid: (m,) whether the joint of a motor is rigid.
    """

    def __init__(self, arm: ElasticArm) -> None:
        """Take the arm.

        Raises:
            RobotDescriptionError: a motor behind a spring has no rotor inertia, so that its speed can jump; or a rigid
                joint has a gear with loss or a transmission, which this model leaves out.
        """
        self.arm = arm
        self.springs = SpringLoads(arm)
        self.rigid = self.springs.rigid
        n, m = arm.robot.n, len(arm.motor_joint)
        self._ends = np.cumsum([n, m, n])
        self._of_joint = np.zeros((m, n))
        self._of_joint[np.arange(m), arm.motor_joint] = 1.0
        self._geared = np.eye(m)
        if arm.transmission:
            motors = np.searchsorted(arm.motor_joint, arm.transmission[0])
            self._geared[np.ix_(motors, motors)] = arm.transmission[1].matrix
            self._refuse(self.rigid & np.isin(np.arange(m), motors), "a transmission moves rigid joints")
        self._refuse(~self.rigid & (arm.motor_inertia == 0), "rotor_inertia must be greater than 0 at elastic joints")
        self._refuse(self.rigid & (arm.gear.efficiency < 1), "efficiency must be 1 at rigid joints")
        rigid = np.where(self.rigid, arm.motor_inertia, 0.0)
        self._link_added = rigid @ self._of_joint
        # Of rigid joints a divisor whose quotient is not used: their motors take the acceleration of the link.
        self._rotor = np.where(self.rigid, 1.0, arm.motor_inertia)

    def _refuse(self, motors: NDArray[np.bool_], reason: str) -> None:
        if np.any(motors):
            names = [name for name, bad in zip(self.arm.motor_names, motors, strict=True) if bad]
            raise RobotDescriptionError(f"{self.arm.robot.name}: {reason} to be simulated; see {', '.join(names)}")

    def parts(self, state: Array) -> State:
        """q, theta, qd, thetad of a state."""
        return State(*np.split(state, self._ends, axis=-1))

    def on_trajectory(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, qdddd: ArrayLike) -> Array:
        """The state in which links are in this motion, and motors where it needs them.

        Arguments, shapes, units and errors are those of :meth:`ElasticArm.feedforward`; of a damped spring the
        deflection without transient, of a variable one that at nominal stiffness.
        """
        command = self.arm.feedforward(q, qd, qdd, qddd, qdddd)
        return np.concatenate([q, command.motor_position, qd, command.motor_velocity], axis=-1)

    def motors_of_links(self, x: Array) -> Array:
        """Positions (…, m) of motors, or their rates, from those of links (…, n), if no spring were deflected."""
        joint_side: Array = x[..., self.arm.motor_joint]
        return joint_side if self.arm.transmission is None else joint_side @ np.linalg.inv(self._geared).T

    def deflection(self, theta: Array, q: Array) -> Array:
        """delta (…, m) of the springs from motors (…, m) and links (…, n), or its rates from theirs."""
        return np.where(self.rigid, 0.0, theta @ self._geared.T - q[..., self.arm.motor_joint])

    def motor_load(self, spring: Array, thetad: Array) -> Array:
        """What motors spend on springs, loss of their gears and friction (…, m), N m or N.

        Args:
            spring: efforts of the springs (…, m), N m or N; those of rigid joints zero.
            thetad: of the motors (…, m), rad/s or m/s.
        """
        load: Array = self.arm.gear.load(spring @ self._geared, thetad) + self.arm.friction.effort(thetad)
        return load

    def rate(self, state: Array, motor_effort: Array, stiffness: Array | None = None) -> Array:
        """Time derivative of the state, of its shape.

        Args:
            state: as of the class.
            motor_effort: (…, m), N m or N.
            stiffness: (n,) that of joints where it is commanded, N m/rad or N/m; None: nominal.
        """
        q, theta, qd, thetad = self.parts(state)
        spring = self.springs.effort(self.deflection(theta, q), self.deflection(thetad, qd), stiffness)
        free = motor_effort - self.motor_load(spring, thetad)
        on_links = np.where(self.rigid, free, spring) @ self._of_joint
        qdd = forward_dynamics(self.arm.dynamics, q, qd, on_links, added_inertia=self._link_added)
        thetadd = np.where(self.rigid, qdd[..., self.arm.motor_joint], free / self._rotor)
        return np.concatenate([qd, thetad, qdd, thetadd], axis=-1)

    def powers(self, state: Array, motor_effort: Array) -> Array:
        """Power that motors put in, and that friction, gears and dampers turn to heat: (2, …), W.

        With stiffness at its nominal value; what changes a stiffness puts in power of its own.
        """
        q, theta, qd, thetad = self.parts(state)
        deltad = self.deflection(thetad, qd)
        spring = self.springs.effort(self.deflection(theta, q), deltad)
        heat = np.sum((self.motor_load(spring, thetad) - spring @ self._geared) * thetad, axis=-1)
        return np.stack([np.sum(motor_effort * thetad, axis=-1), heat + self.springs.loss(deltad)])

    def step(self, state: Array, motor_effort: Array, period: float, stiffness: Array | None = None) -> Array:
        """The state a period (s) later under constant motor efforts, at a fixed cost: for real time.

        Semi-implicit: velocities first, then positions by the new velocities; springs, whose vibration is too fast
        for a period of a millisecond, dampers and friction act as linearised at the end of the period. Stable for any
        stiffness. The error is of the order of the period, and vibration faster than it is damped away.

        Arguments are those of :meth:`rate`.
        """
        h, n = period, self.arm.robot.n
        q, theta, qd, thetad = self.parts(state)
        coming = self.deflection(theta + h * thetad, q + h * qd)
        spring = self.springs.effort(coming, self.deflection(thetad, qd), stiffness)
        slope, damping = self.springs.tangents(coming, stiffness)
        # spring(end) = spring + k (G thetadd - S qdd), with theta by G and q by S at the springs.
        k = h**2 * slope + h * damping
        S, G = self._of_joint, self._geared
        free = motor_effort - self.motor_load(spring, thetad)
        bias = self.arm.dynamics.effort(q, qd, np.zeros_like(q))
        right = np.concatenate(
            [np.where(self.rigid, free, spring) @ S - bias, np.where(self.rigid, 0.0, free)], axis=-1
        )
        matrix = np.zeros((*right.shape, right.shape[-1]))
        matrix[..., :n, :n] = self.arm.dynamics.mass_matrix(q) + np.diag(self._link_added) + S.T @ k @ S
        matrix[..., :n, n:] = -S.T @ k @ G
        matrix[..., n:, :n] = np.swapaxes(matrix[..., :n, n:], -1, -2)
        friction = np.where(self.rigid, 0.0, h * np.maximum(self.arm.friction.slope(thetad), 0.0))
        matrix[..., n:, n:] = G.T @ k @ G + np.eye(len(G)) * (self._rotor + friction)[..., np.newaxis, :]
        accelerations = np.linalg.solve(matrix, right[..., np.newaxis])[..., 0]
        qdd = accelerations[..., :n]
        thetadd = np.where(self.rigid, qdd[..., self.arm.motor_joint], accelerations[..., n:])
        qd, thetad = qd + h * qdd, thetad + h * thetadd
        return np.concatenate([q + h * qd, theta + h * thetad, qd, thetad], axis=-1)
