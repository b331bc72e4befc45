# SPDX-License-Identifier: Apache-2.0
"""Springs: stiffness and energy by differences, inverses to full precision, deflections along a motion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from differences import derivative, deviation
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp
from scipy.interpolate import CubicSpline
from springs import MEMORYLESS

from eom_dynamics import RobotDescriptionError, StateError
from eom_dynamics.drivetrain.springs import (
    AntagonisticPair,
    CoupledSpring,
    CubicSpring,
    DampedSpring,
    DeadZoneSpring,
    ExponentialPair,
    ExponentialSpring,
    PolynomialSpring,
    QuadraticPair,
    RigidSpring,
    Spring,
    TabulatedSpring,
    VariableSpring,
)

KINDS = pytest.mark.parametrize("spring", MEMORYLESS.values(), ids=MEMORYLESS)
DELTA = np.concatenate([np.linspace(-0.3, 0.3, 401), [1e-9, -1e-9, 1e-4, -1e-4]])
X = sympy.Symbol("x", real=True)

FORMULAS = {
    "cubic": (CubicSpring(300.0, 5e4), 300 * X + 50000 * X**3),
    "polynomial": (PolynomialSpring([300.0, 200.0, 4e3, 0.0, 1e5]), 300 * X + 200 * X**2 + 4000 * X**3 + 10**5 * X**5),
    "exponential": (ExponentialSpring(300.0, 12.0), 25 * sympy.sinh(12 * X)),
    "dead_zone": (
        DeadZoneSpring(800.0, 40.0, 0.5, 0.25),
        40 * X
        + 760
        * sum(
            sign
            * (
                sign * X
                - sympy.Rational(1, 2)
                + sympy.sqrt((sign * X - sympy.Rational(1, 2)) ** 2 + sympy.Rational(1, 16))
            )
            / 2
            for sign in (1, -1)
        ),
    ),
}


@pytest.mark.parametrize(("spring", "formula"), FORMULAS.values(), ids=FORMULAS)
@pytest.mark.parametrize("at", [-1.3, -0.4, -0.01, 0.0, 0.2, 0.5, 2.0])
def test_springs_are_their_formulas(spring: Spring, formula: Any, at: float) -> None:
    """SymPy differentiates to 30 digits."""
    for function, order in ((spring.effort, 0), (spring.stiffness, 1), (spring.stiffness_rate, 2)):
        exact = sympy.diff(formula, X, order) if order else formula
        expected = float(exact.subs(X, sympy.Rational(at)).evalf(30))
        scale = 1e-12 * float(spring.stiffness(np.array(at)))
        assert float(function(np.array(at))) == pytest.approx(expected, rel=1e-13, abs=scale)


@KINDS
def test_stiffness_is_positive_and_the_derivative_of_the_effort(spring: Spring) -> None:
    stiffness = spring.stiffness(DELTA)
    assert np.all(stiffness > 0)
    smooth = not isinstance(spring, TabulatedSpring)
    step = 1e-4 if smooth else 1e-6
    slope = np.array([derivative(lambda t, x=x: spring.effort(np.array(x + t)), step) for x in DELTA])
    assert deviation(slope, stiffness) < (1e-10 if smooth else 1e-7)


@KINDS
def test_stiffness_is_the_integral_of_its_rate(spring: Spring) -> None:
    knots = spring.delta if isinstance(spring, TabulatedSpring) else None
    for x in (-0.25, -0.02, 0.015, 0.13, 0.27):
        grown = quad(lambda s: float(spring.stiffness_rate(np.array(s))), 0, x, points=knots, limit=200, epsabs=1e-9)[0]
        assert float(spring.rest_stiffness) + grown == pytest.approx(float(spring.stiffness(np.array(x))), rel=1e-9)


@KINDS
def test_energy_is_the_integral_of_the_effort(spring: Spring) -> None:
    assert float(spring.energy(np.zeros(()))) == 0
    for x in (-0.25, -0.02, 0.015, 0.13, 0.27):
        work = quad(lambda s: float(spring.effort(np.array(s))), 0, x, limit=200, epsabs=1e-13, epsrel=1e-12)[0]
        assert float(spring.energy(np.array(x))) == pytest.approx(work, rel=1e-10)


@KINDS
def test_inverse_finds_every_deflection(spring: Spring) -> None:
    tau = spring.effort(DELTA)
    found = spring.inverse(tau)
    assert np.max(np.abs(spring.effort(found) - tau) / np.maximum(np.abs(tau), 0.01)) < 1e-12
    assert np.max(np.abs(found - DELTA) / np.maximum(np.abs(DELTA), 1e-3)) < 1e-12
    assert spring.inverse(np.zeros(1)) == 0


@KINDS
@given(tau=st.floats(-1e6, 1e6))
def test_inverse_of_any_effort(spring: Spring, tau: float) -> None:
    assert float(spring.effort(spring.inverse(np.array(tau)))) == pytest.approx(tau, rel=1e-12, abs=1e-12)


@given(
    outer=st.floats(1, 1e6),
    ratio=st.floats(1e-6, 1),
    gap=st.floats(1e-6, 0.1),
    width=st.floats(1e-3, 10),
    tau=st.floats(-500, 500),
)
def test_inverse_of_any_dead_zone(outer: float, ratio: float, gap: float, width: float, tau: float) -> None:
    spring = DeadZoneSpring(outer, outer * ratio, gap, gap * width)
    found = spring.inverse(np.array(tau))
    rounding = 4e-16 * (abs(found) + gap) * float(spring.stiffness(found))
    assert abs(float(spring.effort(found)) - tau) <= 1e-12 * abs(tau) + rounding


@given(
    steps=st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.01, 100)), min_size=1, max_size=8),
    at=st.lists(st.floats(-10, 10), min_size=20, max_size=20),
)
def test_any_table_is_met_by_a_monotone_curve(steps: list[tuple[float, float]], at: list[float]) -> None:
    x, y = np.cumsum(np.array([(0.0, 0.0), *steps]), axis=0).T
    spring = TabulatedSpring(x, y)
    assert deviation(spring.effort(x), y) < 1e-12
    assert deviation(spring.effort(-x), -y) < 1e-12
    fine = np.linspace(-1.2 * x[-1], 1.2 * x[-1], 2000)
    assert np.all(spring.stiffness(fine) > 0)
    tau = spring.effort(np.array(at))
    assert (
        np.max(np.abs(spring.effort(spring.inverse(tau)) - tau) / np.maximum(np.abs(tau), y[-1])) < 1e-13
    )  # rounding is that of the table


def test_a_table_of_a_gentle_spring_is_met_by_its_cubic_spline() -> None:
    x = np.linspace(-0.2, 0.2, 21)
    spring = TabulatedSpring(x, 100 * np.sinh(2 * x))
    fine = np.linspace(-0.2, 0.2, 333)
    assert deviation(spring.effort(fine), CubicSpline(x, 100 * np.sinh(2 * x), bc_type="natural")(fine)) < 1e-12


@KINDS
def test_deflection_and_rates_along_a_motion(spring: Spring) -> None:
    """delta = 0.1 + 0.05 sin 3t, within the table: its effort's exact rates give the motion back."""
    delta, deltad, deltadd = np.array(0.1), np.array(0.15), np.array(-0.3)
    k, kd = spring.stiffness(delta), spring.stiffness_rate(delta)
    found = spring.deflection(spring.effort(delta), k * deltad, k * deltadd + kd * deltad**2)
    for got, expected in zip(found, (delta, deltad, deltadd), strict=True):
        assert float(got) == pytest.approx(float(expected), rel=1e-12)


