# SPDX-License-Identifier: Apache-2.0
"""Flat state from motors and links, feedback linearization, and public examples of the literature."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chains import fixed_case
from differences import deviation, polynomial_motion
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from springs import EVERY_KIND, with_springs

from eom_dynamics import ElasticArm, Payload, load_robot
from eom_dynamics.actuators import Transmission
from eom_dynamics.actuators.springs import AntagonisticPair, ExponentialPair, QuadraticPair
from eom_dynamics.elastic import flat_state, linearizing_effort, motor_pd_effort
from eom_dynamics.jet import Jet
from eom_dynamics.robot.payload import payload_parameters, with_parameters

ELASTIC = {name: spring for name, spring in EVERY_KIND.items() if name not in ("rigid", "damped")}
MIX = [
    ELASTIC[name] for name in ("antagonistic_exponential", "cubic", "variable", "tabulated", "antagonistic_quadratic")
]
MOTION = fixed_case("planar_2r", 4).motion


def poles(w: float) -> list[float]:
    """Gains of four integrators with all poles at -w, the coefficients of (s + w)⁴."""
    return [w**4, 4 * w**3, 6 * w**2, 4 * w]


def stiffness_of(arm: ElasticArm, rng: np.random.Generator, samples: tuple[int, ...]) -> list[np.ndarray]:
    """Commanded stiffness with rates, within the range of every kind."""
    k = np.where(arm.paired, 2 * arm.stiffness, arm.stiffness) * rng.uniform(0.9, 1.1, (*samples, arm.robot.n))
    return [k, *rng.uniform(-50, 50, (2, *samples, arm.robot.n))]


# For links that are light for their springs, the rounding of theta - q is amplified by K/M, more so in qddd.
SINGLE, LIGHT = [1e-9] * 4, [1e-9, 1e-9, 1e-8, 1e-6]


@pytest.mark.parametrize(
    ("name", "springs", "samples", "bounds"),
    [
        *(("planar_2r", [spring], (), SINGLE) for spring in ELASTIC.values()),
        ("panda", MIX, (6,), SINGLE),
        ("iiwa", MIX, (), LIGHT),
    ],
    ids=[*ELASTIC, "panda", "iiwa"],
)
def test_flat_state_from_motors_and_links(name: str, springs: list[Any], samples: tuple[int, ...], bounds: list[float]):
    arm = ElasticArm(with_springs(load_robot(name), *springs))
    rng = np.random.default_rng(0)
    motion = rng.uniform(-1, 1, (5, *samples, arm.robot.n))
    stiffness = stiffness_of(arm, rng, samples)
    command = arm.feedforward(*motion, commanded_stiffness=stiffness)
    state = flat_state(
        arm, command.motor_position, command.motor_velocity, *motion[:2], commanded_stiffness=stiffness[:2]
    )
    for got, expected, bound in zip(state[:4], motion, bounds, strict=False):
        assert deviation(got, expected) < bound
    for got, expected in zip(state[4:], stiffness, strict=False):
        assert deviation(got[..., arm.variable], expected[..., arm.variable]) < 1e-9
        assert not np.any(got[..., ~arm.variable])
    # By efforts, and by measured deflections, with a loss of digits of tension in pairs.
    deflections = arm.deflections(*command[:3], commanded_stiffness=stiffness)
    for measured, close in (({"deflections": deflections[:2]}, 1e-7), ({"efforts": command[:2]}, 1e-9)):
        state = flat_state(arm, *command[3:5], *motion[:2], **measured, commanded_stiffness=stiffness[:2])
        for got, expected in zip(state[:4], motion, strict=False):
            assert deviation(got, expected) < (close if np.any(arm.paired) else 1e-9)


def test_flat_state_with_a_transmission_and_coupled_springs() -> None:
    differential = Transmission([[0.5, 0.5], [0.5, -0.5]])
    robot = replace(load_robot("planar_2r"), transmission=((0, 1), differential))
    arm = ElasticArm(robot, stiffness=[[500.0, 60.0], [60.0, 300.0]])
    command = arm.feedforward(*MOTION)
    theta = np.array([[0.5, 0.5], [0.5, -0.5]]) @ command.motor_position
    np.testing.assert_allclose(np.array([[500.0, 60.0], [60.0, 300.0]]) @ (theta - MOTION[0]), command.tau, rtol=1e-12)
    # Power is equal at the motors and at the springs.
    spin = command.motor_effort - arm.motor_inertia * command.motor_acceleration
    thetad = np.array([[0.5, 0.5], [0.5, -0.5]]) @ command.motor_velocity
    assert float(spin @ command.motor_velocity) == pytest.approx(float(command.tau @ thetad), rel=1e-12)
    state = flat_state(arm, command.motor_position, command.motor_velocity, *MOTION[:2])
    assert deviation(state[:4], MOTION[:4]) < 1e-9


@pytest.mark.parametrize("kind", ["rigid", "damped"])
def test_flat_state_from_measured_efforts_alone(kind: str) -> None:
    arm = ElasticArm(with_springs(load_robot("planar_2r"), ELASTIC["cubic"], EVERY_KIND[kind]))
    command = arm.feedforward(*MOTION)
    state = flat_state(arm, *command[3:5], *MOTION[:2], efforts=command[:2])
    assert deviation(state[:4], MOTION[:4]) < 1e-9
    if kind == "rigid":
        assert deviation(linearizing_effort(arm, state, MOTION, poles(20.0)), command.motor_effort) < 1e-6


REFERENCE = np.array([[0.3, -0.4], [0.5, 0.2], [-0.6, 0.4], [0.3, 0.1], [0.2, -0.3]])


def decay(wt: float) -> float:
    """Share of an error at rest that is left after four integrators with poles at -w."""
    return float((1 + wt + wt**2 / 2 + wt**3 / 6) * np.exp(-wt))


@pytest.mark.parametrize("springs", [("cubic", "exponential"), ("rigid", "linear")], ids="-".join)
def test_linearized_error_decays_with_its_poles(springs: tuple[str, ...]) -> None:
    """From an error at rest, with poles at -w: e(t) = e0 (1 + w t + (w t)²/2 + (w t)³/6) exp(-w t).

    The plant is written here: spring efforts, motors, and forward dynamics by the mass matrix. Two integrators precede
    the motor of a rigid joint, which moves with its link.
    """
    laws = [EVERY_KIND[kind] for kind in springs]
    arm = ElasticArm(with_springs(load_robot("planar_2r"), *laws))
    w, off = 12.0, np.array([0.01, -0.02])
    motion = polynomial_motion(REFERENCE)

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        q, theta, qd, thetad, held, heldd = x.reshape(6, 2)
        state = flat_state(arm, theta, thetad, q, qd, rigid=(held, heldd) if arm.rigid.any() else ())
        effort = linearizing_effort(arm, state, motion(t), poles(w))
        *wanted, snap = motion(t)
        snap = snap + sum(g * (x - now) for g, x, now in zip(poles(w), wanted, state, strict=False))
        loads = zip(laws, theta - q, effort, strict=True)
        tau = np.array([u if law.is_rigid else float(law.load(delta)) for law, delta, u in loads])
        M = arm.dynamics.mass_matrix(q) + np.diag(np.where(arm.rigid, arm.rotor_inertia, 0.0))
        qdd = np.linalg.solve(M, tau - arm.dynamics.effort(q, qd, np.zeros(2)))
        thetadd = np.where(arm.rigid, qdd, (effort - tau) / arm.rotor_inertia)
        return np.concatenate([qd, thetad, qdd, thetadd, heldd, snap])

    start = motion(0.0)
    begin = arm.feedforward(start[0] + off, *start[1:])
    x0 = np.concatenate([start[0] + off, begin.motor_position, start[1], begin.motor_velocity, start[2], start[3]])
    solution = solve_ivp(rate, (0, 0.5), x0, method="DOP853", rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(solution.y[:2, -1] - motion(0.5)[0], off * decay(w * 0.5), atol=1e-8)


def test_linearizing_effort_on_the_reference_is_the_feedforward() -> None:
    arm = ElasticArm(with_springs(load_robot("iiwa"), *MIX))
    rng = np.random.default_rng(3)
    motion = rng.uniform(-1, 1, (5, 7))
    stiffness = stiffness_of(arm, rng, ())
    command = arm.feedforward(*motion, commanded_stiffness=stiffness)
    state = flat_state(arm, *command[3:5], *motion[:2], commanded_stiffness=stiffness[:2])
    effort = linearizing_effort(
        arm, state, motion, poles(30.0), commanded_stiffness=stiffness, stiffness_gains=(900.0, 60.0)
    )
    assert deviation(effort, command.motor_effort) < 1e-6  # gains of 30⁴ on errors of rounding
    # The stiffness of pairs is a chain of two integrators; the stiffness of one motor is commanded.
    k, kd, kdd = stiffness
    wanted = [k + 3.0, kd - 20.0, kdd]
    effort = linearizing_effort(
        arm, state, motion, poles(30.0), commanded_stiffness=wanted, stiffness_gains=[50.0, 7.0]
    )
    fed_back = [np.where(arm.paired, x, y) for x, y in zip((k, kd, kdd + 50.0 * 3.0 - 7.0 * 20.0), wanted, strict=True)]
    command = arm.feedforward(*motion, commanded_stiffness=fed_back)
    assert deviation(effort, command.motor_effort) < 1e-6


@pytest.mark.parametrize(("source", "rigid"), [("motors", False), ("efforts", False), ("motors", True)])
def test_feedback_linearization_takes_a_payload(source: str, rigid: bool) -> None:
    """Equal to the robot with the payload in its file; rates as in a feedforward of the same states."""
    robot, stiffness = load_robot("sea_planar_2r"), [300.0, np.inf] if rigid else None
    arm = ElasticArm(robot, stiffness=stiffness)
    payload = Payload(0.4, [0.1, 0.02, 0.0], [0.01, 0.0, 0.0, 0.01, 0.0, 0.01])
    loaded = ElasticArm(with_parameters(robot, payload_parameters(robot, [payload])), stiffness=stiffness)
    motion = np.random.default_rng(5).uniform(-1, 1, (5, 2))
    gains, off = poles(10.0), motion + 0.01

    def answer(arm: ElasticArm, P: Any, **given: Any) -> tuple[Any, np.ndarray]:
        command = arm.feedforward(*motion, payload=P)
        given |= {"efforts": command[:2]} if source == "efforts" else {}
        state = flat_state(arm, *command[3:5], *motion[:2], rigid=motion[2:4] if rigid else (), payload=P, **given)
        return state, linearizing_effort(arm, state, off, gains, payload=P)

    for P in (payload, (payload.parameters,)):
        for one, other in zip(answer(arm, P), answer(loaded, None), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)  # 10⁴ times rounding
    rates = [payload.parameters * x for x in (1.0, 3.0, -2.0)]
    state, _ = answer(arm, rates)
    np.testing.assert_allclose(state[:4], motion[:4], atol=1e-10)
    on_reference = linearizing_effort(arm, state, motion, gains, payload=rates)
    np.testing.assert_allclose(on_reference, arm.feedforward(*motion, payload=rates).motor_effort, atol=1e-7)


def test_motor_pd_adds_to_the_feedforward() -> None:
    command = ElasticArm(load_robot("iiwa")).feedforward(*np.zeros((5, 7)))
    effort = motor_pd_effort(command, command.motor_position - 0.1, command.motor_velocity + 0.2, 50.0, np.full(7, 3.0))
    np.testing.assert_allclose(effort, command.motor_effort + 5.0 - 0.6, rtol=1e-13)


@given(state=st.tuples(*[st.floats(-1.5, 1.5)] * 4), snap=st.floats(-1e3, 1e3))
def test_single_link_with_a_flexible_joint(state: tuple[float, ...], snap: float) -> None:
    """M. W. Spong (1987), and J.-J. E. Slotine and W. Li, "Applied Nonlinear Control" (1991), example 6.10.

    I q1dd + M g L sin q1 + k (q1 - q2) = 0, J q2dd - k (q1 - q2) = u is linearized by u = (I J/k) (v - a), with
    a = (MgL/I) sin q1 (q1d² + (MgL/I) cos q1 + k/I) + (k/I) (q1 - q2) (k/I + k/J + (MgL/I) cos q1).
    """
    q1, q2, q1d, q2d = state[0], state[0] + 0.1 * state[1], state[2], state[3]
    inertia, J, k, MgL = 1.0 * 0.5**2, 0.05, 200.0, 1.0 * 9.80665 * 0.5
    sine, cosine = MgL / inertia * np.sin(q1), MgL / inertia * np.cos(q1)
    a = sine * (q1d**2 + cosine + k / inertia) + k / inertia * (q1 - q2) * (k / inertia + k / J + cosine)
    arm = ElasticArm(load_robot("pendulum"))
    flat = flat_state(arm, [q2], [q2d], [q1], [q1d])
    reference = [np.zeros(1)] * 4 + [np.array([snap])]
    effort = linearizing_effort(arm, flat, reference, np.zeros(4))
    np.testing.assert_allclose(effort, inertia * J / k * (snap - a), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(flat.qdd, -sine - k / inertia * (q1 - q2), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(flat.qddd, -cosine * q1d - k / inertia * (q1d - q2d), rtol=1e-10, atol=1e-9)


def stiffness(pair: AntagonisticPair, delta: np.ndarray) -> float:
    jet = pair.efforts([Jet([x]) for x in delta]).stiffness
    assert jet is not None
    return float(jet[0])


@given(pretension=st.floats(0.1, 0.4), share=st.floats(-0.9, 0.9))
def test_antagonistic_springs_of_palli_melchiorri_de_luca(pretension: float, share: float) -> None:
    """G. Palli, C. Melchiorri, A. De Luca (ICRA 2008): quadratic transmissions have stiffness linear in the pretension;
    exponential transmissions have an effort like sinh of the deflection, and a stiffness like its cosh.
    """
    spread = pretension * share
    delta = np.array([pretension + spread, -(pretension - spread)])
    quadratic, exponential = QuadraticPair(50.0, 4e3, 500.0), ExponentialPair(50.0, 6.0, 500.0)
    np.testing.assert_allclose(stiffness(quadratic, delta), 2 * (50.0 + 4e3 * pretension), rtol=1e-12)
    tension = 2 * 50.0 * np.exp(6.0 * pretension)
    np.testing.assert_allclose(stiffness(exponential, delta), tension * np.cosh(6.0 * spread), rtol=1e-12)
    tau = np.sum(exponential.load(delta, delta))
    np.testing.assert_allclose(tau, tension / 6.0 * np.sinh(6.0 * spread), rtol=1e-11, atol=1e-11)
