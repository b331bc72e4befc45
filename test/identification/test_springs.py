# SPDX-License-Identifier: Apache-2.0
"""Springs from both of their sides: against known springs, SciPy's orthogonal distance, and in robot files."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from elastic_recordings import recording
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusals

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.actuators.springs import (
    CoupledSpring,
    CubicSpring,
    DampedSpring,
    DeadZoneSpring,
    ExponentialSpring,
    TabulatedSpring,
)
from eom_dynamics.identification import (
    IdentificationError,
    fit_coupled_spring,
    fit_spring,
    fit_springs,
    with_coupled_spring,
    with_springs,
)
from eom_dynamics.robot import robot_from_parameters
from eom_dynamics.robot.writers.parameters import robot_as_parameters

T = np.linspace(0, 10, 1000)
DELTA, DELTAD = 0.05 * np.sin(2 * np.pi * 0.7 * T), 0.05 * 2 * np.pi * 0.7 * np.cos(2 * np.pi * 0.7 * T)


@settings(max_examples=25, deadline=None)
@given(st.floats(1.0, 1e5), st.floats(0.0, 5.0), st.floats(0.0, 0.2), st.floats(-1.0, 1.0), st.floats(1e-4, 10.0))
def test_exact_data_give_the_spring(K: float, hardening: float, width: float, offset: float, reach: float) -> None:
    delta, deltad = reach / 0.05 * DELTA, reach / 0.05 * DELTAD
    unit, D = K * reach, 1e-3 * K
    spring = CubicSpring(K, hardening * K / reach**2)
    sign = np.tanh(deltad / (0.05 * np.sqrt(np.mean(deltad**2))))
    effort = spring.effort(delta) + D * deltad + 0.5 * width * unit * sign + offset * unit
    found = fit_spring(delta, deltad, effort, "cubic")
    # Next to a bound a parameter may stop short of it by a share of the residual; all else is rounding.
    assert found.parameters["stiffness"][0] == pytest.approx(K, rel=1e-6)
    assert found.parameters["cubic"][0] * reach**2 == pytest.approx(hardening * K, abs=1e-6 * K)
    assert found.parameters["damping"][0] == pytest.approx(D, rel=1e-4)
    assert found.hysteresis[0] == pytest.approx(width * unit, abs=1e-6 * unit)
    assert found.parameters["offset"][0] == pytest.approx(offset * unit, abs=1e-6 * unit)


def _noisy(effort: np.ndarray, seed: int = 0) -> np.ndarray:
    return effort + 0.005 * np.ptp(effort) * np.random.default_rng(seed).normal(size=effort.shape)


def test_linear_fit_is_that_of_the_covariance_formula() -> None:
    """Against NumPy's polynomial fit with its covariance: white noise, so that nothing is correlated."""
    effort = _noisy(400 * DELTA)
    found = fit_spring(DELTA, DELTAD, effort, damping=False, hysteresis=False)
    (K, o), covariance = np.polyfit(DELTA, effort, 1, cov=True)
    assert found.parameters["stiffness"][0] == pytest.approx(K, rel=1e-8)
    assert found.parameters["offset"][0] == pytest.approx(o, abs=1e-8)
    # The sum over lags is of a finite sample.
    assert found.parameters["stiffness"][1] == pytest.approx(np.sqrt(covariance[0, 0]), rel=0.3)
    assert found.spring.kind == "linear"


def test_errors_in_the_deflection_do_not_make_the_spring_softer() -> None:
    """Against the closed formula of the line with errors in both variables (W. E. Deming, 1943)."""
    rng = np.random.default_rng(2)
    true = 1e-3 * np.sin(np.linspace(0, 60, 4000))
    delta, effort = true + 2e-4 * rng.normal(size=true.shape), 1e4 * true + 0.5 * rng.normal(size=true.shape)
    ordinary = fit_spring(delta, 0 * delta, effort).parameters["stiffness"][0]
    found = fit_spring(delta, 0 * delta, effort, noise=(2e-4, 0.5)).parameters["stiffness"]
    xx, xy, yy = np.cov(delta, effort)[[0, 0, 1], [0, 1, 1]]
    ratio = (0.5 / 2e-4) ** 2
    deming = (yy - ratio * xx + np.sqrt((yy - ratio * xx) ** 2 + 4 * ratio * xy**2)) / (2 * xy)
    assert found[0] == pytest.approx(deming, rel=1e-6)
    assert abs(found[0] - 1e4) < 3 * found[1]
    assert ordinary < 0.95e4


