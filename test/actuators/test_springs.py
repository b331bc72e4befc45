# SPDX-License-Identifier: Apache-2.0
"""Springs, gear loss and motors: slopes, energy, inverses of any effort; the laws are in test_laws_in_digits.py."""

from typing import Any

import numpy as np
import pytest
from differences import derivative, deviation
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from springs import EVERY_KIND, MEMORYLESS, deflection, with_springs

from eom_dynamics import ElasticArm, RobotDescriptionError, StateError, load_robot
from eom_dynamics.actuators import Gear, Motor, Transmission
from eom_dynamics.actuators import springs as kinds
from eom_dynamics.actuators.parallel_springs import GasLaw, TableLaw
from eom_dynamics.jet import Jet

KINDS = pytest.mark.parametrize("spring", MEMORYLESS.values(), ids=MEMORYLESS)
DELTA = np.concatenate([np.linspace(-0.3, 0.3, 401), [1e-9, -1e-9, 1e-4, -1e-4]])


@KINDS
def test_third_derivatives_of_the_effort(spring: kinds.MemorylessSpring) -> None:
    """Derivatives up to the second are in test_laws_in_digits.py; the third derivative of a table jumps."""
    delta, zero = DELTA[::7], np.zeros_like(DELTA[::7])
    _, *slopes = (zero + x for x in spring.law(Jet([delta, zero + 1, zero, zero])))

    def bend(x: np.ndarray) -> Any:
        return zero + spring.law(Jet([x, zero + 1, zero]))[2]

    np.testing.assert_allclose([spring.tangent(delta), bend(delta)], slopes[:2], rtol=1e-11)
    if spring.kind != "tabulated":
        third = derivative(lambda t: bend(delta + t), 1e-4)
        assert deviation(slopes[2], third, floor=np.abs(slopes[1:]).max()) < 1e-8


@KINDS
def test_energy_is_the_integral_of_the_effort(spring: kinds.MemorylessSpring) -> None:
    assert float(spring.energy(np.zeros(()))) == 0
    for x in (-0.25, -0.02, 0.015, 0.13, 0.27):
        work = quad(lambda s: float(spring.load(np.array(s))), 0, x, limit=200, epsabs=1e-13, epsrel=1e-12)[0]
        assert float(spring.energy(np.array(x))) == pytest.approx(work, rel=1e-10)


@KINDS
@given(tau=st.lists(st.floats(-1e6, 1e6), min_size=20, max_size=20))
def test_inverse_of_any_effort(spring: kinds.MemorylessSpring, tau: list[float]) -> None:
    np.testing.assert_allclose(spring.load(deflection(spring, np.array(tau))), tau, rtol=1e-12, atol=1e-12)


@given(
    steps=st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.01, 100)), min_size=1, max_size=8),
    at=st.lists(st.floats(-10, 10), min_size=20, max_size=20),
)
def test_curve_through_any_table_is_monotone(steps: list[tuple[float, float]], at: list[float]) -> None:
    x, y = np.cumsum(np.array([(0.0, 0.0), *steps]), axis=0).T
    spring = kinds.TabulatedSpring(x, y)
    assert deviation(spring.load(x), y) < 1e-12
    assert deviation(spring.load(-x), -y) < 1e-12
    assert np.all(spring.tangent(np.linspace(-1.2 * x[-1], 1.2 * x[-1], 2000)) > 0)
    tau = spring.load(np.array(at))
    rounding = np.maximum(np.abs(tau), y[-1])  # rounding of the table
    assert np.max(np.abs(spring.load(deflection(spring, tau)) - tau) / rounding) < 1e-13


@pytest.mark.parametrize("spring", [EVERY_KIND[kind] for kind in EVERY_KIND if kind != "rigid"], ids=lambda s: s.kind)
def test_scaled_springs_have_as_much_more_effort(spring: kinds.Spring) -> None:
    delta = np.array([0.03, -0.02]) if len(spring.motor_suffixes) == 2 else np.array(0.03)
    stiffer = spring.scaled(1.1)
    assert type(stiffer) is type(spring)
    for quantity in ("energy", "tangent"):
        expected = 1.1 * getattr(spring, quantity)(delta)
        np.testing.assert_allclose(getattr(stiffer, quantity)(delta), expected, rtol=1e-13)
    np.testing.assert_allclose(stiffer.load(delta, 2 * delta), 1.1 * spring.load(delta, 2 * delta), rtol=1e-13)
    np.testing.assert_allclose(stiffer.rest_stiffness, 1.1 * spring.rest_stiffness, rtol=1e-13)


def test_deflection_of_a_rigid_joint_does_not_determine_its_effort() -> None:
    assert kinds.RigidSpring().scaled(1.1).rest_stiffness == np.inf
    (link,), (motor,), stiffness = kinds.RigidSpring().efforts([Jet([0.0, 0.0])])
    assert np.all(np.isnan(list(link))) and list(motor) == [0.0, 0.0] and stiffness is None
    arm = ElasticArm(with_springs(load_robot("pendulum"), kinds.RigidSpring()))
    with pytest.raises(StateError, match="determine"):
        arm.spring_efforts(*[[0.0]] * 4)