@KINDS
def test_stacked_springs_are_each_its_own(spring: Spring) -> None:
    twice = type(spring).stacked([spring, spring])
    pairs = np.stack([DELTA, DELTA[::-1]], axis=-1)
    for name in ("effort", "stiffness", "stiffness_rate", "energy", "inverse"):
        expected = np.stack([getattr(spring, name)(DELTA), getattr(spring, name)(DELTA[::-1])], axis=-1)
        np.testing.assert_allclose(getattr(twice, name)(pairs), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (MEMORYLESS["tabulated"], MEMORYLESS["tabulated_one_sided"]),
        (MEMORYLESS["polynomial"], PolynomialSpring([100.0])),
        (MEMORYLESS["dead_zone"], DeadZoneSpring(1e4, 10.0, 1e-3, 1e-4)),
    ],
    ids=lambda spring: spring.kind,
)
def test_stacked_springs_of_other_parameters_are_each_its_own(one: Spring, other: Spring) -> None:
    both = type(one).stacked([one, other])
    pairs = np.stack([DELTA, DELTA[::-1]], axis=-1)
    for name in ("effort", "stiffness", "stiffness_rate", "energy", "inverse"):
        expected = np.stack([getattr(one, name)(DELTA), getattr(other, name)(DELTA[::-1])], axis=-1)
        np.testing.assert_allclose(getattr(both, name)(pairs), expected, rtol=1e-12, atol=1e-12)