def test_tables_are_within_a_percent() -> None:
    true = CubicSpring(400.0, 1e5)
    found = fit_spring(DELTA, DELTAD, _noisy(true.effort(DELTA)), "table", points=9)
    assert isinstance(found.spring, TabulatedSpring)
    x = np.linspace(-0.05, 0.05, 101)
    assert np.max(np.abs(found.spring.effort(x) - true.effort(x))) < 0.01 * true.effort(0.05)
    assert found.spring.effort(np.zeros(1)) == 0
    delta, effort, std = found.table
    inside = np.abs(delta) < 0.049
    assert np.all(np.abs(effort - true.effort(delta))[inside] < 4 * std[inside] + 1e-3 * true.effort(0.05))


def test_tables_of_one_side_are_mirrored_and_noisy_ones_are_monotone() -> None:
    delta = 0.025 + 0.5 * DELTA
    found = fit_spring(delta, 0.5 * DELTAD, 400 * delta, "table", offset=False)
    x = np.linspace(-0.05, 0.05, 11)
    assert found.spring.effort(x) == pytest.approx(400 * x, abs=1e-4)
    effort = np.tanh(DELTA / 0.01) + 0.2 * np.random.default_rng(0).normal(size=DELTA.shape)
    found = fit_spring(DELTA, DELTAD, effort, "table", points=31)
    assert np.min(found.spring.stiffness(np.linspace(-0.06, 0.06, 1001))) > 0


@pytest.mark.parametrize(
    ("law", "spring", "share"),
    [
        ("exponential", ExponentialSpring(300.0, 12.0), 0.03),
        ("damped", DampedSpring(500.0, 15.0), 0.03),
        ("dead_zone", DeadZoneSpring(800.0, 80.0, 0.02, 0.005), 0.2),  # the width of the knee is the least certain
    ],
)
def test_other_laws(law: str, spring: Any, share: float) -> None:
    found = fit_spring(DELTA, DELTAD, _noisy(spring.load(DELTA, DELTAD)), law)
    assert type(found.spring) is type(spring)
    for attribute, declared in spring.parameters().items():
        (value, std), true = found.parameters[declared.name], getattr(spring, attribute)
        assert getattr(found.spring, attribute) == value == pytest.approx(true, rel=share)
        assert abs(value - true) < 3 * std < 0.2 * true


def test_antagonistic_pairs() -> None:
    robot = load_robot("vsa_planar_2r")
    arm, exact = ElasticArm(robot), recording(robot, 10.0, speed=0.2)
    noisy = exact.noisy(0)
    fits = {}
    for j, (name, spring) in enumerate(zip(robot.joint_names, arm.springs, strict=True)):
        delta = (noisy.theta - noisy.q[:, arm.motor_joint])[:, arm.motor_joint == j]
        # At one stiffness both springs are always stretched about alike; the recording's goes up and down.
        fits[name] = fit_spring(delta, 0 * delta, noisy.tau[:, j], spring.kind)
        stiffness = [
            fit.tangent(exact.theta[:, 2 * j : 2 * j + 2] - exact.q[:, [j]]) for fit in (fits[name].spring, spring)
        ]
        assert np.max(np.abs(stiffness[0] / stiffness[1] - 1)) < 0.01
    changed = with_springs(robot, fits)
    assert [s.nominal for s in ElasticArm(changed).springs] == [s.nominal for s in arm.springs]


