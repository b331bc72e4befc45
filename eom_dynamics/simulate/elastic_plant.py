# SPDX-License-Identifier: Apache-2.0
"""The arm with elastic joints as a plant: links and motors, coupled by springs.

The reduced model of M. W. Spong, "Modeling and control of elastic joint robots", J. Dyn. Sys. Meas. Control
109 (1987), the other way round than the feedforward: motor efforts in, motion of links and motors out,

    M(q) qdd + C(q, qd) qd + Q_grav = tau,    tau = f(theta - q),    B thetadd = tau_m - tau - friction.

Where a joint is rigid its motor moves with the link, and the rotor's inertia adds to that of the links. An arm with the
complete model of rotors (:mod:`eom_dynamics.actuators.carried_rotors`) moves by that:

    (M + S B⁻¹ Sᵀ) qdd + S thetadd + c_q = tau,    Sᵀ qdd + B thetadd + c_theta = tau_m - tau - friction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuators import ElasticArm, motor_series
from ..exceptions import RobotDescriptionError
from ..states import STATE_NAMES
from .inertia import plant_inertia
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
        inertia: of links and motors.
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
        self.inertia = plant_inertia(arm, self.rigid)

    def _refuse(self, motors: NDArray[np.bool_], reason: str) -> None:
        if np.any(motors):
            names = [name for name, bad in zip(self.arm.motor_names, motors, strict=True) if bad]
            raise RobotDescriptionError(f"{self.arm.robot.name}: {reason} to be simulated; see {', '.join(names)}")

    def parts(self, state: Array) -> State:
        """q, theta, qd, thetad of a state."""
        return State(*np.split(state, self._ends, axis=-1))

    def on_trajectory(self, *motion: ArrayLike) -> Array:
        """The state in which links are in this motion, and motors where it needs them.

        Of a damped spring the deflection without transient, of a variable one that at nominal stiffness.

        Args:
            motion: q, qd, qdd, qddd, qdddd as of :meth:`ElasticArm.feedforward`, whose approximation of carried rotors
                and errors it then has; or as many as :func:`motor_series` needs to be exact, with its errors.
        """
        if len(motion) == len(STATE_NAMES):
            command = self.arm.feedforward(*motion)
            position, velocity = command.motor_position, command.motor_velocity
        else:
            position, velocity = motor_series(self.arm, motion).motor_position[:2]
        return np.concatenate([motion[0], position, motion[1], velocity], axis=-1)

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
        accelerations = self.inertia.accelerations(q, qd, thetad, spring @ self._of_joint, free)
        return np.concatenate([qd, thetad, *self._links_and_motors(accelerations)], axis=-1)

    def powers(self, state: Array, motor_effort: Array) -> Array:
        """Power that motors put in, and that friction, gears and dampers turn to heat: (2, …), W.

        With stiffness at its nominal value; what changes a stiffness puts in power of its own.
        """
        q, theta, qd, thetad = self.parts(state)
        deltad = self.deflection(thetad, qd)
        spring = self.springs.effort(self.deflection(theta, q), deltad)
        heat = np.sum((self.motor_load(spring, thetad) - spring @ self._geared) * thetad, axis=-1)
        return np.stack([np.sum(motor_effort * thetad, axis=-1), heat + self.springs.loss(deltad)])

    def _links_and_motors(self, accelerations: Array) -> tuple[Array, Array]:
        """Those of links (…, n) and motors (…, m), at rigid joints that of the link."""
        qdd, thetadd = np.split(accelerations, [self.arm.robot.n], axis=-1)
        return qdd, np.where(self.rigid, qdd[..., self.arm.motor_joint], thetadd)
