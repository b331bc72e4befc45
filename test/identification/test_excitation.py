# SPDX-License-Identifier: Apache-2.0
"""Optimal excitation: information, limits by the verdict of the trajectory service, spheres, and gradients."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from differences import derivative, deviation
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusals

import eom_dynamics as eom
from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.identification import Excitation, ExcitationOptions, OptimalExcitation, Regressor
from eom_dynamics.identification.excitation import RestSeries
from eom_dynamics.identification.excitation_limits import (
    SHARPNESS,
    ExcitationLimits,
    InformationModel,
    Spheres,
    smooth_maximum,
    with_limits,
)
from eom_dynamics.trajectory import Samples, check
from eom_dynamics.trajectory.feedforward import trajectory_feedforward

RANGES = {name: {"lower": -1.5, "upper": 2.0, "velocity": 3.0} for name in ("joint_1", "joint_2")}
OPTIONS = ExcitationOptions(period=4.0, harmonics=5, limits=RANGES, share=0.8)


def task_of(**changes: Any) -> Excitation:
    """An arm with springs, friction and limited motors."""
    return Excitation(eom.load_robot("sea_planar_2r"), replace(OPTIONS, **changes))


@pytest.fixture(scope="module")
def task() -> Excitation:
    return task_of()


@pytest.fixture(scope="module")
def found(task: Excitation) -> OptimalExcitation:
    return task.optimize(candidates=10, iterations=60)


def test_gains_information_over_random_motions(task: Excitation, found: OptimalExcitation) -> None:
    assert found.information.condition < 0.7 * found.start_information.condition
    assert task.cost(found.information) < task.cost(found.start_information) - 0.5
    assert found.information == task.information(found.trajectory)
    assert found.start_information == task.information(found.start)
    draw = np.random.default_rng(7)
    others = [task.information(task.trajectory(task.random(draw))) for _ in range(50)]
    assert task.cost(found.information) < min(task.cost(other) for other in others) - 0.2
    assert found.information.condition < 0.8 * min(other.condition for other in others)
    # A D-optimal motion has the largest determinant.
    optimal = task_of(condition_weight=0.0).optimize(candidates=10, iterations=60)
    most = max(other.log_det for other in others)
    assert optimal.information.log_det > max(found.information.log_det + 0.2, most + 0.5)


def test_keeps_limits_by_the_verdict_of_the_trajectory_service(found: OptimalExcitation) -> None:
    arm = eom.ElasticArm(with_limits(eom.load_robot("sea_planar_2r"), RANGES))
    answer = trajectory_feedforward(arm, found.trajectory, [0.0, found.trajectory.end], rate=3000.0)
    assert answer.verdict.ok and found.verdict.ok
    shares = [peak.ratio for peak in answer.verdict.peaks if np.isfinite(peak.limit)]
    assert max(shares) <= 0.8 * (1 + 1e-4)  # peaks between samples of 1 kHz
    assert max(shares) > 0.75  # and nothing is given away


test_what_is_refused = refusals(
    TrajectoryError,
    ({"noise": [1.0]}, r"noise must be a number or have shape \(2,\)"),
    ({"terms": ["viscos"]}, "viscous"),
    ({"limits": None}, "--lower, --upper"),
    (
        {"limits": {name: {**values, "effort": 0.1} for name, values in RANGES.items()}},
        "sea_planar_2r: no random motion meets the limits of effort",
    ),
    call=lambda options: task_of(**options).optimize(candidates=1),
)


def test_start_beyond_the_limits(task: Excitation) -> None:
    with pytest.raises(TrajectoryError, match="optimization"):
        task.optimize(start=np.full(task.series.shape, 9.0), iterations=1)


SCALE = np.array([0.5, 2.0, 3.0])


def series_parameters(series: RestSeries, seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=series.shape)


@given(harmonics=st.integers(3, 12), frequency=st.floats(0.05, 2.0), seed=st.integers(0, 99))
def test_ends_are_at_rest(harmonics: int, frequency: float, seed: int) -> None:
    series = RestSeries(frequency, harmonics, SCALE)
    motion = series.trajectory(series_parameters(series, seed), periods=2)
    peaks = [np.max(np.abs(x)) for x in motion.derivatives(np.linspace(0, motion.end, 200))]
    for t in (0.0, 1 / frequency, motion.end):
        for peak, rate in zip(peaks[1:], motion.derivatives(t)[1:], strict=True):
            # Sums of harmonics to the power of four, of numbers rounded to 1e-16.
            assert np.max(np.abs(rate)) < 1e-11 * peak
    assert deviation(motion.derivatives(0.0)[0], motion.derivatives(motion.end)[0]) < 1e-12


NOISE = np.array([2.0, 0.5])


@pytest.fixture(scope="module")
def model() -> InformationModel:
    return InformationModel(Regressor(eom.load_robot("planar_2r"), ("viscous",)), NOISE)


def states(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def test_predicts_the_covariance_of_least_squares(model: InformationModel) -> None:
    """The determinant of the covariance of estimates from noisy efforts, K samples."""
    draw, W, K = np.random.default_rng(4), model.matrix(states(3, 30, 2, seed=1)), 30
    estimates = np.linalg.lstsq(W, draw.normal(size=(len(W), 20_000)), rcond=None)[0]
    measured = np.linalg.slogdet(np.cov(estimates))[1]
    predicted = -(model.information(states(3, 30, 2, seed=1)).log_det + W.shape[1] * np.log(K))
    # With 20,000 estimates, a variance has a standard deviation of 1 %: five of P of them.
    assert abs(measured - predicted) < 5 * 0.01 * np.sqrt(W.shape[1])


def test_cost_and_its_gradient(model: InformationModel) -> None:
    """Determinant and condition number, compared with differences."""
    at, costs = states(3, 8, 2, seed=2), []
    for weight in (0.0, 1.0):
        cost, gradient = model.cost(at, weight)
        direction = np.random.default_rng(5).normal(size=at.shape)
        slope = derivative(lambda h, d=direction, w=weight: model.cost(at + h * d, w)[0], step=1e-3)
        # Differences of the regressor are accurate to 1e-9.
        assert np.sum(gradient * direction) == pytest.approx(float(slope), rel=1e-7)
        costs.append(cost)
    condition = np.log(model.information(at).condition)
    assert condition <= costs[1] - costs[0] <= condition + 2 * np.log(len(model.columns)) / 8


def test_motion_that_tells_nothing(model: InformationModel) -> None:
    value, gradient = model.cost(np.zeros((3, 5, 2)), 0.0)
    assert value == np.inf and not np.any(gradient)


def arm(name: str = "sea_planar_2r", limits: Any = RANGES) -> eom.ElasticArm:
    return eom.ElasticArm(with_limits(eom.load_robot(name), limits))


@pytest.mark.parametrize(("name", "limits"), [("sea_planar_2r", RANGES), ("panda", {}), ("dual_arm", {})])
def test_ratios_are_those_of_the_check(name: str, limits: Any) -> None:
    of = arm(name, limits)
    at = states(5, 12, of.robot.n)
    found = ExcitationLimits(of, 0.5)
    ratios = dict(zip(found.names, np.max(np.abs(found.ratios(at)), axis=0), strict=True))
    verdict = check(of, Samples(np.arange(at.shape[1], dtype=float), *at))
    limited = [peak for peak in verdict.peaks if np.isfinite(peak.limit)]
    assert len(limited) == len(found.names)
    for peak in limited:
        assert ratios[peak.quantity, peak.name] == pytest.approx(2 * peak.ratio, rel=1e-9)


def test_partials_agree_with_differences() -> None:
    of = ExcitationLimits(arm(), 0.9)
    at = 0.3 * states(5, 4, 2, seed=1)
    partials = of.partials(at)
    for seed in range(3):
        direction = states(5, 4, 2, seed=10 + seed)
        slope = derivative(lambda h, d=direction: of.ratios(at + h * d), step=1e-4)
        found = np.einsum("cokj,okj->kc", partials, direction)
        # Friction changes within 0.02 rad/s, which the differences resolve to 1e-6.
        np.testing.assert_allclose(found, slope, rtol=0, atol=1e-5 * np.max(np.abs(slope)))


@given(st.integers(1, 200), st.integers(0, 50))
def test_smooth_maximum_is_a_tight_upper_bound(count: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(count, 3))
    found, _ = smooth_maximum(values)
    largest = np.max(np.abs(values), axis=0)
    excess = found - largest
    assert np.all(excess >= -1e-12) and np.all(excess <= np.log(2 * count) / SHARPNESS + 1e-12)


def test_motion_that_springs_cannot_realise_exceeds_limits() -> None:
    of = ExcitationLimits(arm("vsa_planar_2r"), 0.9)
    assert np.max(np.abs(of.ratios(1e4 * states(5, 12, 2)))) > 1


def test_mimic_joints_count() -> None:
    """A joint that turns three times as far as its leader, with the same limits, leaves a third of them."""
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    joint = '<joint name="{0}" type="revolute"><parent link="base"/><child link="{0}"/><axis xyz="0 0 1"/>{1}</joint>'
    first = '<limit lower="-3" upper="3" velocity="3" effort="9"/>'
    second = '<mimic joint="a" multiplier="3" offset="1"/><limit lower="-3" upper="4" velocity="3" effort="9"/>'
    links = "".join(f'<link name="{name}">{body}</link>' for name in "ab")
    joints = joint.format("a", first) + joint.format("b", second)
    text = f'<robot name="gripper"><link name="base"/>{links}{joints}</robot>'
    of = ExcitationLimits(eom.ElasticArm(eom.load_robot(text)), 1.0)
    np.testing.assert_allclose([*of.middle, *of.half, *of.largest[0]], [(-4 / 3 + 1) / 2, (1 + 4 / 3) / 2, 1.0])


def test_speed_limit_of_the_motor_stands_for_velocity() -> None:
    of = ExcitationLimits(arm(limits={name: {"lower": -1.0, "upper": 1.0} for name in RANGES}), 0.5)
    np.testing.assert_allclose(of.velocity, 0.5 * 500.0 / 100.0)


# On the base, and on the second link of a planar arm with two links; the first is 0.5 m long.
SPHERES = {"base": [[0.0, 0.0, 0.0, 0.2]], "joint_2": [[0.2, 0.0, 0.0, 0.05], [0.4, 0.0, 0.0, 0.05]]}
WIDE = {"joint_1": {"lower": -1.5, "upper": 1.5, "velocity": 3.0}}
WIDE["joint_2"] = {"lower": -3.1, "upper": 3.1, "velocity": 3.0}


def nearest(q: Any) -> Any:
    """Distance of the spheres' surfaces: |l1 + c exp(i q2)| less the radii."""
    return np.min([np.abs(0.5 + c * np.exp(1j * q[:, 1])) for c in (0.2, 0.4)], axis=0) - 0.25


