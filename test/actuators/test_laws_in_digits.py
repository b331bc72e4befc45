# SPDX-License-Identifier: Apache-2.0
"""Laws of springs, friction, gears and damped steps against 40 digits, by every route: arrays, kernels, batches, NumPy.

The laws are written again here, over mpmath's numbers, with derivatives by mpmath's differences.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from springs import with_springs

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.actuators import Actuator, Friction, Gear
from eom_dynamics.actuators import springs as kinds
from eom_dynamics.arrays import Array
from eom_dynamics.elastic.motor_functions import MotorFunctions
from eom_dynamics.jet import Jet

TOLERANCE = 1e-12
"""Relative. Rounding of a law and of its argument leaves some 1e-15, times the growth of the law's derivatives."""

mpf = mpmath.mpf
Law = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mpmath.workdps(40):
        yield


class Case(NamedTuple):
    """Spring, the law by this test, and deflections for the comparison.

    Attributes:
        spring: the spring.
        law: effort over mpmath's numbers.
        reach: deflection with a thousandfold stiffness, or the maximum deflection.
        edges: positive deflections with their neighbors.
        bend: magnitude of the terms of f'', if they cancel.
    """

    spring: kinds.MemorylessSpring
    law: Law
    reach: float
    edges: tuple[float, ...] = ()
    bend: Law = lambda x: mpf(0)


def polynomial(coefficients: list[float]) -> Law:
    return lambda x: sum(mpf(c) * x**k for k, c in enumerate(coefficients, start=1))


def dead_zone(K: float, k: float, b: float, w: float) -> Law:
    def h(x: Any) -> Any:
        return (x + mpmath.sqrt(x * x + mpf(w) ** 2)) / 2

    # The sum of both sides cancels to the last digit near rest: hence the digits.
    @mpmath.workdps(120)
    def law(x: Any) -> Any:
        return k * x + (mpf(K) - mpf(k)) * (h(x - b) - h(-x - b))

    return law


def natural_spline(x: list[float], y: list[float]) -> Law:
    points, values, count = [mpf(a) for a in x], [mpf(b) for b in y], len(x)

    @cache  # at the first value: a third of a second, which collection of this file would take in each worker
    @mpmath.workdps(120)  # or differences across its points would see that the pieces differ there
    def moments() -> list[Any]:
        A, b = mpmath.eye(count), mpmath.zeros(count, 1)
        for i in range(1, count - 1):
            left, right = points[i] - points[i - 1], points[i + 1] - points[i]
            A[i, i - 1], A[i, i], A[i, i + 1] = left / 6, (left + right) / 3, right / 6
            b[i] = (values[i + 1] - values[i]) / right - (values[i] - values[i - 1]) / left
        return list(mpmath.lu_solve(A, b))

    def law(at: Any) -> Any:
        moment = moments()
        i = min(max(sum(at >= point for point in points) - 1, 0), count - 2)
        inside = min(max(at, points[0]), points[-1])
        h, u, v = points[i + 1] - points[i], points[i + 1] - inside, inside - points[i]
        value = (moment[i] * u**3 + moment[i + 1] * v**3) / (6 * h)
        value += (values[i] / h - moment[i] * h / 6) * u + (values[i + 1] / h - moment[i + 1] * h / 6) * v
        slope = (moment[i + 1] * v**2 - moment[i] * u**2) / (2 * h)
        slope += (values[i + 1] - values[i]) / h - (moment[i + 1] - moment[i]) * h / 6
        return value + slope * (at - inside)

    return law


POLYNOMIAL = [300.0, 200.0, 4e3, 0.0, 1e5]
TABLE = [round(0.01 * k, 2) for k in range(21)]
EFFORTS = [25 * float(np.sinh(38 * x)) for x in TABLE]

