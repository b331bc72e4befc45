# SPDX-License-Identifier: Apache-2.0
"""Motions with derivatives: splines, from rest to rest, cosines and Fourier series, against SciPy and SymPy."""

import numpy as np
import pytest
import sympy
from differences import derivative, deviation
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusals
from scipy.interpolate import BPoly

from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.trajectory import Cosine, Fourier, Spline, rest_to_rest, sample, sample_times, shortest_duration
from eom_dynamics.trajectory.trajectory import check_times, dense_states


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


def test_states_of_a_check_in_even_parts() -> None:
    motion, longest = spline(6), 1.4837  # s
    for rate in (1.0, 15.9 / longest, 20.0 / longest):
        t, states = dense_states(motion, rate)
        expected = check_times(motion, rate)
        if rate * longest < 16:
            assert t == pytest.approx(expected, rel=1e-15)
        assert np.max(np.diff(t)) <= 1 / rate and len(expected) <= len(t) <= 1.5 * len(expected)
        for actual, desired in zip(states, motion.derivatives(t), strict=True):
            assert deviation(actual, desired) < 1e-12
    assert dense_states(motion, 1000 / longest) is None  # pieces are too uneven
    # Instants that rounding makes equal.
    assert dense_states(Spline(1.7e9 + np.array([0.0, 2e-6]), np.zeros((5, 2, 1))), 1e3) is None


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
    *((lambda s=s: spline(0).scaled(s), "time scaling must be") for s in (0.0, -1.0, np.nan, np.inf)),
    (lambda: spline(0).scaled(None), "there is no time scaling: the trajectory violates its limits"),
    (lambda: rest_to_rest([0.0], [1.0], 0.0), "duration"),
    (lambda: rest_to_rest(0.0, 1.0, 1.0), r"\(n,\)"),
    (lambda: shortest_duration([0.0], [1.0]), "has no limit"),
    (lambda: shortest_duration([0.0], [1.0], velocity=0.0), "velocity must"),
    *(
        (lambda given=given: Fourier(1.0, A, B, Q0, **given), f"{next(iter(given))} must be an integer from {least}")
        for given, least in (({"periods": 0}, 1), ({"periods": "2"}, 1), ({"ramp": -1}, 0), ({"ramp": 0.5}, 0))
    ),
    (lambda: Spline([], np.zeros((5, 0, 1))), "K >= 1"),
    (lambda: Spline([0.0, 0.0], np.zeros((5, 2, 1))), r"times\[1\]"),
)


def test_polynomial_agrees_with_sympy() -> None:
    t, c = sympy.Symbol("t"), sympy.symbols("c:10")
    p = sum(c[j] * t**j for j in range(10))
    conditions = [sympy.diff(p, t, k).subs(t, end) - int(end == 2 and k == 0) for k in range(5) for end in (0, 2)]
    p = p.subs(sympy.solve(conditions, c))
    times = np.linspace(0, 2, 41)
    motion = rest_to_rest([1.0, -1.0], [1.5, 2.0], 2.0, start_time=3.0)
    for k, actual in enumerate(motion.derivatives(3.0 + times)):
        shape = sympy.lambdify(t, sympy.diff(p, t, k) + 0 * t)(times)
        expected = (k == 0) * np.array([1.0, -1.0]) + np.outer(shape, [0.5, 3.0])
        np.testing.assert_allclose(actual, expected, atol=1e-11)


@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=2),
    st.lists(st.floats(0.1, 100), min_size=4, max_size=4),
    st.integers(1, 15),
)
def test_shortest_duration_meets_all_limits_and_reaches_one(end: list[float], values: list[float], which: int) -> None:
    names = ("velocity", "acceleration", "jerk", "snap")
    limits = {name: value for i, (name, value) in enumerate(zip(names, values, strict=True)) if which >> i & 1}
    duration = shortest_duration([0.0, 0.0], end, **limits)
    if not np.any(np.abs(end) > 1e-9):
        return
    motion = rest_to_rest([0.0, 0.0], end, duration)
    peaks = [np.max(np.abs(x)) for x in motion.derivatives(duration * np.linspace(0, 1, 4001))]
    worst = max(peaks[1 + names.index(name)] / limit for name, limit in limits.items())
    assert 1 - 1e-5 < worst < 1 + 1e-12  # the peak may be between samples


TIMES = np.linspace(0.0, 5.0, 41)


def test_derivatives_of_cosines_agree_with_sympy() -> None:
    amplitude, frequency, phase = [-1.3, 0.7], [1.7, 3.1], [0.0, 0.4]
    motion = Cosine(amplitude, frequency, phase)
    t = sympy.Symbol("t")
    for i in range(2):
        x = amplitude[i] * sympy.cos(frequency[i] * t + phase[i])
        for k, values in enumerate(motion.derivatives(TIMES, order=6)):
            expected = sympy.lambdify(t, sympy.diff(x, t, k))(TIMES)
            np.testing.assert_allclose(values[:, i], expected, rtol=0, atol=1e-11)  # 1e-14 of the largest, 1000


RNG = np.random.default_rng(0)
A, B, Q0 = RNG.normal(size=(3, 5)), RNG.normal(size=(3, 5)), RNG.normal(size=3)


def test_derivatives_and_ramps() -> None:
    """Velocities are sums of cosines and sines of multiples of the frequency, by ``A`` and ``B``."""
    motion, plain = Fourier(0.5, A, B, Q0, periods=2, ramp=1), Fourier(0.5, A, B, Q0)
    assert motion.end == 8.0 and motion.n == 3
    times, w = np.linspace(0.0, 1.99, 31), np.pi * np.arange(1, 6)
    q, qd = plain.derivatives(times, order=1)
    waves = np.sin(np.multiply.outer(times, w)), np.cos(np.multiply.outer(times, w))
    np.testing.assert_allclose(qd, waves[1] @ A.T + waves[0] @ B.T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(q, Q0 + waves[0] @ (A / w).T - waves[1] @ (B / w).T, rtol=0, atol=1e-12)
    for t in (0.0, 8.0, -1.0, 9.0):
        q, *rates = motion.derivatives(t)
        np.testing.assert_array_equal(q, Q0)
        assert np.max(np.abs(rates)) < 1e-12
    inside = np.linspace(2.001, 5.999, 50)
    for a, b in zip(motion.derivatives(inside), plain.derivatives(inside % 2.0), strict=True):
        assert deviation(a, b) < 1e-12
    for at in (0.7, 1.9, 6.3, 7.5):
        for k in range(4):
            slope = derivative(lambda h, at=at, k=k: motion.derivatives(at + h)[k])
            assert deviation(slope, motion.derivatives(at)[k + 1]) < 1e-8
