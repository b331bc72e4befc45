# SPDX-License-Identifier: Apache-2.0
"""Optimal excitation: limits by the verdict of the trajectory service and by samples, gain over random motions."""

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
from eom_dynamics.identification import Excitation, ExcitationOptions, OptimalExcitation
from eom_dynamics.identification.excitation.excitation import RestSeries
from eom_dynamics.identification.excitation.limits import with_limits
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


def test_periods_repeat_the_motion_and_progress_rises() -> None:
    fractions: list[float] = []
    task = task_of(period=2.0, harmonics=4, periods=3)
    motion = task.optimize(candidates=2, iterations=4, progress=lambda done, _: fractions.append(done)).trajectory
    assert fractions == sorted(fractions) and fractions[0] > 0 and fractions[-1] == 1.0
    assert motion.end == 6.0
    np.testing.assert_allclose(motion.derivatives(0.3), motion.derivatives(4.3), atol=1e-9)


test_what_is_refused = refusals(
    TrajectoryError,
    ({"period": 0.0}, "period must be positive"),
    ({"harmonics": 2}, r"harmonics must be within \[3, 50\], is 2"),
    ({"harmonics": 3.5}, "harmonics must be an integer, is 3.5"),
    ({"periods": 0}, "periods must be within"),
    ({"clearance": -1.0}, "clearance"),
    ({"share": 1.1}, "share"),
    ({"noise": [1.0]}, "noise must be one positive number or 2"),
    ({"noise": -1.0}, "noise"),
    ({"condition_weight": -1.0}, "condition_weight must not be negative, is -1"),
    ({"terms": ["viscos"]}, "viscous"),
    ({"limits": None}, "--lower, --upper"),
    (
        {"limits": {name: {**values, "effort": 0.1} for name, values in RANGES.items()}},
        "sea_planar_2r: no random motion meets the limits of effort",
    ),
    call=lambda options: task_of(**options).optimize(candidates=1),
)


def test_start_beyond_the_limits(task: Excitation) -> None:
    with pytest.raises(TrajectoryError, match="start of the optimisation exceeds the limits"):
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


def test_gradient_agrees_with_differences() -> None:
    series = RestSeries(0.2, 4, SCALE)
    z, matrices = series_parameters(series, 2), series.matrices(np.linspace(0, 5, 11), 2)
    weight = np.random.default_rng(3).normal(size=(3, 11, 3))
    found = series.parameter_gradient(weight, matrices)
    for i in range(3):
        for k in range(5):
            at = np.zeros(series.shape)
            at[i, k] = 1.0
            slope = derivative(lambda h, at=at: np.sum(weight * series.states(z + h * at, matrices)))
            assert abs(slope - found[i, k]) < 1e-8 * np.max(np.abs(found))