CASES = {
    "linear": Case(kinds.LinearSpring(500.0), lambda x: 500 * x, 1e3),
    "cubic": Case(kinds.CubicSpring(300.0, 5e4), lambda x: 300 * x + 50000 * x**3, 1.5),
    "polynomial": Case(
        kinds.PolynomialSpring(POLYNOMIAL),
        polynomial(POLYNOMIAL),
        1.0,
        bend=lambda x: sum(
            k * (k - 1) * mpf(c) * abs(x) ** (k - 2) for k, c in enumerate(POLYNOMIAL, start=1) if k > 1
        ),
    ),
    "exponential": Case(kinds.ExponentialSpring(300.0, 12.0), lambda x: 25 * mpmath.sinh(12 * x), 7.7 / 12),
    "dead_zone": Case(
        kinds.DeadZoneSpring(8e4, 80.0, 0.01, 0.004),
        dead_zone(8e4, 80.0, 0.01, 0.004),
        1.0,
        (0.01, 0.004, 0.006, 0.014),
    ),
    "sharp_dead_zone": Case(
        kinds.DeadZoneSpring(8e4, 80.0, 0.01, 1e-5), dead_zone(8e4, 80.0, 0.01, 1e-5), 1.0, (0.01, 0.00999, 0.01001)
    ),
    "tabulated": Case(
        kinds.TabulatedSpring(TABLE, EFFORTS),
        natural_spline([-x for x in TABLE[:0:-1]] + TABLE, [-y for y in EFFORTS[:0:-1]] + EFFORTS),
        0.4,
        tuple(TABLE[1:]),
        # The bend falls to zero within the last interval.
        lambda x: mpf(25 * 38**2) * mpmath.sinh(38 * mpf(0.19)) if abs(x) > 0.19 else mpf(0),
    ),
}


class Expected(NamedTuple):
    """To 40 digits, with the magnitude of terms, zero except for bends.

    Attributes:
        delta, law, law_terms: deflections (N,), f, f', f'' there (3, N), and magnitudes.
        tau, inverse, inverse_terms: efforts (N,), the inverse and its derivatives there (3, N), and magnitudes.
    """

    delta: Array
    law: Any
    law_terms: Any
    tau: Array
    inverse: Any
    inverse_terms: Any


@cache
def expected(name: str) -> Expected:
    case, f = CASES[name], CASES[name].law
    least = 1e-12 / float(case.spring.tangent(0.0))
    sizes = [0.0, *np.geomspace(least, case.reach, 23)]
    sizes += [x for edge in case.edges for x in (edge, np.nextafter(edge, 0), np.nextafter(edge, 1))]
    delta = [sign * float(x) for x in sizes for sign in (1, -1)]
    rows = []
    for x in delta:
        at = mpf(x)
        value, slope, bend = f(at), mpmath.diff(f, at), mpmath.diff(f, at, 2)
        tau = float(value) if x else x
        # The deflection of the rounded effort, by Taylor's polynomial: the remainder is 1e-48.
        change = (mpf(tau) - value) / slope
        exact = at + change - bend / slope * change**2 / 2
        slope_there, bend_there = mpmath.diff(f, exact), mpmath.diff(f, exact, 2)
        # Differences of an odd law leave a bend at rest.
        terms = max(case.bend(at), slope * mpf("1e-25"))
        inverse = exact, 1 / slope_there, -bend_there / slope_there**3
        rows.append((value, slope, bend, 0, 0, terms, tau, *inverse, 0, 0, terms / slope**3))
    law, law_terms, (tau,), inverse, inverse_terms = (
        list(zip(*(row[part] for row in rows), strict=True))
        for part in (slice(3), slice(3, 6), slice(6, 7), slice(7, 10), slice(10, 13))
    )
    return Expected(np.array(delta), law, law_terms, np.array(tau), inverse, inverse_terms)


def check(found: Any, exact: Any, terms: Any = None) -> None:
    for k, (row, values) in enumerate(zip(found, exact, strict=True)):
        magnitudes = [0] * len(values) if terms is None else terms[k]
        for at, (a, b, magnitude) in enumerate(zip(row, values, magnitudes, strict=True)):
            assert abs(mpf(float(a)) - b) <= TOLERANCE * max(abs(b), magnitude), f"row {k}, entry {at}"


@pytest.mark.parametrize("name", CASES)
def test_laws_and_inverses(name: str) -> None:
    spring, exact = CASES[name].spring, expected(name)
    zero = np.zeros_like(exact.delta)
    check([zero + x for x in spring.law(Jet([exact.delta, zero + 1, zero]))], exact.law, exact.law_terms)
    check([zero + x for x in spring.inverse_jet(Jet([exact.tau, zero + 1, zero]))], exact.inverse, exact.inverse_terms)
    if name not in ("linear", "dead_zone"):
        assert max(exact.law[1]) > 850 * spring.tangent(0.0)


