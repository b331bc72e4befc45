# SPDX-License-Identifier: Apache-2.0
"""Trajectories through waypoints: against SciPy's splines, by the variational principle, and at uneven times."""

from typing import Any

import numpy as np
import pytest
from differences import deviation
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusals
from scipy.interpolate import make_interp_spline

from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.trajectory import Spline, through

DEGREES = pytest.mark.parametrize("degree", [7, 9])
SEEDS = st.integers(0, 10_000)


def waypoints(seed: int, K: int = 12, n: int = 3, spread: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    """Times with steps that differ by up to a factor ``spread``, and positions of a random walk."""
    rng = np.random.default_rng(seed)
    steps = spread ** rng.uniform(-0.5, 0.5, K)
    return np.cumsum(steps), np.cumsum(rng.normal(size=(K, n)) * steps[:, np.newaxis], axis=0)


def inside(t: np.ndarray, parts: int = 20) -> np.ndarray:
    return (t[:-1, np.newaxis] + np.diff(t)[:, np.newaxis] * (np.arange(parts) + 0.5) / parts).ravel()


@DEGREES
@pytest.mark.parametrize("ends", ["free", "rest", "given"])
@given(seed=SEEDS)
def test_ends_agree_with_scipys_natural_or_clamped_spline(ends: str, degree: int, seed: int) -> None:
    (t, q), m = waypoints(seed), (degree + 1) // 2
    orders = range(m, degree) if ends == "free" else range(1, m)
    values = np.random.default_rng(seed).normal(size=(len(orders), 3)) * (ends == "given")
    other = make_interp_spline(t, q, degree, bc_type=([*zip(orders, values, strict=True)],) * 2)
    motion = through(t, q, ends={"start": values, "end": values} if ends == "given" else ends, degree=degree)
    assert ends != "rest" or not np.any(motion.states[1:, [0, -1]])
    # Degree 7 cannot satisfy the snap at ends at rest, so that the pieces there differ.
    at = inside(t[1:-1]) if degree == 7 and ends == "rest" else inside(t)
    for k, actual in enumerate(motion.derivatives(at)):
        assert deviation(actual, other(at, nu=k)) < 1e-7  # mostly SciPy's error, for uneven times


@given(seed=SEEDS, velocities=st.booleans(), accelerations=st.booleans(), degree=st.sampled_from([7, 9]))
def test_given_derivatives_are_met_and_no_trajectory_is_smoother(
    seed: int, velocities: bool, accelerations: bool, degree: int
) -> None:
    """The first variation of the integral is zero for any admissible change."""
    t, q = waypoints(seed, K=6, n=1)
    rng = np.random.default_rng(seed)
    given_ = {}
    for name, wanted in (("velocities", velocities), ("accelerations", accelerations)):
        if wanted:
            given_[name] = rng.normal(size=q.shape)
            given_[name][rng.random(len(t)) < 0.4] = np.nan
    motion = through(t, q, ends="free", degree=degree, **given_)
    np.testing.assert_array_equal(motion.states[0], q)
    change = rng.normal(size=(5, *q.shape))
    change[0] = 0.0
    for k, name in ((1, "velocities"), (2, "accelerations")):
        if name in given_:
            fixed = ~np.isnan(given_[name])
            np.testing.assert_array_equal(motion.states[k][fixed], given_[name][fixed])
            change[k][fixed] = 0.0
    m = (degree + 1) // 2
    nodes, weights = np.polynomial.legendre.leggauss(10)
    steps = np.diff(t)[:, np.newaxis]
    at, dt = (t[:-1, np.newaxis] + steps * (nodes + 1) / 2).ravel(), (steps * weights / 2).ravel()
    a, b = (x.derivatives(at, order=m)[m][:, 0] for x in (motion, Spline(t, change)))
    assert abs(np.sum(a * b * dt)) < 1e-8 * np.sqrt(np.sum(a**2 * dt) * np.sum(b**2 * dt)) + 1e-9


@pytest.mark.parametrize(
    ("steps", "tolerance"),
    [
        (np.append(np.full(50, 0.1), 3e-6), 1e-2),  # a short last step, as of planners
        (np.append(np.full(50, 0.1), 3e-3), 1e-2),
        (10.0 ** np.random.default_rng(0).uniform(-2, -0.5, 300), 1e-2),
        (np.random.default_rng(1).uniform(5e-4, 1.5e-3, 2000), 1e-1),  # 1 kHz with jitter
    ],
    ids=["tail 3e-6", "tail 3e-3", "random", "jitter"],
)
@DEGREES
def test_uneven_times(steps: np.ndarray, tolerance: float, degree: int) -> None:
    t = np.append(0.0, np.cumsum(steps))
    motion = through(t, np.sin(t)[:, np.newaxis], ends="free", degree=degree)
    middle = (t > 0.2 * t[-1]) & (t < 0.8 * t[-1])
    at = inside(t[middle], 5)
    for k, actual in enumerate(motion.derivatives(at)):
        np.testing.assert_allclose(actual[:, 0], np.sin(at + k * np.pi / 2), atol=tolerance)
    # Near natural ends, derivatives are not exact, but not larger than in the motion.
    for actual in motion.derivatives(t)[:4]:
        assert np.max(np.abs(actual)) < 1.5


@pytest.mark.parametrize("K", [1, 2, 3])
@pytest.mark.parametrize("ends", ["rest", "free"])
@pytest.mark.parametrize("overshoot", [True, False])
def test_up_to_three_waypoints(K: int, ends: Any, overshoot: bool) -> None:
    t, q = waypoints(5, K)
    motion = through(t, q, ends=ends, overshoot=overshoot)
    np.testing.assert_array_equal(motion.derivatives(t)[0][0], q[0])
    np.testing.assert_allclose(motion.derivatives(t)[0], q, rtol=0, atol=1e-14)
    if K == 2 and ends == "free":  # a straight line
        np.testing.assert_allclose(
            motion.derivatives(inside(t))[1], np.broadcast_to((q[1] - q[0]) / (t[1] - t[0]), (20, 3))
        )


def test_conditions_at_the_ends() -> None:
    t, q = waypoints(3)
    given_ = np.random.default_rng(0).normal(size=(4, 3))
    motion = through(t, q, ends={"start": given_, "end": (0.5, given_[1])})
    np.testing.assert_array_equal(motion.states[1:, 0], given_)
    np.testing.assert_array_equal(motion.states[1, -1], 0.5)
    np.testing.assert_array_equal(motion.states[2, -1], given_[1])
    assert np.all(motion.states[3, -1])
    # Given velocities at an end at rest.
    motion = through(t, q, velocities=np.where(np.arange(len(t)) == len(t) - 1, 0.3, np.nan)[:, np.newaxis] + 0 * q)
    assert np.all(motion.states[1, -1] == 0.3) and not np.any(motion.states[2:, -1])


@given(seed=SEEDS, spread=st.sampled_from([1.0, 10.0, 1e6]), ends=st.sampled_from(["rest", "free"]))
def test_monotone_between_waypoints_without_overshoot(seed: int, spread: float, ends: Any) -> None:
    t, q = waypoints(seed, spread=spread)
    rng = np.random.default_rng(seed)
    q = np.where(rng.random(q.shape) < 0.2, np.roll(q, 1, axis=0), q)  # some equal positions
    motion = through(t, q, ends=ends, overshoot=False)
    u = np.linspace(0, 1, 101)
    at = t[:-1, np.newaxis] + np.diff(t)[:, np.newaxis] * u
    at[:, -1] = t[1:]
    positions, rates = (x.reshape(len(t) - 1, 101, 3) for x in motion.derivatives(at.ravel(), order=1))
    change, steps = np.diff(q, axis=0)[:, np.newaxis], np.diff(t)[:, np.newaxis, np.newaxis]
    # A rate with the wrong sign is rounding, relative to its Bernstein coefficients of about ten times Δq/h.
    assert np.all(rates * np.sign(change) >= -1e-12 * np.abs(change) / steps)
    assert np.all(np.abs(rates[np.broadcast_to(change == 0, rates.shape)]) == 0)
    assert np.all(np.abs(positions - q[:-1, np.newaxis]) <= np.abs(change) * (1 + 1e-12))


def test_monotone_motion_is_unchanged_without_overshoot() -> None:
    t = np.linspace(0.3, 1.2, 20)
    smooth, monotone = (through(t, np.sin(t)[:, np.newaxis], ends="free", overshoot=x) for x in (True, False))
    np.testing.assert_array_equal(monotone.states[:, 1:-1], smooth.states[:, 1:-1])


Q = np.zeros((3, 2))
V = np.ones((3, 2))


test_errors = refusals(
    TrajectoryError,
    ([0, 1, 1], Q, {}, r"times\[2\] = 1.0 does not"),
    ([], np.zeros((0, 2)), {}, "K, n >= 1"),
    ([0, 1, 2], Q, {"velocities": [[0, 0], [0, np.nan], [0, 0]]}, "velocities must be finite, or NaN .* waypoint 1"),
    ([0, 1, 2], Q, {"ends": {"begin": (0.0,)}}, "'begin'"),
    ([0, 1, 2], Q, {"ends": {"start": (0.0,) * 5}}, "5 derivatives"),
    ([0, 1, 2], Q, {"ends": {"start": ([0.0, 0.0, 0.0],)}}, "velocity must be a number, or 2"),
    ([0, 1, 2], Q, {"velocities": V, "ends": {"end": (0.0,)}}, "differs"),
    ([0, 1, 2], Q, {"velocities": V, "overshoot": False}, "positions alone"),
    ([0, 1, 2], Q, {"ends": {"end": (1.0,)}, "overshoot": False}, "requires ends to be"),
    call=lambda times, positions, options: through(times, positions, **options),
)


def test_excessive_overshoot() -> None:
    t, q = np.append(0.0, np.cumsum(np.tile([1.0, 1e-3], 10))), np.tile([[0.0], [1.0]], (11, 1))[:21]
    with pytest.raises(TrajectoryError, match=r"0.*overshoot"):
        through(t, q)
    assert np.ptp(through(t, q, overshoot=False).derivatives(inside(t))[0]) <= 1.0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("positions", [[0.0, 1e308, -1e308], [-1e308, 1e308], [1e308, 0.0, -1e308]])
@pytest.mark.parametrize("options", [{}, {"overshoot": False}, {"ends": "free"}, {"degree": 9}])
def test_positions_that_overflow_are_refused_without_a_warning(positions: list[float], options: dict[str, Any]) -> None:
    with pytest.raises(TrajectoryError, match="uneven"):
        through(np.arange(len(positions)), np.array(positions)[:, np.newaxis], **options)