# Damped springs.


# Commanded stiffness.


COMMANDED = (
    kinds.VariableSpring(50.0, 2e3, 400.0),
    kinds.ExponentialPair(50.0, 6.0, 500.0),
    kinds.QuadraticPair(50.0, 4e3, 500.0),
)


@pytest.fixture(scope="module")
def arm() -> ElasticArm:
    return ElasticArm(with_springs(load_robot("iiwa"), *COMMANDED, *[kinds.RigidSpring()] * 4))


@pytest.mark.parametrize("k", [49.9, 2001.0, -100.0, float("nan")])
def test_variable_stiffness_out_of_range_is_refused(arm: ElasticArm, k: float) -> None:
    (delta,), _ = COMMANDED[0].deflections([Jet([1.0, 0.0, 0.0])], Jet([k, 0.0, 0.0]))
    assert np.all(np.isnan(list(delta)))
    command = np.array([k, 500.0, 500.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(StateError, match=r"outside the actuator's range 50 … 2000" if k == k else "must be finite"):
        arm.deflections(*np.eye(3, 7), commanded_stiffness=(command,))


# Antagonistic pairs.

PAIRS = pytest.mark.parametrize("pair", COMMANDED[1:], ids=lambda pair: pair.kind)


@PAIRS
def test_pair_has_the_commanded_effort_and_stiffness(pair: kinds.AntagonisticPair) -> None:
    rng = np.random.default_rng(0)
    tau, k = rng.uniform(-20, 20, 50), rng.uniform(700, 1500, 50)
    deflections, loads = pair.deflections([Jet([tau])], Jet([k]))
    delta, load = (np.stack([jet[0] for jet in jets], axis=-1) for jets in (deflections, loads))
    np.testing.assert_allclose(load.sum(axis=-1), tau, rtol=1e-12, atol=1e-12)
    efforts = pair.efforts(deflections)
    assert efforts.stiffness is not None
    np.testing.assert_allclose(efforts.stiffness[0], k, rtol=1e-12)
    assert np.all(delta[:, 0] >= 0) and np.all(delta[:, 1] <= 0)
    assert np.all(load[:, 0] >= 0) and np.all(load[:, 1] <= 0)
    # sigma is the stiffness at the link: minus the derivative of its effort with respect to q.
    felt = derivative(lambda t: pair.load(delta + t).sum(axis=-1), 1e-4)
    np.testing.assert_allclose(felt, k, rtol=1e-10)


@PAIRS
def test_energy_of_a_pair_is_the_work_of_its_motors(pair: kinds.AntagonisticPair) -> None:
    delta = np.array([0.08, -0.05])

    def load(i: int, at: float) -> float:
        return float(pair.load(np.where(np.arange(2) == i, at, 0.0), delta)[i])

    work = [quad(lambda at, i=i: load(i, at), 0, delta[i])[0] for i in (0, 1)]
    assert float(pair.energy(delta)) == pytest.approx(sum(work), rel=1e-10)


@PAIRS
def test_a_slack_pair_is_refused(arm: ElasticArm, pair: kinds.AntagonisticPair) -> None:
    joint = COMMANDED.index(pair)
    tau, (least,) = 20.0 * np.eye(7)[joint], [float(pair.least_stiffness(20.0))]
    still, other = np.zeros(7), np.array([400.0, 500.0, 500.0, 0.0, 0.0, 0.0, 0.0])
    command = np.where(np.arange(7) == joint, least * (1 + 1e-9), other)
    found = arm.deflections(tau, still, still, commanded_stiffness=(command,))
    assert abs(found.delta[arm.motor_joint == joint][1]) < 1e-6
    command[joint] = least * 0.999
    with pytest.raises(StateError, match="slack"):
        arm.deflections(tau, still, still, commanded_stiffness=(command,))


# Coupled springs.


def test_coupled_spring() -> None:
    K = np.array([[300.0, 40.0, -20.0], [40.0, 200.0, 10.0], [-20.0, 10.0, 100.0]])
    spring, tau = kinds.CoupledSpring(K), np.random.default_rng(1).uniform(-9, 9, (3, 3, 5))
    delta, load = spring.deflections([Jet(x) for x in tau])
    np.testing.assert_array_equal([list(x) for x in load], tau)
    for jets in spring.efforts(delta)[:2]:
        np.testing.assert_allclose([list(x) for x in jets], tau, rtol=1e-12, atol=1e-13)
    found = np.array([list(x) for x in delta])
    np.testing.assert_allclose(np.einsum("ij,jkn->ikn", K, found), tau, rtol=1e-12, atol=1e-13)
    energy = np.einsum("jn,jn->n", tau[:, 2], found[:, 2]) / 2
    np.testing.assert_allclose(spring.stored_energy(found[:, 2]), energy, rtol=1e-12)
    np.testing.assert_allclose(spring.scaled(2.0).matrix, 2 * K)


@pytest.mark.parametrize(
    "make",
    [
        lambda: kinds.CubicSpring(-1.0, 0.0),
        lambda: kinds.CoupledSpring([[1.0, 2.0]]),
        lambda: kinds.CoupledSpring(np.eye(2) * 1e-320),
        lambda: kinds.PolynomialSpring([]),
        lambda: kinds.PolynomialSpring([1.0] + [0.0] * 99 + [1.0]),
        lambda: kinds.PolynomialSpring([300.0, 200.0, 4000.0, 0.0, 1e-308]),
        lambda: kinds.PolynomialSpring([1.0, 0.0, 1e308]),
        lambda: kinds.TabulatedSpring([0.0, 1e-320], [0.0, 1.0]),
        lambda: kinds.TabulatedSpring([0.0, 1.0], [0.0, 5e-324]),
        lambda: kinds.TabulatedSpring(np.arange(1001.0), np.arange(1001.0)),
        lambda: Transmission(np.eye(2) * 1e-320),
        lambda: kinds.LinearSpring(5e-324),
        lambda: kinds.CubicSpring(1.0, 1.7e308),
        lambda: kinds.DampedSpring(5e-324, 1.0),
        lambda: kinds.ExponentialSpring(1e-50, 1e100),
        lambda: kinds.DeadZoneSpring(1e160, 1.0, 0.1, 0.1),
        lambda: kinds.PolynomialSpring([5e-324, 0.0, 1.0]),
        lambda: kinds.QuadraticPair(1e200, 1.0, 1e300),
        lambda: GasLaw(100.0, 0.1, 2.0, 1e20),
        lambda: TableLaw([0.0, 5e-324], [0.0, 1.0]),
    ],
)
def test_impossible_springs_are_refused(make: Any) -> None:
    with pytest.raises(RobotDescriptionError):
        make()


@pytest.mark.parametrize("damping", [1e-3, 1e-6, 1e-12])
def test_a_small_damper_divides_no_rounding_errors(damping: float) -> None:
    """Its spring is as good as linear, also with the deflection of the filter, which is rounded."""
    spring, motion = kinds.DampedSpring(1e4, damping), Jet([7.0, -300.0, 2e4])
    for state in (None, spring.settled(motion), spring.settled(motion) * (1 + 4e-15)):
        (found,), _ = spring.deflections([motion], state=state)
        T = damping / 1e4
        np.testing.assert_allclose(list(found)[1:], [(-300.0 - 2e4 * T) / 1e4, 2.0], rtol=1e-12)


def test_gear_never_adds_power() -> None:
    gear = Gear(0.6, 0.5)
    tau, speed = np.meshgrid(np.linspace(-5, 5, 41), np.linspace(-2, 2, 41))
    assert np.all((gear.load(tau, speed) - tau) * speed >= -1e-15)


def test_current_and_voltage() -> None:
    for constant, voltage in ((0.09, 0.5 * 3.0 + 0.09 * 20), (np.nan, 0.5 * 3.0 + 0.1 * 20)):
        motor = Motor(torque_constant=0.1, resistance=0.5, back_emf_constant=constant)
        assert float(motor.voltage(np.array(0.3), np.array(20.0))) == pytest.approx(voltage)
    assert np.isnan(Motor().current(np.array(1.0)))


@pytest.mark.parametrize("torque", [-3.0, -0.2, 0.0, 0.3, 3.0])
@pytest.mark.parametrize("speed", [-90.0, -30.0, 0.0, 30.0, 90.0])
def test_clipped_torque_is_within_all_limits_or_brakes(torque: float, speed: float) -> None:
    motor = Motor(0.1, 0.5, 0.09, torque_limit=1.0, current_limit=8.0, voltage_limit=6.0)
    clipped = motor.clipped(np.array(torque), np.array(speed))
    assert abs(float(motor.current(clipped))) <= 8.0 * (1 + 1e-12)
    if abs(speed) < 60:
        assert abs(float(motor.voltage(clipped, np.array(speed)))) <= 6.0 * (1 + 1e-12)
    else:
        assert float(clipped) * speed < 0


def test_voltage_limit_without_resistance_clips_no_torque() -> None:
    motor = Motor(0.1, 0.0, torque_limit=2.0, voltage_limit=3.0)
    torque, speed = np.array([-3.0, 0.5, 0.5, 3.0]), np.array([90.0, 90.0, 30.0, -90.0])
    np.testing.assert_array_equal(motor.clipped(torque, speed), [-2.0, 0.5, 0.5, 2.0])
    np.testing.assert_array_equal(Motor(0.1, 0.0, voltage_limit=3.0).clipped(torque, speed), torque)


def test_the_least_stiffness_of_a_polynomial_is_where_its_slope_has_none() -> None:
    """4 φ + 2 φ² + 3 φ³: 4 + 4 φ + 9 φ², at -2/9."""
    np.testing.assert_allclose(kinds.PolynomialSpring([4.0, 2.0, 3.0]).least_stiffness, 4 - 4 / 9, rtol=1e-12)