# Friction by direction, and gear loss.

FRICTION = (
    Friction(0.4, 1.0, 1.5, 0.2, 0.02),
    Friction(0.4, 1.0, 1.6, 0.2, 0.02, viscous_negative=0.3, coulomb_negative=0.7),
    Friction(0.2, 0.7, 0.9, 0.1, 0.03, viscous_negative=0.5, coulomb_negative=0.8),
    Friction(viscous=0.4, viscous_negative=0.1, smoothing_velocity=0.05),
    Friction(coulomb=0.6, static=0.6, coulomb_negative=0.2),
    Friction(viscous=0.3),
    Friction(),
)
GEARS = (Gear(0.8, 0.1), Gear(0.6, 5.0), Gear(), Gear(0.9, 1e-3), Gear(), Gear(0.7, 0.2), Gear(0.95, 0.01))
SPEEDS = np.array([sign * x for x in (0.0, *np.geomspace(1e-12, 50.0, 30)) for sign in (1.0, -1.0)])
LOADS = np.resize([3e-12, 20.0, -0.4, 1e-3, -70.0], SPEEDS.shape)


def friction_law(friction: Friction) -> Law:
    D, c, s, v_s, v_0, D_minus, c_minus, _ = (mpf(float(x)) for x in vars(friction).values())
    D_minus, c_minus = (D if mpmath.isnan(D_minus) else D_minus), (c if mpmath.isnan(c_minus) else c_minus)

    def law(v: Any) -> Any:
        forward = (1 + mpmath.tanh(v / v_0)) / 2
        dry = c * forward + c_minus * (1 - forward) + (s - max(c, c_minus)) * mpmath.exp(-((v / v_s) ** 2))
        return (D * forward + D_minus * (1 - forward)) * v + dry * mpmath.tanh(v / v_0)

    return law


def gear_law(gear: Gear) -> Callable[[Any, Any], Any]:
    eta, P_0 = mpf(float(gear.efficiency)), mpf(float(gear.smoothing_power))
    return lambda tau, v: tau * eta ** -mpmath.tanh(tau * v / P_0)


@pytest.mark.parametrize("friction", FRICTION)
def test_friction(friction: Friction) -> None:
    """Derivatives change sign and fade with the Coulomb term: relative to the slope at rest."""
    law, zero = friction_law(friction), np.zeros_like(SPEEDS)
    exact = [[mpmath.diff(law, mpf(v), k) if k else law(mpf(v)) for v in SPEEDS] for k in range(3)]
    slope = float(friction.viscous) + float(friction.static) / float(friction.smoothing_velocity)
    terms = [[0 if k == 0 else slope / float(friction.smoothing_velocity) ** (k - 1)] * len(SPEEDS) for k in range(3)]
    check([zero + x for x in friction.effort_jet(Jet([SPEEDS, zero + 1, zero]))], exact, terms)


@pytest.mark.parametrize("gear", GEARS[:2])
def test_gear_loss(gear: Gear) -> None:
    """Along tau + 2 t + t²/2 and v - t + 3 t²/2; derivatives relative to a power that changes as fast."""
    law, jets = (
        gear_law(gear),
        (Jet([LOADS, 2 + 0 * LOADS, 1 + 0 * LOADS]), Jet([SPEEDS, 0 * SPEEDS - 1, 3 + 0 * SPEEDS])),
    )
    exact, terms = [], []
    for k in range(3):
        rows = [
            mpmath.diff(lambda t, a=a, b=b: law(mpf(a) + 2 * t + t * t / 2, mpf(b) - t + 3 * t * t / 2), 0, k)
            for a, b in zip(LOADS, SPEEDS, strict=True)
        ]
        fastest = 1 + (np.abs(LOADS) + 3 * np.abs(SPEEDS) + 3) / float(gear.smoothing_power)
        terms.append((np.abs(LOADS) + 2) * fastest**k * (k > 0))
        exact.append(rows)
    check(gear.load_jet(*jets), exact, terms)


