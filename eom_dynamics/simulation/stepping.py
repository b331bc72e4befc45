# SPDX-License-Identifier: Apache-2.0
"""Real-time time steps of fixed cost, stable for any spring, damper, friction and drive gain.

ROS2 of J. G. Verwer, E. J. Spee, J. G. Blom and W. Hundsdorfer, "A second-order Rosenbrock method applied to
photochemical dispersion problems", SIAM J. Sci. Comput. 20 (1999): for y' = f(y) and a matrix A,

    (1 - g h A) k1 = f(y),    (1 - g h A) k2 = f(y + h k1) - 2 k1,    y + h (3 k1 + k2)/2,    g = 1 - 1/sqrt(2).

The method is of second order for any A. If A is at least the derivative of f, it damps motion that is too fast for the
step. A contains the stiff terms: springs, dampers, friction, gear loss and the feedback of the drives, with the larger
slope of both ends of a step. Gravity and Coriolis efforts change slowly and are not in A. With y = (x, v) a stage is
one linear solve of the size of v,

    (M + g h D + (g h)² K) k_v = M r_v - g h K r_x,    k_x = r_x + g h k_v,    A = [[0, 1], [-M⁻¹ K, -M⁻¹ D]],

with the parts r_x, r_v of the right-hand side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arguments import flag, positive
from ..arrays import Array
from ..exceptions import SimulationError, StateError
from .elastic_plant import CarriedInertia, ElasticPlant, require_plant


class Servo(NamedTuple):
    """Servo of m motors: effort + kp (position - theta) + kd (velocity - thetad), on the link side of the gears.

    This is the law of :func:`eom_dynamics.elastic.motor_pd_effort`, with separate gains: a step that uses the gains is
    stable for any gains, like the current loop of a drive, which is much faster than the step.

    Attributes:
        effort: added effort (m,), N m or N.
        position, velocity: reference (m,), rad or m, and per s.
        kp, kd: gains (m,), not negative, N m/rad and N m s/rad (N/m, N s/m).
    """

    effort: Array
    position: Array
    velocity: Array
    kp: Array
    kd: Array

    def wanted(self, theta: Array, thetad: Array) -> Array:
        """Commanded efforts (m,) at motor positions theta and velocities thetad (m,)."""
        return self.effort + self.kp * (self.position - theta) + self.kd * (self.velocity - thetad)

    def after(self, former: Servo, share: float) -> Servo:
        """Servo interpolated between a former servo and this servo, at ``share``; this servo if the gains differ."""
        if share == 1.0 or not (np.array_equal(self.kp, former.kp) and np.array_equal(self.kd, former.kd)):
            return self
        effort, position, velocity = (x + share * (y - x) for x, y in zip(former[:3], self[:3], strict=True))
        return self._replace(effort=effort, position=position, velocity=velocity)


def effort_only(effort: Array) -> Servo:
    """Servo without feedback."""
    zero = np.zeros_like(effort)
    return Servo(effort, zero, zero, zero, zero)


_GAMMA = 1 - np.sqrt(0.5)

# Velocity below which the friction of a motor at rest applies, rad/s or m/s.
_AT_REST = 1e-9

# Largest motion in one step, rad or m.
_FURTHEST = 1.0


class Stepper:
    """Time steps of one arm, at nominal stiffness.

    Attributes:
        plant: links and motors; states (2n + 2m,) as in :class:`ElasticPlant`.
        period: time step, s.
    """

    def __init__(self, plant: ElasticPlant, period: float, *, limited: bool = True) -> None:
        """Precompute constant matrices.

        Args:
            plant: links and motors.
            period: time step, s, > 0.
            limited: whether to clip motor efforts to the limits of torque, current and voltage.

        Raises:
            StateError: ``period`` is not positive, or ``limited`` not a bool.
            TypeError: ``plant`` is not an ElasticPlant.
        """
        from scipy.linalg import lapack  # imported here, as in integrated(), and before the first step

        require_plant(plant)
        self._lapack = lapack
        self.plant, self.period = plant, positive(period, "period")
        arm = plant.arm
        self._n = n = arm.robot.n
        rigid, m, elastic = plant.rigid, len(plant.rigid), np.flatnonzero(~plant.rigid)
        # Maps from independent variables (n links, then motors at elastic joints) to all motors and deflections.
        motors = np.zeros((m, n + len(elastic)))
        motors[elastic, n + np.arange(len(elastic))] = 1.0
        links = np.eye(n, n + len(elastic))
        self._deflection = np.array([plant.deflection(motors[:, i], links[:, i]) for i in range(motors.shape[1])]).T
        motors[rigid, arm.motor_joint[rigid]] = 1.0
        self._motors = motors
        self._elastic, self._zero, self._no_effort = elastic, np.zeros(n), np.zeros(m)
        # Indices of the independent variables among links and motors.
        self._independent = np.concatenate([np.arange(n), n + elastic])
        self._lossless = arm.gear.is_lossless and arm.friction.is_none
        self._constant = plant.springs.tangents(np.zeros(m)) if plant.springs.is_linear else None
        limits = (arm.motor.torque_limit, arm.motor.current_limit, arm.motor.voltage_limit)
        self._limited = flag(limited, "limited") and any(np.isfinite(limit).any() for limit in limits)

    def step(self, state: Array, servo: Servo, wrench: Array | None = None, external: Array | float = 0.0) -> Array:
        """State (2n + 2m,) after one period, with a constant drive reference.

        Args:
            wrench: W (6,), or (k, 6) of k tools, that the robot exerts at its tools, constant over the period, as for
                :meth:`ElasticPlant.tool_efforts`; by default none.
            external: efforts (n,) on the links, also constant.

        Raises:
            SimulationError: the motion leaves all bounds. The argument ``state`` is unchanged.
        """
        try:
            q, theta, qd, thetad = self.plant.parts(state)
            x, v = np.concatenate([q, theta[self._elastic]]), np.concatenate([qd, thetad[self._elastic]])
            with np.errstate(all="ignore"):
                x, v = self._step(x, v, servo, wrench, external)
        except (StateError, np.linalg.LinAlgError):
            x = v = np.array([np.nan])
        # The comparison is false for NaN, too.
        if not (np.all(np.abs(v) * self.period <= _FURTHEST) and np.all(np.isfinite(x))):
            raise SimulationError(
                f"{self.plant.arm.robot.name}: the motion leaves all bounds: more than {_FURTHEST:g} rad (m) a step"
            )
        return np.concatenate([x[: self._n], self._motors @ x, v[: self._n], self._motors @ v])

    def motor_effort(self, state: Array, servo: Servo) -> Array:
        """Motor efforts (m,) in a state, N m or N."""
        _, theta, _, thetad = self.plant.parts(state)
        return self._servo_effort(servo, theta, thetad)

    def mean_effort(self, before: Array, after: Array, servo: Servo) -> Array:
        """Mean motor efforts (m,) of a step between two states, N m or N.

        A constant reference makes the effort of a moving drive a saw-tooth; its mean, not its end, moves the motor. By
        Simpson's rule on the cubic through positions and velocities at both ends, exact for a PD within its limits.
        """
        h = self.period
        _, theta, _, thetad = self.plant.parts(before)
        _, theta_end, _, thetad_end = self.plant.parts(after)
        middle = 0.5 * (theta + theta_end) + h / 8 * (thetad - thetad_end)
        speed = 1.5 / h * (theta_end - theta) - 0.25 * (thetad + thetad_end)
        ends = self._servo_effort(servo, theta, thetad) + self._servo_effort(servo, theta_end, thetad_end)
        return (ends + 4 * self._servo_effort(servo, middle, speed)) / 6

    def joint_effort(self, state: Array, servo: Servo, qdd: Array) -> Array:
        """Efforts (n,) between motors and links, N m or N.

        Args:
            qdd: link accelerations (n,), which rotors at rigid joints share, rad/s² or m/s².
        """
        plant, arm = self.plant, self.plant.arm
        q, theta, qd, thetad = plant.parts(state)
        spring = plant.springs.loads(plant.deflection(theta, q), plant.deflection(thetad, qd))
        rotor = arm.motor_inertia * qdd[arm.motor_joint]
        if arm.rotors is not None:
            links = slice(None, self._n)
            rotor = rotor + (arm.rotors.mass_matrix(q)[:, links] @ qdd + arm.rotors.bias(q, qd, thetad))[self._n :]
        through = self._servo_effort(servo, theta, thetad) - arm.friction.effort(thetad) - rotor
        return np.bincount(arm.motor_joint, np.where(plant.rigid, through, spring)).astype(float)

    def _servo_effort(self, servo: Servo, theta: Array, thetad: Array) -> Array:
        wanted, arm = servo.wanted(theta, thetad), self.plant.arm
        if not self._limited:
            return wanted
        return arm.motor.clipped(wanted / arm.gear_ratio, arm.gear_ratio * thetad) * arm.gear_ratio

    def _step(
        self, x: Array, v: Array, servo: Servo, wrench: Array | None, external: Array | float
    ) -> tuple[Array, Array]:
        h = self.period
        gh = _GAMMA * h
        force, matrices = self._forces(x, v, servo, wrench, slopes=True)
        assert matrices is not None
        force[: self._n] += external
        K, D = matrices
        M = self._mass_matrix(x)
        lu, pivots, _ = self._lapack.dgetrf(M + gh * (D + gh * K))
        acceleration = self._lapack.dgetrs(lu, pivots, force - gh * (K @ v))[0]
        velocity = v + gh * acceleration
        x_end, v_end = x + h * velocity, v + h * acceleration
        force, _ = self._forces(x_end, v_end, servo, wrench)
        force[: self._n] += external
        right_x = v_end - 2 * velocity
        right_v = np.linalg.solve(self._mass_matrix(x_end), force) - 2 * acceleration
        second = self._lapack.dgetrs(lu, pivots, M @ right_v - gh * (K @ right_x))[0]
        x = x + h * (1.5 * velocity + 0.5 * (right_x + gh * second))
        return x, v + h * (1.5 * acceleration + 0.5 * second)

    def _mass_matrix(self, x: Array) -> Array:
        return self.plant.inertia.matrix(x[: self._n])[np.ix_(self._independent, self._independent)]

    def _forces(
        self, x: Array, v: Array, servo: Servo, wrench: Array | None, *, slopes: bool = False
    ) -> tuple[Array, tuple[Array, Array] | None]:
        """Efforts on the independent variables, and with ``slopes`` K and D, bounds on the negative slopes."""
        n, to_motors, to_springs = self._n, self._motors, self._deflection
        thetad, delta, deltad = to_motors @ v, to_springs @ x, to_springs @ v
        spring = self.plant.springs.loads(delta, deltad)
        # Spring efforts on the independent variables; efforts on motors pass through the gears.
        load = spring @ to_springs
        chord, passed = self._losses(load[n:], thetad)
        force = (self._servo_effort(servo, to_motors @ x, thetad) - chord * thetad) @ to_motors - load
        if isinstance(inertia := self.plant.inertia, CarriedInertia):
            force += inertia.free(x[:n], v[:n], thetad, self._zero, self._no_effort)[self._independent]
        else:
            force[:n] -= self.plant.arm.dynamics.bias(x[:n], v[:n])
        if wrench is not None:
            force[:n] += self.plant.tool_efforts(x[:n], wrench)
        if not slopes:
            return force, None
        slope, damping = self._tangents(delta, delta + self.period * deltad)
        to_variables = (to_springs * passed).T
        K = to_variables @ slope @ to_springs + (to_motors.T * servo.kp) @ to_motors
        D = to_variables @ damping @ to_springs + (to_motors.T * (servo.kd + chord)) @ to_motors
        return force, (K, D)

    def _losses(self, load: Array, thetad: Array) -> tuple[Array, Array]:
        """Motor losses (m,) divided by velocities, and gear factors on loads of independent variables.

        Losses brake at every velocity; with the slope of the chord from rest no step reverses a motion. Springs at
        motors of elastic joints determine the load.
        """
        arm, passed = self.plant.arm, np.ones(self._n + len(load))
        if self._lossless:
            return np.zeros_like(thetad), passed
        moving = np.where(np.abs(thetad) < _AT_REST, _AT_REST, thetad)
        behind = np.zeros_like(thetad)
        behind[self._elastic] = load
        passed[self._n :] = arm.gear.load(np.ones_like(thetad), behind * thetad)[self._elastic]
        return (arm.friction.effort(moving) + arm.gear.load(behind, moving) - behind) / moving, passed

    def _tangents(self, *deltas: Array) -> tuple[Array, Array]:
        """Largest spring slopes at any of the deflections (m,), and their damping, each (m, m)."""
        if self._constant is not None:
            return self._constant
        slopes, (damping, *_) = zip(*map(self.plant.springs.tangents, deltas), strict=True)
        return np.maximum.reduce(slopes), damping
