# SPDX-License-Identifier: Apache-2.0
"""Replacement and stop of trajectories: without steps in four derivatives, within limits where they can be met."""

import numpy as np
import pytest

from eom_dynamics import ElasticArm, TrajectoryError, load_robot
from eom_dynamics.trajectory import check, rest_to_rest, through
from eom_dynamics.trajectory.takeover import Handover, Shifted, stop, take_over

OLD = through([0.0, 1.0, 2.0], [[0.0, 1.0], [0.8, 0.4], [0.5, 0.0]])


def new(at, first=0.0, offset=0.0):
    """A trajectory from the position of OLD at a time, with its first waypoint at time ``first``."""
    start = OLD.derivatives(at, 0)[0] + offset
    return through(np.array([0.0, 0.5, 1.5]) + first, np.array([start, start + 0.2, start - 0.3]))


def assert_smooth(motion, seams, rounding, of_snap):
    """The snap may change by 2e-10 s times the fifth derivative."""
    for seam in seams:
        sides = (motion.derivatives(seam + side * 1e-10) for side in (-1, 1))
        for k, (left, right) in enumerate(zip(*sides, strict=True)):
            np.testing.assert_allclose(left, right, rtol=0, atol=of_snap if k == 4 else rounding, err_msg=f"{seam} {k}")


def assert_same(motion, other, t):
    for actual, expected in zip(motion.derivatives(t), other.derivatives(t), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(("at", "first"), [(0.3, 0.0), (1.0, 0.25), (1.7, 0.0), (2.0, 0.25), (5.0, 0.0)])
def test_old_and_new_trajectory_with_a_smooth_transition(at, first):
    target = new(at, first)
    both = Handover(OLD, target, at, at)
    assert (both.start, both.end, both.n) == (0.0, at + first + 1.5, 2)
    knot = at + (first or 0.5)
    assert_same(both, OLD, np.linspace(0, at, 20)[:-1])
    assert_same(both, Shifted(target, at), np.linspace(knot, both.end + 1, 20)[1:])
    assert_smooth(both, (at, knot), 1e-6, 1e-3)


def test_trajectory_that_has_already_started_is_joined_at_its_next_knot():
    """It started at 0.2; at 0.5, its next knot is that at its time 0.5, which is 0.7."""
    target = through([0.0, 0.5, 1.0], [OLD.derivatives(0.5, 0)[0]] * 3)
    both = Handover(OLD, target, 0.2, 0.5)
    np.testing.assert_array_equal(both.derivatives(0.7)[0], target.derivatives(0.5)[0])
    np.testing.assert_allclose(both.derivatives(0.5)[1], OLD.derivatives(0.5)[1], rtol=0, atol=1e-14)


def test_pieces_that_have_ended_are_dropped():
    both = Handover(OLD, new(1.0), 1.0, 1.0)
    assert both.from_then_on(0.9) is both
    bridge = both.from_then_on(1.2)
    assert_same(bridge, both, [1.2, 1.4, 1.5, 1.8])
    later = both.from_then_on(1.5)
    assert isinstance(later, Shifted)
    np.testing.assert_array_equal(later.derivatives(1.8)[0], both.derivatives(1.8)[0])


def test_many_replacements():
    """More than the depth of Python's stack, as from a planner that replans at 100 Hz."""
    there = through([0.0, 1e3], [OLD.derivatives(2.0, 0)[0]] * 2)
    ahead = now = OLD
    for k in range(1100):
        ahead = Handover(ahead, there, 100.0 + 1e-3 * k, 100.0 + 1e-3 * k)
    for k in range(50):
        at = 2.0 + 1e-2 * k
        now = Handover(now.from_then_on(at) if isinstance(now, Handover) else now, there, at, at)
    np.testing.assert_array_equal(ahead.derivatives(0.7), OLD.derivatives(0.7))
    np.testing.assert_allclose(ahead.derivatives(200.0)[0], there.states[0, 0], rtol=0, atol=1e-12)
    # Only the present trajectory, the transition and the next one remain.
    assert isinstance(now, Handover) and len(now._pieces) == 3


def test_last_of_two_with_the_same_start_wins():
    first, last = new(1.0), through([0.0, 1.0], [OLD.derivatives(1.0, 0)[0]] * 2)
    both = Handover(Handover(OLD, first, 1.0, 1.0), last, 1.0, 1.0)
    only = Handover(OLD, last, 1.0, 1.0)
    for t in (0.5, 1.0, 1.3, 2.5):
        for got, wanted in zip(both.derivatives(t), only.derivatives(t), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-9)


def test_errors():
    for names, name in (((), "joint 0"), (("elbow", "wrist"), "elbow")):
        with pytest.raises(TrajectoryError, match=rf"^{name} starts 0\.02 rad or m from its commanded position"):
            Handover(OLD, new(1.0, offset=0.02), 1.0, 1.0, names)
    Handover(OLD, new(1.0, offset=0.009), 1.0, 1.0)
    Handover(OLD, new(1.0, offset=0.02), 1.0, 1.0, latency=0.1)  # at 0.5 and 0.9 rad/s, by which its start is behind
    Handover(OLD, new(1.0, first=0.1, offset=0.5), 1.0, 1.0, period=0.09)  # enough time for the distance
    with pytest.raises(TrajectoryError, match="from its commanded position"):
        Handover(OLD, new(1.0, first=0.1, offset=0.5), 1.0, 1.0, period=0.11)
    still = through([0.0, 1.0], [OLD.derivatives(2.0, 0)[0]] * 2)
    with pytest.raises(TrajectoryError, match="the trajectory ends before it starts"):
        Handover(OLD, still, 2.0, 3.5)


ARM = ElasticArm(load_robot("panda"))
HOME = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])
MOTION = rest_to_rest(HOME, HOME + 0.5, 2.0)


