# SPDX-License-Identifier: Apache-2.0
"""Rest-to-rest motions against the polynomial by SymPy; stops, continuous and equal to what other routes give."""

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from reference.stop_polynomial import StopPolynomial
from refusals import refusals
from scipy.interpolate import BPoly

from eom_dynamics import TrajectoryError
from eom_dynamics.trajectory import rest_to_rest, shortest_duration


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


NUMBERS = st.floats(-10.0, 10.0, allow_subnormal=False)
DURATIONS = st.floats(0.02, 20.0)


STATES = st.sampled_from((3, 4, 5)).flatmap(lambda k: st.lists(st.tuples(NUMBERS, NUMBERS), min_size=k, max_size=k))


@given(start=STATES.map(np.array), duration=DURATIONS, u=st.floats(0.0, 1.0))
def test_a_stop_is_the_hermite_interpolant_to_its_end(start: np.ndarray, duration: float, u: float) -> None:
    """By SciPy, and unique: its leading coefficient is zero. Then it rests."""
    motion, orders = StopPolynomial(start, duration), np.arange(len(start))
    rest = np.zeros_like(start)
    rest[0] = motion.end
    other = BPoly.from_derivatives([0.0, duration], np.stack([start, rest]))
    # Terms that cancel.
    size = max(np.max(np.abs(x)) * duration**k for k, x in enumerate(start)) * (100.0 / duration) ** orders
    for at in (0.0, u * duration, np.nextafter(duration, 0.0)):
        expected = [other.derivative(k)(at) if k else other(at) for k in orders]
        assert np.all(np.abs(motion.derivatives(at) - expected) <= 1e-12 * size[:, None])
    after = motion.derivatives([duration, 2 * duration])
    np.testing.assert_array_equal(after, np.repeat(rest[:, None], 2, axis=1))


def test_from_a_velocity_alone_it_slows_down_monotonically_with_the_documented_peaks() -> None:
    start = np.array([[0.0], [2.0], [0.0], [0.0], [0.0]])
    T = 0.4
    q, qd, qdd, qddd, qdddd = StopPolynomial(start, T).derivatives(np.linspace(0.0, T, 40_001))[..., 0]
    # Also where it is almost at rest: there, drives see the sign of the smallest velocity.
    assert np.all(np.diff(qd) <= 0.0) and q[-1] == pytest.approx(0.5 * T * 2.0)
    for rate, factor, k in ((qdd, 35 / 16, 1), (qddd, 7.513, 2), (qdddd, 52.5, 3)):
        assert np.max(np.abs(rate)) == pytest.approx(factor * 2.0 / T**k, rel=1e-4)


test_bad_input_is_refused = refusals(
    TrajectoryError,
    (lambda: rest_to_rest([0.0], [1.0], 0.0), "duration"),
    (lambda: rest_to_rest([0.0], [1.0], np.nan), "duration"),
    (lambda: rest_to_rest([0.0], [1.0, 2.0], 1.0), "same joints"),
    (lambda: rest_to_rest([0.0], [np.inf], 1.0), "finite"),
    (lambda: rest_to_rest(0.0, 1.0, 1.0), r"\(n,\)"),
    (lambda: shortest_duration([0.0], [1.0]), "has no limit"),
    (lambda: shortest_duration([0.0], [1.0], velocity=0.0), "velocity must"),
    (lambda: shortest_duration([0.0], [1.0], jerk=[1.0, 2.0]), "jerk must"),
    (lambda: shortest_duration([0.0], [1.0], snap=np.nan), "snap"),
)