def test_distances() -> None:
    spheres, q = Spheres(eom.load_robot("planar_2r"), SPHERES, 0.03), np.random.default_rng(0).uniform(-3, 3, (50, 2))
    assert spheres.pairs == ("base/joint_2",) and not spheres.always
    np.testing.assert_allclose(0.28 / spheres.ratios(q)[:, 0] - 0.25, nearest(q), atol=1e-12)
    meeting = Spheres(eom.load_robot("planar_2r"), {"base": [[0, 0, 0, 1.0]], "joint_2": [[0.2, 0, 0, 0.1]]})
    assert meeting.always == ("base/joint_2",) and meeting.pairs == ()


def test_optimal_motion_keeps_clear() -> None:
    options = ExcitationOptions(period=4.0, harmonics=5, limits=WIDE, spheres=SPHERES, clearance=0.05)
    task = Excitation(eom.load_robot("sea_planar_2r"), options)
    with_spheres = task.optimize(candidates=5, iterations=40)
    t = np.linspace(0, 4.0, 4001)
    assert np.min(nearest(with_spheres.trajectory.derivatives(t, 0)[0])) >= 0.05 - 1e-6
    assert task.cost(with_spheres.information) < task.cost(with_spheres.start_information)


SEA = "sea_planar_2r"


test_wrong_limits = refusals(
    TrajectoryError,
    (SEA, {"knee": {"lower": 0.0}}, "unknown joint 'knee'; .* has joint_1, joint_2"),
    (SEA, {"joint_1": {"lower": 1.0, "upper": 1.0}}, "joint_1: lower 1 must be less than upper 1"),
    ("planar_2r", {}, "^planar_2r: excite needs limits: joint_1, .* or by --lower, --upper$"),
    call=lambda name, limits: ExcitationLimits(arm(name, limits), 0.9),
)


test_wrong_spheres = refusals(
    TrajectoryError,
    ({"hand": [[0, 0, 0, 1]]}, "unknown frame 'hand'; planar_2r has joint_1"),
    ({"base": [[0, 0, 0]]}, "spheres of 'base' must be rows x, y, z, radius"),
    ({"base": []}, "spheres of 'base'"),
    call=lambda spheres: Spheres(eom.load_robot("planar_2r"), spheres),
)
