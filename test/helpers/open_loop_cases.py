# SPDX-License-Identifier: Apache-2.0
"""Independent simulation of the iiwa with springs of every kind on the paper's motion, without feedback.

Links by Pinocchio's articulated-body algorithm; springs, friction and transmissions are written here.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pinocchio
from pinocchio_model import pinocchio_model
from scipy.integrate import DOP853

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.actuators import Actuator, Friction, Transmission
from eom_dynamics.actuators import springs as kinds
from eom_dynamics.arrays import Array
from eom_dynamics.jet import Jet
from eom_dynamics.trajectory import paper_motion

MOTION = paper_motion()
K = load_robot("iiwa").stiffness

Law = Callable[[float, Array, Array], Array]  # spring efforts (m,) from time, deflections and their rates (m,)


class Case(NamedTuple):
    """An arm, and its springs and motors in the simulation.

    Attributes:
        arm: the model of the feedforward.
        law: law of the springs.
        spent: motor loads from spring efforts (m,) and motor velocities (m,).
        motors: joint sides of the springs from motor positions (m,), or rates from velocities.
        stiffness: commanded stiffness over time, k, kd, kdd.
        filter: (K, D) of damped springs.
        tolerance: relative tolerance of the integrator, and absolute tolerance in rad.
    """

    arm: ElasticArm
    law: Law
    spent: Callable[[Array, Array], Array] = lambda springs, thetad: springs
    motors: Callable[[Array], Array] = lambda theta: theta
    stiffness: Callable[[float], Sequence[Array]] = lambda t: ()
    filter: tuple[Array, Array] | None = None
    tolerance: tuple[float, float] = (1e-12, 1e-13)


class Feedforward(NamedTuple):
    """Motor efforts (m,) from time and deflections of damped springs (7,), by flatness or for rigid joints."""

    case: Case
    rigid: bool = False

    def command(self, t: float, kept: Array) -> Any:
        deflection = kept if self.case.filter else None
        motion = MOTION.derivatives(t)
        return self.case.arm.feedforward(*motion, commanded_stiffness=self.case.stiffness(t), deflection=deflection)

    def effort(self, t: float, kept: Array) -> Array:
        if not self.rigid:
            return self.command(t, kept).motor_effort
        arm = self.case.arm
        q, qd, qdd = MOTION.derivatives(t, order=2)
        tau = arm.dynamics.effort(q, qd, qdd)
        commanded = self.case.stiffness(t) or [arm.stiffness]
        springs = np.concatenate(
            [
                0.5 * tau_i + _preload(spring, k) if len(spring.motor_suffixes) == 2 else [tau_i]
                for tau_i, spring, k in zip(tau, arm.springs, commanded[0], strict=True)
            ]
        )
        load = self.case.spent(springs, arm.motors_following(qd))
        return arm.motor_inertia * arm.motors_following(qdd) + load


def _preload(pair: Any, k: float) -> Array:
    """Efforts (2,) of both motors of a pair without load at a stiffness."""
    _, loads = pair.deflections([Jet([0.0])], Jet([k]))
    return np.array([load[0] for load in loads])


def one_kind(spring: Any, law: Law, **more: Any) -> Case:
    return Case(ElasticArm(with_spring(load_robot("iiwa"), spring)), law, **more)


def with_spring(robot: Robot, spring: Any) -> Robot:
    """The robot with a spring at each joint: one for all, or a function of the joint's index."""
    make = spring if callable(spring) else lambda _: spring
    joints = tuple(replace(joint, spring=make(i)) for i, joint in enumerate(robot.joints))
    return replace(robot, joints=joints)


def _dead_zone(t: float, d: Array, _: Array) -> Array:
    b, w = 5e-4, 2e-4
    beyond = 0.5 * (d - b + np.sqrt((d - b) ** 2 + w**2)) - 0.5 * (-d - b + np.sqrt((d + b) ** 2 + w**2))
    return 3e3 * d + 1.2e4 * beyond


def _stiffness(t: float) -> tuple[Array, Array, Array]:
    k = (8e3 + 2e3 * np.sin(3 * t), 6e3 * np.cos(3 * t), -18e3 * np.sin(3 * t))
    return tuple(np.full(7, x) for x in k)  # type: ignore[return-value]