def test_coupled_springs() -> None:
    K = np.array([[300.0, 40.0], [40.0, 200.0]])
    delta = np.stack([DELTA, 0.03 * np.sin(2 * np.pi * 0.9 * T + 1)], axis=1)
    tau = delta @ K
    noisy = tau + 0.005 * np.ptp(tau, axis=0) * np.random.default_rng(0).normal(size=tau.shape)
    found = fit_coupled_spring(delta, noisy)
    assert found.spring.matrix == pytest.approx(K, rel=0.01)
    assert np.all(np.abs(found.spring.matrix - K) < 3 * found.std)
    robot = replace(load_robot("planar_2r"), coupled_stiffness=((0, 1), CoupledSpring(np.eye(2))))
    assert with_coupled_spring(robot, found).coupled_stiffness[1].matrix == pytest.approx(found.spring.matrix)
    with pytest.raises(IdentificationError, match="no coupled spring of 2 joints"):
        with_coupled_spring(load_robot("planar_2r"), found)


def test_springs_of_a_recorded_arm_and_its_robot_file() -> None:
    robot = load_robot("sea_planar_2r")
    noisy = recording(robot, 10.0).noisy(0)
    fits = fit_springs(noisy.t, noisy.theta, noisy.q, noisy.tau, ("cubic", "linear"))
    for fit, true in zip(fits, (400.0, 300.0), strict=True):
        value, std = fit.stiffness
        assert value == pytest.approx(true, rel=0.01) and abs(value - true) < 3 * std
    changed = with_springs(robot, dict(zip(robot.joint_names, fits, strict=True)))
    springs = [joint.spring for joint in robot_from_parameters(robot_as_parameters(changed, [])).joints]
    assert [spring.kind for spring in springs] == ["cubic", "linear"]
    assert springs[1].constant == pytest.approx(fits[1].stiffness[0])


@pytest.mark.parametrize(
    ("delta", "effort", "law", "line"),
    [
        (DELTA, 400 * DELTA - 2e4 * DELTA**3, "cubic", "a softening spring is a table"),
        (0.06 + DELTA, 400 * (0.06 + DELTA), "linear", "depend on the assumed law"),
        (DELTA, 400 * DELTA, "linear", r"^(hysteresis|damping)"),
    ],
)
def test_what_the_data_do_not_tell(delta: np.ndarray, effort: np.ndarray, law: str, line: str) -> None:
    assert any(re.search(line, said) for said in fit_spring(delta, DELTAD, _noisy(effort), law).undetermined)


EVEN = 1e-3 * np.arange(1000)


test_what_is_refused = refusals(
    IdentificationError,
    (lambda: fit_spring(DELTA, DELTAD, 400 * DELTA, "rubber"), "law must be one of linear.*'rubber'"),
    (lambda: fit_spring(DELTA, DELTAD, -400 * DELTA), "efforts fall with the deflection; check the signs"),
    (lambda: fit_spring(0 * DELTA, DELTAD, DELTA), "does not deflect"),
    (lambda: fit_spring(DELTA, DELTAD, DELTA[:-1]), "one shape"),
    (lambda: fit_spring(np.full(1000, np.nan), DELTAD, DELTA), "deflection must be finite"),
    (lambda: fit_spring(DELTA, DELTAD, 400 * DELTA, "dead_zone"), "next to impossible ones; choose a simpler law"),
    (lambda: fit_spring(DELTA[:3], DELTAD[:3], DELTA[:3]), "3 samples do not determine 4 parameters"),
    (lambda: fit_spring(DELTA, DELTAD, DELTA, "antagonistic_exponential"), r"takes deflections \(N, 2\)"),
    (lambda: fit_springs(EVEN**2, DELTA, DELTA, DELTA), "even steps"),
    (lambda: fit_springs(EVEN, DELTA, DELTA, DELTA), "joint 0: the spring does not deflect"),
    (lambda: fit_springs(EVEN, DELTA, DELTA[:-1], DELTA), r"q must have shape \(1000,\)"),
    (
        lambda: with_springs(load_robot("planar_2r"), {"elbow": fit_spring(DELTA, DELTAD, 400 * DELTA)}),
        "has no joint elbow; known are joint_1",
    ),
)