def test_rigid_joint_has_no_effort_of_its_own() -> None:
    with pytest.raises(StateError, match="rigid"):
        RigidSpring().effort(np.zeros(1))


# Damped.


def test_damped_deflection_obeys_its_equation() -> None:
    spring = DampedSpring(500.0, 15.0)
    delta, deltad, deltadd = spring.deflection(np.array(0.02), np.array(7.0), np.array(-3.0))
    assert float(spring.effort(delta, deltad)) == pytest.approx(7.0, rel=1e-14)
    assert float(spring.effort(deltad, deltadd)) == pytest.approx(-3.0, rel=1e-14)


@pytest.mark.parametrize("dt", [1e-6, 1e-3, 0.05, 0.2, 3.0])
@pytest.mark.parametrize("damping", [0.01, 15.0, 4e4])
def test_damped_step_is_exact_for_quintic_efforts(dt: float, damping: float) -> None:
    spring = DampedSpring(500.0, damping)
    effort = np.polynomial.Polynomial([3.0, -2.0, 1.5, 4.0, -3.0, 2.0])
    ends = [[effort.deriv(k)(t) if k else effort(t) for k in range(3)] for t in (0.0, dt)]
    got = float(spring.advance(np.array(0.03), *ends, dt))
    solution = solve_ivp(
        lambda t, x: (effort(t) - 500 * x) / damping, (0, dt), [0.03], method="Radau", rtol=1e-12, atol=1e-15
    )
    assert got == pytest.approx(solution.y[0, -1], rel=1e-8)


def test_settled_deflection_stays_settled() -> None:
    spring = DampedSpring(500.0, 15.0)
    effort = np.polynomial.Polynomial([3.0, -2.0, 1.5])
    ends = [[effort.deriv(k)(t) if k else effort(t) for k in range(3)] for t in (0.0, 0.3)]
    start, end = (spring.settled(*map(np.array, values)) for values in ends)
    assert float(spring.advance(start, *ends, 0.3)) == pytest.approx(float(end), rel=1e-13)


# Commanded stiffness.


def test_variable_deflection_and_rates() -> None:
    """tau = k delta for k = 400 + 30 t + 10 t², delta = 0.1 + 0.2 t - 0.15 t², by Leibniz' rule at t = 0."""
    spring = VariableSpring(50.0, 2e3, 400.0)
    k, kd, kdd = 400.0, 30.0, 20.0
    delta, deltad, deltadd = 0.1, 0.2, -0.3
    efforts = k * delta, k * deltad + kd * delta, k * deltadd + 2 * kd * deltad + kdd * delta
    found = spring.deflection(*map(np.array, (*efforts, k, kd, kdd)))
    np.testing.assert_allclose(found, (delta, deltad, deltadd), rtol=1e-13)


@pytest.mark.parametrize("k", [49.9, 2001.0, -100.0, float("nan")])
def test_variable_stiffness_outside_its_range_is_refused(k: float) -> None:
    with pytest.raises(StateError, match=r"outside the actuator's range 50 … 2000"):
        VariableSpring(50.0, 2e3, 400.0).deflection(*map(np.array, (1.0, 0.0, 0.0, k, 0.0, 0.0)))


# Two motors at a joint.