def _pair_stiffness(t: float) -> tuple[Array, Array, Array]:
    k = (5e4 + 5e3 * np.sin(3 * t), 1.5e4 * np.cos(3 * t), -4.5e4 * np.sin(3 * t))
    return tuple(np.full(7, x) for x in k)  # type: ignore[return-value]


def _exponential_pair(t: float, d: Array, _: Array) -> Array:
    return 2e3 / 150.0 * np.stack([np.expm1(150.0 * d[::2]), -np.expm1(-150.0 * d[1::2])], axis=1).ravel()


def _quadratic_pair(t: float, d: Array, _: Array) -> Array:
    s1, s2 = d[::2], -d[1::2]
    return np.stack([2e3 * s1 + 2e6 * s1**2, -(2e3 * s2 + 2e6 * s2**2)], axis=1).ravel()


def _damped() -> Case:
    # Softer than the others, because dampers make the motion of the lightest link fast.
    stiffness, D = 5e3, 3.0
    return one_kind(
        kinds.DampedSpring(stiffness, D),
        lambda t, d, dd: stiffness * d + D * dd,
        filter=(np.full(7, stiffness), np.full(7, D)),
    )


def _coupled() -> Case:
    matrix = np.diag(K) + 0.1 * np.sqrt(np.outer(K, K)) * (np.eye(7, k=1) + np.eye(7, k=-1))
    robot = with_spring(load_robot("iiwa"), kinds.RigidSpring())
    arm = ElasticArm(replace(robot, coupled_stiffness=(tuple(range(7)), kinds.CoupledSpring(matrix))))
    return Case(arm, lambda t, d, _: matrix @ d)


def _geared() -> Case:
    """Linear springs, coupled springs, pairs, a differential, and friction in one arm."""
    robot = load_robot("iiwa")
    pairs = {1: kinds.ExponentialPair(2e3, 150.0, 2.5e4), 3: kinds.QuadraticPair(2e3, 1e6, 2e4)}
    coupled = np.array([[2e4, 3e3], [3e3, 1.5e4]])
    friction = Friction(viscous=0.8, coulomb=0.3, static=0.5, stribeck_velocity=0.3, smoothing_velocity=0.2)
    joints = tuple(
        replace(
            joint,
            spring=pairs.get(i, kinds.RigidSpring() if i in (0, 2) else kinds.LinearSpring(K[i])),
            actuator=Actuator(friction=friction),
        )
        for i, joint in enumerate(robot.joints)
    )
    differential = Transmission([[0.5, 0.5], [0.5, -0.5]])
    whole = replace(
        robot,
        joints=joints,
        coupled_stiffness=((0, 2), kinds.CoupledSpring(coupled)),
        transmission=((5, 6), differential),
    )

    def law(t: float, delta: Array, _: Array) -> Array:
        springs = np.concatenate([np.zeros(6), K[4:] * delta[6:]])
        springs[[0, 3]] = coupled @ delta[[0, 3]]
        springs[1:3] = 2e3 / 150.0 * np.array([np.expm1(150.0 * delta[1]), -np.expm1(-150.0 * delta[2])])
        s1, s2 = delta[4], -delta[5]
        springs[4:6] = 2e3 * s1 + 0.5e6 * s1**2, -(2e3 * s2 + 0.5e6 * s2**2)
        return springs

    def spent(springs: Array, thetad: Array) -> Array:
        load = springs.copy()
        load[-2:] = 0.5 * (springs[-2] + springs[-1]), 0.5 * (springs[-2] - springs[-1])
        dry = (0.3 + 0.2 * np.exp(-((thetad / 0.3) ** 2))) * np.tanh(thetad / 0.2)
        return load + 0.8 * thetad + dry

    def motors(theta: Array) -> Array:
        side = theta.copy()
        side[-2:] = [0.5 * (theta[-2] + theta[-1]), 0.5 * (theta[-2] - theta[-1])]
        return side

    return Case(ElasticArm(whole), law, spent, motors)


def all_memoryless() -> Case:
    """Linear, cubic, polynomial, exponential, dead zone, tabulated and variable springs, one at each joint."""
    cases = [CASES[kind]() for kind in ("linear", "cubic", "polynomial", "exponential", "dead_zone", "tabulated")]
    cases.append(CASES["variable"]())
    springs = [case.arm.springs[i] for i, case in enumerate(cases)]

    def law(t: float, d: Array, dd: Array) -> Array:
        return np.array([case.law(t, d, dd)[i] for i, case in enumerate(cases)])

    return one_kind(lambda i: springs[i], law, stiffness=_stiffness)


