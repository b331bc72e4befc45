# SPDX-License-Identifier: Apache-2.0
"""Splines of given states: against SciPy's Bernstein polynomials, at knots, beyond the ends."""

import numpy as np
import pytest
from differences import deviation
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusals
from scipy.interpolate import BPoly

from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.trajectory import Spline, sample, sample_times


def spline(seed: int, knots: int = 6, n: int = 3) -> Spline:
    rng = np.random.default_rng(seed)
    return Spline(np.cumsum(rng.uniform(0.2, 1.5, knots)), rng.normal(size=(5, knots, n)))


@given(st.integers(0, 1000))
def test_pieces_agree_with_scipy(seed: int) -> None:
    motion = spline(seed)
    t = np.linspace(motion.start, motion.end, 201)
    other = BPoly.from_derivatives(motion.t, np.moveaxis(motion.states, 0, 1))
    for k, actual in enumerate(motion.derivatives(t, order=4)):
        # SciPy's Bernstein form loses digits in higher derivatives.
        assert deviation(actual, other.derivative(k)(t) if k else other(t)) < 1e-11


@given(st.integers(0, 1000))
def test_states_at_both_sides_of_knots(seed: int) -> None:
    motion = spline(seed)
    between = np.linspace(motion.start, motion.end, 201)
    for side in (-np.inf, np.inf):
        at = np.clip(np.nextafter(motion.t, side), motion.start, motion.end)
        for k, actual in enumerate(motion.derivatives(at)):
            # Relative to derivatives between knots, which are far larger for random states.
            assert np.max(np.abs(actual - motion.states[k])) < 1e-11 * np.max(np.abs(motion.derivatives(between)[k]))


def test_one_time_and_many() -> None:
    motion = spline(0)
    t = np.linspace(motion.start, motion.end, 3001)  # several chunks
    rows = motion.derivatives(t, order=2)
    assert [x.shape for x in motion.derivatives(1.0)] == [(3,)] * 5
    for i in (0, 1500, 3000):
        for actual, desired in zip(motion.derivatives(t[i], order=2), rows, strict=True):
            np.testing.assert_array_equal(actual, desired[i])


@pytest.mark.parametrize("parts", [1, 4, 5])
def test_within_some_of_its_pieces(parts: int) -> None:
    motion, pieces = spline(6), np.array([0, 2, 4])
    t, states = motion.in_pieces(parts, 3, pieces)
    assert t == pytest.approx(np.linspace(motion.t[pieces], motion.t[pieces + 1], parts + 1), rel=1e-15)
    for actual, expected in zip(states, motion.derivatives(t, 3), strict=True):
        assert deviation(actual, expected) < 1e-12


def test_at_rest_beyond_its_ends() -> None:
    single = Spline([2.0], np.arange(10.0).reshape(5, 1, 2))
    np.testing.assert_array_equal(single.derivatives(2.0), single.states[:, 0])
    for motion in (spline(0), single):
        for t, row in ((motion.start - 1e-9, 0), (motion.end + 1e-9, -1)):
            q, *rates = motion.derivatives(t)
            np.testing.assert_allclose(q, motion.states[0, row], rtol=0, atol=1e-13)
            assert not np.any(rates)


def test_sample_times() -> None:
    motion = Spline([1.0, 1.35], np.zeros((5, 2, 1)))
    np.testing.assert_allclose(sample_times(motion, 10.0), [1.0, 1.1, 1.2, 1.3, 1.35])
    np.testing.assert_allclose(sample_times(motion, 20.0), np.linspace(1.0, 1.35, 8))
    states = sample(motion, 10.0)
    assert [x.shape for x in states] == [(5,)] + [(5, 1)] * 5


def test_time_scaling() -> None:
    motion = spline(1)
    t = np.linspace(motion.start, motion.end, 50)
    for slow in (motion.scaled(2.5), motion.stretched(2.5)):
        assert slow.n == 3 and slow.start == motion.start
        assert slow.end == pytest.approx(motion.start + 2.5 * (motion.end - motion.start), rel=1e-15)
        found = slow.derivatives(motion.start + 2.5 * (t - motion.start))
        for k, (a, b) in enumerate(zip(found, motion.derivatives(t), strict=True)):
            assert deviation(a * 2.5**k, b) < 1e-11
    slow = motion.scaled(2.5)
    np.testing.assert_array_equal(slow.derivatives(slow.end)[4], motion.derivatives(motion.end)[4] / 2.5**4)


test_what_is_refused = refusals(
    TrajectoryError,
    *((lambda s=s: spline(0).scaled(s), "positive") for s in (0.0, -1.0, np.nan, np.inf)),
    (lambda: spline(0).scaled(None), "there is no time scaling: the trajectory violates its limits"),
    (lambda: Spline([], np.zeros((5, 0, 1))), "K >= 1"),
    (lambda: Spline([0.0, 1.0], np.zeros((4, 2, 1))), "shape"),
    (lambda: Spline([0.0, 0.0], np.zeros((5, 2, 1))), r"times\[1\]"),
    (lambda: Spline([0.0, np.nan], np.zeros((5, 2, 1))), "finite"),
    (lambda: Spline([0.0, 1.0], np.full((5, 2, 1), np.inf)), "finite"),
)