def test_a_transition_within_limits_ends_at_the_next_knot() -> None:
    new = rest_to_rest(MOTION.derivatives(1.0, 0)[0], HOME, 1.5)
    both, verdict = take_over(ARM, MOTION, new, 1.0, 1.0)
    assert verdict.ok and both.transition.end == 2.5
    assert_same(both, Handover(MOTION, new, 1.0, 1.0), 1.7)


@pytest.mark.parametrize(("late", "left"), [(-0.012, 0.001), (0.012, 0.084)])
def test_one_that_was_planned_from_another_time_makes_no_step(late: float, left: float) -> None:
    """A stop of a motion that began a little later or earlier than its planner assumed, shortly before it begins."""
    new = stop(ARM, MOTION, 1.0)
    played = Shifted(MOTION, late)
    at = 1.0 - left
    assert not check(ARM, Handover(played, new, 1.0, at).transition, rate=1e4).ok
    both, verdict = take_over(ARM, played, new, 1.0, at)
    assert verdict.ok
    t = np.linspace(at, both.end, 2000)
    effort_rate = ARM.dynamics.inverse_dynamics(*both.derivatives(t))[1]
    # The limits of the robot's file; that of the first joint's acceleration is the highest.
    assert np.max(np.abs(both.derivatives(t)[2])) < 15.0 and np.max(np.abs(effort_rate)) < 1000.0
    np.testing.assert_array_equal(both.derivatives(both.end)[0], new.derivatives(new.end)[0])
    assert_smooth(both, (at, both.transition.end), 1e-5, 0.05)


def test_one_that_is_far_away_takes_no_other_time_than_its_own() -> None:
    """Its first knot is to be met; 0.3 rad in 50 ms are not, and the verdict says so."""
    new = rest_to_rest(HOME + 0.8, HOME, 1.5, start_time=0.05)
    both, verdict = take_over(ARM, MOTION, new, 3.0, 3.0)
    assert not verdict.ok and both.transition.end == pytest.approx(3.05, abs=1e-12)


def test_it_continues_the_motion_to_rest_within_limits() -> None:
    found = stop(ARM, MOTION, 1.0)
    for value, expected in zip(found.derivatives(0.0), MOTION.derivatives(1.0), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-12)
    for rate in found.derivatives(found.end)[1:]:
        np.testing.assert_allclose(rate, 0.0, atol=1e-8)
    assert check(ARM, found, rate=1000.0).ok
    assert found.start == 0.0 and found.end < 1.0


def test_near_a_position_limit_the_violation_is_small() -> None:
    limit = ARM.robot.joints[0].limits.upper
    start = HOME.copy()
    start[0] = limit - 0.1
    away = np.eye(7)[0]
    fast = rest_to_rest(start - away, start + away, 2.5)
    found = stop(ARM, fast, 1.25)
    assert limit < found.derivatives(found.end)[0][0] < limit + 0.3