def _tabulated() -> Case:
    table = np.array([[0.0, 0.0], [1e-3, 8.0], [2e-3, 18.0], [4e-3, 45.0], [8e-3, 120.0]]).T
    spring = kinds.TabulatedSpring(*table)
    # The law between the points of the table is the spring's own. At these points the curve is only C², where the
    # integrator underestimates its error.
    return one_kind(spring, lambda t, d, _: spring.load(d), tolerance=(1e-13, 1e-15))


CASES: dict[str, Callable[[], Case]] = {
    "linear": lambda: one_kind(lambda i: kinds.LinearSpring(K[i]), lambda t, d, _: K * d),
    "cubic": lambda: one_kind(kinds.CubicSpring(1.5e4, 2e9), lambda t, d, _: 1.5e4 * d + 2e9 * d**3),
    "polynomial": lambda: one_kind(
        kinds.PolynomialSpring([1.5e4, 1e5, 1e9]), lambda t, d, _: 1.5e4 * d + 1e5 * d**2 + 1e9 * d**3
    ),
    "exponential": lambda: one_kind(
        kinds.ExponentialSpring(1.5e4, 300.0), lambda t, d, _: 1.5e4 / 300.0 * np.sinh(300.0 * d)
    ),
    "dead_zone": lambda: one_kind(kinds.DeadZoneSpring(1.5e4, 3e3, 5e-4, 2e-4), _dead_zone),
    "tabulated": _tabulated,
    "damped": _damped,
    "variable": lambda: one_kind(
        kinds.VariableSpring(3e3, 3e4, 8e3), lambda t, d, _: _stiffness(t)[0] * d, stiffness=_stiffness
    ),
    "antagonistic_exponential": lambda: one_kind(
        kinds.ExponentialPair(2e3, 150.0, 5e4), _exponential_pair, stiffness=_pair_stiffness
    ),
    "antagonistic_quadratic": lambda: one_kind(
        kinds.QuadraticPair(2e3, 4e6, 5e4), _quadratic_pair, stiffness=_pair_stiffness
    ),
    "coupled": _coupled,
    "pairs, coupled springs, differential, friction": _geared,
}
"""Arms by kind of spring."""


def link_errors(feedforward: Feedforward, duration: float, *, give_up: float = np.inf) -> dict[float, float]:
    """Largest error of any link, rad, at the time of each step, s, from the exact initial state.

    Ends early if an error exceeds ``give_up``.
    """
    case = feedforward.case
    arm, m = case.arm, len(case.arm.motor_joint)
    model = pinocchio_model(load_robot("iiwa"))
    data = model.createData()
    ends = np.cumsum([7, m, 7, m])

    def derivative(t: float, y: Array) -> Array:
        q, theta, qd, thetad, kept = np.split(y, ends)
        delta, deltad = (case.motors(a) - b[arm.motor_joint] for a, b in ((theta, q), (thetad, qd)))
        springs = case.law(t, delta, deltad)
        qdd = pinocchio.aba(model, data, q, qd, np.bincount(arm.motor_joint, springs, 7))
        thetadd = (feedforward.effort(t, kept) - case.spent(springs, thetad)) / arm.motor_inertia
        keptd = np.zeros(7)
        if case.filter:
            keptd = (arm.dynamics.effort(*MOTION.derivatives(t, order=2)) - case.filter[0] * kept) / case.filter[1]
        return np.concatenate([qd, thetad, qdd, thetadd, keptd])

    q, qd, *higher = MOTION.derivatives(0.0)
    kept = arm.feedforward(q, qd, *higher, commanded_stiffness=case.stiffness(0.0)).motor_position[:7] - q
    start = feedforward.command(0.0, kept)
    initial = np.concatenate([q, start.motor_position, qd, start.motor_velocity, kept])
    solver = DOP853(derivative, 0.0, initial, duration, rtol=case.tolerance[0], atol=case.tolerance[1])
    errors: dict[float, float] = {}
    while solver.status == "running":
        solver.step()
        errors[solver.t] = float(np.max(np.abs(solver.y[:7] - MOTION.derivatives(solver.t, order=0)[0])))
        if errors[solver.t] > give_up:
            return errors
    assert solver.status == "finished"
    return errors
