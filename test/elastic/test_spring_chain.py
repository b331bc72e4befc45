# SPDX-License-Identifier: Apache-2.0
"""Chains of springs against an independent simulation, numerical derivatives, and the feedforward of one spring."""

from typing import Any

import numpy as np
import pytest
from differences import derivative, deviation
from scipy.integrate import solve_ivp
from scipy.interpolate import BPoly
from springs import EVERY_KIND

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.actuators import Friction
from eom_dynamics.actuators.springs import RIGID, CubicSpring, LinearSpring
from eom_dynamics.arrays import Array
from eom_dynamics.elastic import SpringChain, SpringStage, chain_derivatives_needed, chain_motor_jet, motor_jet
from eom_dynamics.trajectory import Cosine

MOTION = Cosine([0.5, -0.4], [1.1, 0.9], [0.3, 0.2])
FRICTION = Friction(viscous=0.4, coulomb=0.2, static=0.3, stribeck_velocity=0.6, smoothing_velocity=0.5)


def test_a_simulated_chain_follows_the_motion() -> None:
    """A pendulum behind a cubic and a linear spring, with a viscous body between them, without feedback."""
    mass, length, g = 1.0, 0.5, 9.80665
    chain = SpringChain([
        SpringStage(CubicSpring(60.0, 40.0), 0.03, Friction(viscous=0.2)),
        SpringStage(LinearSpring(90.0), 0.05),
    ])  # fmt: skip
    motion, t = Cosine([0.5], [3.0], [0.2]), np.linspace(0.0, 1.0, 401)
    needed = chain_derivatives_needed([chain], 2)
    assert needed == 8
    command = chain_motor_jet(load_robot("pendulum"), [chain], motion.derivatives(t, order=needed), 2)
    effort = BPoly.from_derivatives(t, np.stack([x[:, 0] for x in command.motor_effort], axis=-1))

    def rate(now: float, state: Array) -> list[float]:
        q, x, theta, qd, xd, thetad = state
        first = 60.0 * (x - q) + 40.0 * (x - q) ** 3
        second = 90.0 * (theta - x)
        qdd = (first - mass * g * length * np.sin(q)) / (mass * length**2)
        return [qd, xd, thetad, qdd, (second - first - 0.2 * xd) / 0.03, (float(effort(now)) - second) / 0.05]

    start = [x[0] for x in motion.derivatives(0.0, order=needed - 2)]
    (between, motor), _ = chain.jet(start[:5], [x[0, 0] for x in command.tau[:5]])
    initial = [start[0], between[0], motor[0], start[1], between[1], motor[1]]
    found = solve_ivp(rate, (0.0, 1.0), initial, method="DOP853", t_eval=t, rtol=1e-12, atol=1e-13)
    # The commanded effort is interpolated with an error of 1e-14, which the chain amplifies.
    assert np.max(np.abs(found.y[0] - motion.derivatives(t, order=0)[0][:, 0])) < 1e-10
    assert np.max(np.abs(found.y[2] - command.motor_position[0][:, 0])) < 1e-9


@pytest.mark.parametrize("kind", [kind for kind, x in EVERY_KIND.items() if not x.is_damped and len(x.motors) == 1])
def test_every_order_is_the_time_derivative_of_the_one_below(kind: str) -> None:
    spring = EVERY_KIND[kind]
    robot = load_robot("planar_2r")
    chains = [SpringChain([SpringStage(spring, 0.05, FRICTION), SpringStage(spring, 0.1)]), SpringChain([])]
    needed = chain_derivatives_needed(chains, 1)
    assert needed == 7

    def jet(t: float) -> Any:
        return chain_motor_jet(robot, chains, MOTION.derivatives(t, order=needed), 1)

    now = jet(0.0)
    for field, rows in now._asdict().items():
        rates = derivative(lambda t, field=field: np.stack(getattr(jet(t), field)[:-1]), step=2e-3)
        assert deviation(np.stack(rows[1:]), rates, floor=1e-3) < 1e-7
    # The motor of the second joint is its link.
    assert deviation(now.motor_position[0][1], MOTION.derivatives(0.0)[0][1]) < 1e-15
    assert now.motor_effort[0][1] == now.tau[0][1]


def test_one_spring_is_an_elastic_joint() -> None:
    arm = ElasticArm(load_robot("planar_2r"))
    chains = [SpringChain([SpringStage(*x)]) for x in zip(arm.springs, arm.rotor_inertia, strict=True)]
    motion = [np.stack([x, 2 * x]) for x in MOTION.derivatives(0.2, order=6)]
    wrench = np.random.default_rng(1).uniform(-5, 5, (3, 6))
    found, wanted = (
        chain_motor_jet(arm.robot, chains, motion, 2, wrench=wrench),
        motor_jet(arm, motion, 2, wrench=wrench),
    )
    for row, other in zip(found, wanted, strict=True):
        assert deviation(np.stack(row), np.stack(other)) < 1e-13


def test_rigid_and_inertialess_stages() -> None:
    """Springs in series are softer: 1/K = 1/K_1 + 1/K_2; an inertia behind a rigid spring moves with the link."""
    q, tau = np.array([0.3, 0.7, -0.4, 0.2, 0.5]), np.array([2.0, -1.0, 3.0, 0.5, -2.0])
    soft = SpringChain([SpringStage(LinearSpring(60.0), 0.0), SpringStage(LinearSpring(40.0), 0.2)]).jet(q, tau)
    alone = SpringChain([SpringStage(LinearSpring(24.0), 0.2)]).jet(q, tau)
    assert deviation(soft.position[-1][:3], alone.position[-1][:3]) < 1e-15
    assert soft.effort[-1][0] == pytest.approx(alone.effort[-1][0], rel=1e-14)
    stuck = SpringChain([SpringStage(RIGID, 0.2)]).jet(q, tau)
    assert stuck.position[0][0] == q[0] and stuck.effort[0][0] == pytest.approx(tau[0] + 0.2 * q[2])


def test_each_spring_takes_two_derivatives() -> None:
    chains = [SpringChain([SpringStage(LinearSpring(60.0), 0.1)] * k) for k in range(4)]
    assert [chain.derivatives_needed() for chain in chains] == [0, 2, 4, 6]
    assert [chain.derivatives_needed(3) for chain in chains] == [3, 5, 7, 9]
    assert chain_derivatives_needed(chains) == 8 and chain_derivatives_needed(chains[:2], 3) == 7
