# SPDX-License-Identifier: Apache-2.0
"""The iiwa on the paper's motion without feedback, with springs of every kind, in a simulation of its own.

Links by Pinocchio's articulated-body algorithm; the laws of springs, friction and transmissions stand here once more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chains import packaged_parameters
from numpy.typing import NDArray
from scipy.integrate import DOP853

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.actuators import Actuator, Friction, Transmission
from eom_dynamics.actuators.springs import (
    CoupledSpring,
    CubicSpring,
    DampedSpring,
    DeadZoneSpring,
    ExponentialPair,
    ExponentialSpring,
    LinearSpring,
    PolynomialSpring,
    QuadraticPair,
    RigidSpring,
    TabulatedSpring,
    VariableSpring,
)
from eom_dynamics.trajectory import paper_motion

pinocchio = pytest.importorskip("pinocchio", reason="Pinocchio is missing: pip install pin")

Array = NDArray[np.float64]

MOTION = paper_motion()
K = load_robot("iiwa").stiffness
TABLE = np.array([[0.0, 0.0], [1e-3, 8.0], [2e-3, 18.0], [4e-3, 45.0], [8e-3, 120.0]]).T
SPRINGS = (
    CubicSpring(1.5e4, 2e9),
    ExponentialSpring(1.5e4, 300.0),
    PolynomialSpring([1.5e4, 1e5, 1e9]),
    DeadZoneSpring(1.5e4, 3e3, 5e-4, 2e-4),
    TabulatedSpring(*TABLE),
    VariableSpring(3e3, 3e4, 8e3),
    DampedSpring(7.5e3, 30.0),
)


def one_motor_each() -> ElasticArm:
    """A spring of another kind at each joint."""
    robot = load_robot("iiwa")
    joints = tuple(replace(joint, elasticity=spring) for joint, spring in zip(robot.joints, SPRINGS, strict=True))
    return ElasticArm(replace(robot, joints=joints))


def stiffness(t: float) -> tuple[Array, Array, Array]:
    """Commanded over time, with two derivatives."""
    k = (8e3 + 2e3 * np.sin(3 * t), 6e3 * np.cos(3 * t), -18e3 * np.sin(3 * t))
    return tuple(np.full(7, x) for x in k)  # type: ignore[return-value]


def efforts_one_each(t: float, delta: Array, deltad: Array) -> Array:
    """Of the springs on links, by their laws."""
    b, w, d = 5e-4, 2e-4, delta[3]
    beyond = 0.5 * (d - b + np.sqrt((d - b) ** 2 + w**2)) - 0.5 * (-d - b + np.sqrt((d + b) ** 2 + w**2))
    return np.array(
        [
            1.5e4 * delta[0] + 2e9 * delta[0] ** 3,
            1.5e4 / 300.0 * np.sinh(300.0 * delta[1]),
            1.5e4 * delta[2] + 1e5 * delta[2] ** 2 + 1e9 * delta[2] ** 3,
            3e3 * d + 1.2e4 * beyond,
            # What lies between the points of a table is its spring's to say.
            float(SPRINGS[4].effort(delta[4])),  # type: ignore[union-attr, call-arg]
            stiffness(t)[0][5] * delta[5],
            7.5e3 * delta[6] + 30.0 * deltad[6],
        ]
    )


def largest_error(
    arm: ElasticArm,
    on_links: Callable[[float, Array, Array], Array],
    rate: Callable[[float, Array, Array, Array], Array],
    motor_effort: Callable[[float, float], Array],
    start: Array,
    duration: float,
) -> float:
    """Largest error of any link, rad.

    The state is q, theta, qd, thetad and the deflection of the damped spring as the feedforward keeps it.
    """
    from pinocchio_chain import PinocchioChain

    chain = PinocchioChain(packaged_parameters("iiwa"))
    m = len(arm.motor_joint)
    ends = np.cumsum([7, m, 7, m])

    def derivative(t: float, y: Array) -> Array:
        q, theta, qd, thetad, kept = np.split(y, ends)
        springs = on_links(t, theta_of(q, theta), theta_of(qd, thetad))
        tau = np.bincount(arm.motor_joint, springs, 7)
        qdd = pinocchio.aba(chain.model, chain.data, q, qd, tau)
        thetadd = rate(t, springs, thetad, motor_effort(t, kept[0]))
        tau_6 = arm.dynamics.effort(*MOTION.derivatives(t, order=2))[6]
        return np.concatenate([qd, thetad, qdd, thetadd, [(tau_6 - 7.5e3 * kept[0]) / 30.0]])

    def theta_of(link: Array, motor: Array) -> Array:
        joint_side = motor.copy()
        if arm.transmission:
            joint_side[-2:] = [0.5 * (motor[-2] + motor[-1]), 0.5 * (motor[-2] - motor[-1])]
        return joint_side - link[arm.motor_joint]

    solver = DOP853(derivative, 0.0, start, duration, rtol=1e-12, atol=1e-13)
    largest = 0.0
    while solver.status == "running":
        solver.step()
        largest = max(largest, float(np.max(np.abs(solver.y[:7] - MOTION.derivatives(solver.t, order=0)[0]))))
    assert solver.status == "finished"
    return largest


def run_one_each(duration: float) -> float:
    arm = one_motor_each()
    B = arm.rotor_inertia

    def feedforward(t: float, kept: float) -> Any:
        return arm.feedforward(*MOTION.derivatives(t), stiffness=stiffness(t), deflection=np.full(7, kept))

    q, qd, qdd, qddd, qdddd = MOTION.derivatives(0.0)
    settled = arm.feedforward(q, qd, qdd, qddd, qdddd, stiffness=stiffness(0.0))
    kept = float(settled.motor_position[6] - q[6])
    command = arm.feedforward(q, qd, qdd, qddd, qdddd, stiffness=stiffness(0.0), deflection=np.full(7, kept))
    start = np.concatenate([q, command.motor_position, qd, command.motor_velocity, [kept]])
    return largest_error(
        arm,
        efforts_one_each,
        lambda t, springs, thetad, effort: (effort - springs) / B,
        lambda t, kept: feedforward(t, kept).motor_effort,
        start,
        duration,
    )


def test_a_spring_of_each_kind() -> None:
    assert run_one_each(0.15) < 1e-10


def test_pairs_of_motors_coupled_springs_a_differential_and_friction() -> None:
    robot = load_robot("iiwa")
    pairs = {1: ExponentialPair(2e3, 150.0, 2.5e4), 3: QuadraticPair(2e3, 1e6, 2e4)}
    coupled = np.array([[2e4, 3e3], [3e3, 1.5e4]])
    friction = Friction(viscous=0.8, coulomb=0.3, static=0.5, stribeck_velocity=0.3, smoothing_velocity=0.2)
    joints = tuple(
        replace(
            joint,
            elasticity=pairs.get(i, RigidSpring() if i in (0, 2) else LinearSpring(K[i])),
            actuator=Actuator(friction=friction),
        )
        for i, joint in enumerate(robot.joints)
    )
    differential = Transmission([[0.5, 0.5], [0.5, -0.5]])
    arm = ElasticArm(
        replace(
            robot,
            joints=joints,
            coupled_stiffness=((0, 2), CoupledSpring(coupled)),
            transmission=((5, 6), differential),
        )
    )
    assert arm.motor_joint.tolist() == [0, 1, 1, 2, 3, 3, 4, 5, 6]
    B = robot.rotor_inertia[arm.motor_joint]

    def on_links(t: float, delta: Array, deltad: Array) -> Array:
        springs = np.concatenate([np.zeros(6), K[4:] * delta[6:]])
        springs[[0, 3]] = coupled @ delta[[0, 3]]
        springs[1:3] = 2e3 / 150.0 * np.array([np.expm1(150.0 * delta[1]), -np.expm1(-150.0 * delta[2])])
        s1, s2 = delta[4], -delta[5]
        springs[4:6] = 2e3 * s1 + 0.5e6 * s1**2, -(2e3 * s2 + 0.5e6 * s2**2)
        return springs

    def rate(t: float, springs: Array, thetad: Array, effort: Array) -> Array:
        load = springs.copy()
        load[-2:] = 0.5 * (springs[-2] + springs[-1]), 0.5 * (springs[-2] - springs[-1])
        dry = (0.3 + 0.2 * np.exp(-((thetad / 0.3) ** 2))) * np.tanh(thetad / 0.2)
        return (effort - load - 0.8 * thetad - dry) / B

    command = arm.feedforward(*MOTION.derivatives(0.0))
    q, qd = MOTION.derivatives(0.0, order=1)
    start = np.concatenate([q, command.motor_position, qd, command.motor_velocity, [0.0]])
    error = largest_error(
        arm, on_links, rate, lambda t, _: arm.feedforward(*MOTION.derivatives(t)).motor_effort, start, 0.25
    )
    assert error < 1e-10
