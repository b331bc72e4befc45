# SPDX-License-Identifier: Apache-2.0
"""Trajectories through waypoints: by the variational principle, and within their hull."""

import importlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import SHARED
from refusals import refusals

from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.trajectory import Spline, through
from eom_dynamics.trajectory.waypoints import check_hull, minimum_snap

SEEDS = st.integers(0, 10_000)


def waypoints(seed: int, K: int = 12, n: int = 3, spread: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    """Times with steps that differ by up to a factor ``spread``, and positions of a random walk."""
    rng = np.random.default_rng(seed)
    steps = spread ** rng.uniform(-0.5, 0.5, K)
    return np.cumsum(steps), np.cumsum(rng.normal(size=(K, n)) * steps[:, np.newaxis], axis=0)


def inside(t: np.ndarray, parts: int = 20) -> np.ndarray:
    return (t[:-1, np.newaxis] + np.diff(t)[:, np.newaxis] * (np.arange(parts) + 0.5) / parts).ravel()


def wanted(t: np.ndarray, q: np.ndarray, **given_: np.ndarray) -> Spline:
    """Minimum-snap trajectory."""
    states = np.full((5, *q.shape), np.nan)
    states[0] = q
    for k, name in ((1, "velocities"), (2, "accelerations")):
        states[k] = given_.get(name, np.nan)
    return Spline(t, minimum_snap(np.diff(t), states))


@given(seed=SEEDS, velocities=st.booleans(), accelerations=st.booleans())
def test_given_derivatives_are_met_and_no_trajectory_is_smoother(
    seed: int, velocities: bool, accelerations: bool
) -> None:
    """The first variation of the integral is zero for any admissible change."""
    t, q = waypoints(seed, K=6, n=1)
    rng = np.random.default_rng(seed)
    given_ = {}
    for name, is_given in (("velocities", velocities), ("accelerations", accelerations)):
        if is_given:
            given_[name] = rng.normal(size=q.shape)
            given_[name][rng.random(len(t)) < 0.4] = np.nan
    motion = wanted(t, q, **given_)
    np.testing.assert_array_equal(motion.states[0], q)
    change = rng.normal(size=(5, *q.shape))
    change[0] = 0.0
    for k, name in ((1, "velocities"), (2, "accelerations")):
        if name in given_:
            fixed = ~np.isnan(given_[name])
            np.testing.assert_array_equal(motion.states[k][fixed], given_[name][fixed])
            change[k][fixed] = 0.0
    nodes, weights = np.polynomial.legendre.leggauss(10)
    steps = np.diff(t)[:, np.newaxis]
    at, dt = (t[:-1, np.newaxis] + steps * (nodes + 1) / 2).ravel(), (steps * weights / 2).ravel()
    a, b = (x.derivatives(at)[4][:, 0] for x in (motion, Spline(t, change)))
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
def test_uneven_times(steps: np.ndarray, tolerance: float) -> None:
    t = np.append(0.0, np.cumsum(steps))
    motion = wanted(t, np.sin(t)[:, np.newaxis])
    middle = (t > 0.2 * t[-1]) & (t < 0.8 * t[-1])
    at = inside(t[middle], 5)
    for k, actual in enumerate(motion.derivatives(at)):
        np.testing.assert_allclose(actual[:, 0], np.sin(at + k * np.pi / 2), atol=tolerance)
    # Near natural ends, derivatives are not exact, but not larger than in the motion.
    for actual in motion.derivatives(t)[:4]:
        assert np.max(np.abs(actual)) < 1.5


def test_dense_samples_with_velocities_are_as_smooth_as_their_motion() -> None:
    t = np.linspace(0.0, 10.0, 200)
    motion = through(t, np.sin(t)[:, np.newaxis], velocities=np.cos(t)[:, np.newaxis], ends="free")
    at = inside(t[20:-20])
    for k, actual in enumerate(motion.derivatives(at)):
        np.testing.assert_allclose(actual[:, 0], np.sin(at + k * np.pi / 2), atol=1e-3)


@pytest.mark.parametrize("K", [1, 2, 3])
@pytest.mark.parametrize("ends", ["rest", "free"])
def test_up_to_three_waypoints(K: int, ends: Any) -> None:
    t, q = waypoints(5, K)
    motion = through(t, q, ends=ends)
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
def test_joints_are_monotone_between_waypoints(seed: int, spread: float, ends: Any) -> None:
    t, q = waypoints(seed, spread=spread)
    rng = np.random.default_rng(seed)
    q = np.where(rng.random(q.shape) < 0.2, np.roll(q, 1, axis=0), q)  # some equal positions
    motion = through(t, q, ends=ends)
    u = np.linspace(0, 1, 101)
    at = t[:-1, np.newaxis] + np.diff(t)[:, np.newaxis] * u
    at[:, -1] = t[1:]
    positions, rates = (x.reshape(len(t) - 1, 101, 3) for x in motion.derivatives(at.ravel(), order=1))
    change, steps = np.diff(q, axis=0)[:, np.newaxis], np.diff(t)[:, np.newaxis, np.newaxis]
    # A rate with the wrong sign is rounding, relative to its Bernstein coefficients of about ten times Δq/h.
    assert np.all(rates * np.sign(change) >= -1e-12 * np.abs(change) / steps)
    assert np.all(np.abs(rates[np.broadcast_to(change == 0, rates.shape)]) == 0)
    assert np.all(np.abs(positions - q[:-1, np.newaxis]) <= np.abs(change) * (1 + 1e-12))


def test_monotone_motion_is_the_smoothest() -> None:
    t = np.linspace(0.3, 1.2, 20)
    q = np.sin(t)[:, np.newaxis]
    np.testing.assert_array_equal(through(t, q, ends="free").states[:, 1:-1], wanted(t, q).states[:, 1:-1])


def outside(motion: Spline, parts: int = 40) -> np.ndarray:
    """Largest distance of each piece and joint from the range of its ends (K - 1, n)."""
    q = motion.states[0]
    x = motion.in_pieces(parts, 0, np.arange(len(q) - 1))[1][0]
    return np.maximum(x - np.maximum(q[:-1], q[1:]), np.minimum(q[:-1], q[1:]) - x).max(axis=0)


APPROACH = np.array([0.0, 0.2, 0.3, 0.5, 0.5, 0.3, 0.2, 0.0])[:, np.newaxis]
SPEEDS = np.array([0.0, 0.6, 0.6, 0.0, 0.0, -0.6, -0.6, 0.0])[:, np.newaxis]
STARTING = np.array([0.0, 0.0, 0.0, 0.0, -5.0, 0.0, 0.0, 0.0])[:, np.newaxis]  # acceleration after the pause


@pytest.mark.parametrize("given_", [{}, {"velocities": SPEEDS}, {"velocities": SPEEDS, "accelerations": STARTING}])
@pytest.mark.parametrize("pause", [0.1, 1.0, 2.0, 3.0, 5.0, 60.0])
def test_arm_rests_during_a_pause(pause: float, given_: Any) -> None:
    t = np.append([0.0, 0.4, 0.6, 1.0], np.array([1.0, 1.4, 1.6, 2.0]) + pause)
    motion = through(t, APPROACH, **given_)
    assert np.max(outside(motion)) <= 1e-15
    during = motion.derivatives(np.linspace(t[3], t[4], 100))
    assert np.all(during[0] == 0.5) and not np.any(during[1:])
    # As smooth as without a pause.
    alone = through(t[:4], APPROACH[:4], **{name: x[:4] for name, x in given_.items()})
    np.testing.assert_allclose(motion.states[:, :4], alone.states, rtol=1e-9, atol=1e-9)


CASES = SHARED / "cases"


@pytest.mark.skipif(
    not (CASES / "pause_with_acceleration").is_dir(), reason="needs the cases in shared next to this folder"
)
@pytest.mark.parametrize("pause", [0.3, 1.0, 5.0])
def test_sampled_trapezoids_with_a_pause(pause: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their accelerations at the pause do not match the positions."""
    monkeypatch.syspath_prepend(CASES / "pause_with_acceleration")
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    plan = importlib.import_module("over").plan
    for last in (False, True):
        t, *columns, _ = plan(pause, last_acc=last)
        q, v, a = (x[:, np.newaxis] for x in columns)
        for given_ in ({}, {"velocities": v}, {"velocities": v, "accelerations": a}):
            assert np.max(outside(through(t, q, **given_))) < 1e-12


def random_plan(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Waypoints with dwells, uneven times by a factor of up to 100, and repeated or nearly repeated positions."""
    rng = np.random.default_rng(seed)
    steps = 0.1 * 10.0 ** rng.uniform(0, 2, (rng.integers(2, 20), 1))
    moves = rng.normal(size=(len(steps), 3)) * rng.choice([0.0, 1e-6, 1.0], (len(steps), 3), p=[0.15, 0.1, 0.75])
    dwell = rng.random(len(steps)) < 0.2
    moves[dwell], steps[dwell, 0] = 0.0, rng.uniform(0.01, 10.0, dwell.sum())
    return np.append(0.0, np.cumsum(steps)), np.cumsum(np.vstack([np.zeros(3), moves]), axis=0)


@pytest.mark.parametrize("kind", ["positions", "velocities", "accelerations", "both"])
def test_random_plans_leave_the_hull_only_as_derivatives_demand(kind: str) -> None:
    """Half of the velocities point along the motion. Accelerations that agree with them demand as much."""
    for seed in range(40):
        t, q = random_plan(seed)
        rng = np.random.default_rng(seed)
        slopes = np.gradient(q, t, axis=0)
        v = (
            np.where(rng.random(q.shape) < 0.5, slopes, rng.normal(size=q.shape))
            if kind in ("velocities", "both")
            else None
        )
        a = rng.normal(size=q.shape) if kind in ("accelerations", "both") else None
        motion = through(t, q, velocities=v, accelerations=a)
        demand = 0.0 if v is None else np.diff(t)[:, np.newaxis] * np.maximum(np.abs(v[:-1]), np.abs(v[1:]))
        demand *= 2 if kind == "both" else 1
        assert np.all(outside(motion) <= demand + 1e-12 * np.ptp(q))
        assert v is None or np.array_equal(motion.states[1], v)


def test_swing_is_rejected_with_its_segment() -> None:
    states = np.zeros((5, 4, 2))
    states[2, 2, 1] = -5.0
    motion = Spline([0.0, 1.0, 2.0, 4.0], states)
    check_hull(motion, np.full((3, 2), 1.0))
    with pytest.raises(
        TrajectoryError, match=r"between waypoints 1 and 2, joint 1 leaves their range by 0\.167 rad or m"
    ):
        check_hull(motion, np.zeros((3, 2)))


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
    call=lambda times, positions, options: through(times, positions, **options),
)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("positions", [[0.0, 1e308, -1e308], [-1e308, 1e308], [1e308, 0.0, -1e308]])
@pytest.mark.parametrize("options", [{}, {"ends": "free"}])
def test_positions_that_overflow_are_refused_without_a_warning(positions: list[float], options: dict[str, Any]) -> None:
    with pytest.raises(TrajectoryError, match="uneven"):
        through(np.arange(len(positions)), np.array(positions)[:, np.newaxis], **options)