# The compiled laws, for one state and for batches.


@pytest.fixture(scope="module")
def arm() -> ElasticArm:
    robot = with_springs(load_robot("iiwa"), *(case.spring for case in CASES.values()))
    parts = zip(robot.joints, FRICTION, GEARS, strict=True)
    joints = tuple(replace(joint, actuator=Actuator(friction, gear)) for joint, friction, gear in parts)
    return ElasticArm(replace(robot, joints=joints))


@pytest.fixture(scope="module", params=["native", "numpy"])
def functions(request: pytest.FixtureRequest, arm: ElasticArm) -> MotorFunctions:
    return arm.functions if request.param == "native" else MotorFunctions(arm.side, "numpy")


def columns(name: str) -> Array:
    rows = [getattr(expected(case), name) for case in CASES]
    return np.stack([np.resize(row, max(map(len, rows))) for row in rows], axis=1)


def test_compiled_laws_and_inverses(functions: MotorFunctions) -> None:
    delta, tau = columns("delta"), columns("tau")
    zero = np.zeros_like(delta)
    found = functions("deflections", tau, zero + 1, zero)
    efforts = functions("spring_efforts", delta, zero + 1, zero, orders=3)[:3]
    np.testing.assert_array_equal(found[3], tau)
    for k, name in enumerate(CASES):
        exact = expected(name)
        own = slice(len(exact.tau))
        check([x[own, k] for x in found[:3]], exact.inverse, exact.inverse_terms)
        check([x[own, k] for x in efforts], exact.law, exact.law_terms)


def test_compiled_losses(functions: MotorFunctions) -> None:
    tau, speed = (np.stack([np.roll(x, k) for k in range(7)], axis=1) for x in (LOADS, SPEEDS))
    zero = np.zeros_like(tau)
    *_, effort = functions("motors", zero, speed, zero, tau, zero, zero, spin=False)
    for k, (friction, gear) in enumerate(zip(FRICTION, GEARS, strict=True)):
        law, loss = friction_law(friction), gear_law(gear)
        parts = [(loss(mpf(a), mpf(v)), law(mpf(v))) for a, v in zip(tau[:, k], speed[:, k], strict=True)]
        check([effort[:, k]], [[sum(x) for x in parts]], [[max(map(abs, x)) for x in parts]])


# Springs with a command or a state.


@pytest.mark.parametrize("route", ["arrays", "compiled"])
def test_damped_steps(route: str) -> None:
    """The filter's exact solution for the quintic between both efforts, by the integral of exp(-z (1 - s)) P(s)."""
    spring = kinds.DampedSpring(500.0, 15.0)
    dt = np.geomspace(1e-9, 1e3, 25)
    before, after, start = np.array([2.0, 1.0, 0.3]), np.array([3.0, -0.5, 0.2]), 0.01
    # Rates per step, so that all steps see an effort of the same shape.
    rows = [[x / dt**k for k, x in enumerate(values)] for values in (before, after)]
    if route == "arrays":
        found = spring.advanced(start, *rows, dt)
    else:
        arm = ElasticArm(with_springs(load_robot("pendulum"), spring))
        found = arm.functions(
            "filtered", *(np.full((25, 1), start), *(x[:, np.newaxis] for x in (*rows[0], *rows[1], dt)))
        )[0][:, 0]
    exact = []
    for i, step in enumerate(map(mpf, dt)):
        first, last = ([mpf(float(x[i])) * step**k for k, x in enumerate(row)] for row in rows)
        power = mpmath.matrix(
            [
                [mpmath.ff(j, k) * s ** max(j - k, 0) if j >= k else 0 for j in range(6)]
                for s in (0, 1)
                for k in range(3)
            ]
        )
        P = list(mpmath.lu_solve(power, mpmath.matrix([*first, *last])))
        z = step * 500 / 15
        # A particular solution is the polynomial R with R' + z R = P; the rest decays.
        R = [mpf(0)] * 7
        with mpmath.workdps(150):
            for j in range(5, -1, -1):
                R[j] = (P[j] - (j + 1) * R[j + 1]) / z
            exact.append(mpmath.exp(-z) * (mpf(start) - step / 15 * R[0]) + step / 15 * sum(R))
    check([found], [exact])