PAIRS = pytest.mark.parametrize(
    "pair", [ExponentialPair(50.0, 6.0, 500.0), QuadraticPair(50.0, 4e3, 500.0)], ids=lambda pair: pair.kind
)


@PAIRS
def test_pair_has_the_effort_and_stiffness_that_were_asked(pair: AntagonisticPair) -> None:
    rng = np.random.default_rng(0)
    tau, k = rng.uniform(-20, 20, 50), rng.uniform(700, 1500, 50)
    pull = pair.deflection(tau, *np.zeros((2, 50)), k, *np.zeros((2, 50)))
    np.testing.assert_allclose(pull.tau.sum(axis=-1), tau, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(pair.stiffness(pull.delta), k, rtol=1e-12)
    assert np.all(pull.delta[:, 0] >= 0) and np.all(pull.delta[:, 1] <= 0)
    assert np.all(pull.tau[:, 0] >= 0) and np.all(pull.tau[:, 1] <= 0)
    # sigma is what the link feels: minus the derivative of its effort with respect to q.
    felt = derivative(lambda t: pair.effort(pull.delta + t).sum(axis=-1), 1e-4)
    np.testing.assert_allclose(felt, k, rtol=1e-10)


@PAIRS
def test_rates_of_a_pair_along_a_motion(pair: AntagonisticPair) -> None:
    def motion(t: float) -> tuple[np.ndarray, np.ndarray]:
        a = [5 * np.sin(3 * t + 0.3), 15 * np.cos(3 * t + 0.3), -45 * np.sin(3 * t + 0.3)]
        b = [900 + 50 * np.cos(2 * t), -100 * np.sin(2 * t), -200 * np.cos(2 * t)]
        return np.array(a), np.array(b)

    def deflection(t: float) -> Any:
        return pair.deflection(*motion(t)[0], *motion(t)[1])

    there = deflection(0.0)
    np.testing.assert_allclose(there.deltad, derivative(lambda t: deflection(t).delta), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(there.deltadd, derivative(lambda t: deflection(t).deltad), rtol=1e-9, atol=1e-10)
    tau, k = motion(0.0)
    np.testing.assert_allclose(pair.rates(there.delta, there.deltad), (tau[1], k[1]), rtol=1e-12, atol=1e-12)


@PAIRS
def test_energy_of_a_pair_is_the_work_of_its_motors(pair: AntagonisticPair) -> None:
    delta = np.array([0.08, -0.05])
    work = [
        quad(lambda s, i=i: float(pair.effort(np.where(np.arange(2) == i, s, 0.0))[i]), 0, delta[i])[0] for i in (0, 1)
    ]
    assert float(pair.energy(delta)) == pytest.approx(sum(work), rel=1e-10)


@PAIRS
def test_pair_that_would_push_is_refused(pair: AntagonisticPair) -> None:
    least = float(pair.least_stiffness(np.array(20.0)))
    at = [np.array(20.0), *np.zeros((2, 1)), np.array(least * (1 + 1e-9)), *np.zeros((2, 1))]
    assert abs(pair.deflection(*at).delta[..., 1]) < 1e-6
    at[3] = np.array(least * 0.999)
    with pytest.raises(StateError, match="from where on both springs pull"):
        pair.deflection(*at)


# Coupled.


def test_coupled_spring() -> None:
    K = np.array([[300.0, 40.0, -20.0], [40.0, 200.0, 10.0], [-20.0, 10.0, 100.0]])
    spring, tau = CoupledSpring(K), np.random.default_rng(1).uniform(-9, 9, (3, 5, 3))
    delta = spring.deflection(*tau)
    np.testing.assert_allclose(spring.effort(delta[0]), tau[0], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(np.einsum("ij,nj->ni", K, delta[1]), tau[1], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(spring.energy(delta[2]), np.einsum("ni,ni->n", tau[2], delta[2]) / 2, rtol=1e-12)


@pytest.mark.parametrize("make", [lambda: CubicSpring(-1.0, 0.0), lambda: CoupledSpring([[1.0, 2.0]])])
def test_impossible_springs_are_refused(make: Any) -> None:
    with pytest.raises(RobotDescriptionError):
        make()
