# SPDX-License-Identifier: Apache-2.0
"""One trajectory after another, without a step in any of four derivatives."""

import numpy as np
import pytest

from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.trajectory import through
from eom_dynamics.trajectory.handover import Handover, Shifted

OLD = through([0.0, 1.0, 2.0], [[0.0, 1.0], [0.8, 0.4], [0.5, 0.0]])


def new(at, first=0.0, offset=0.0):
    """From where OLD is at a time, its first waypoint at time ``first``."""
    start = OLD.derivatives(at, 0)[0] + offset
    return through(np.array([0.0, 0.5, 1.5]) + first, np.array([start, start + 0.2, start - 0.3]))


@pytest.mark.parametrize("at", [0.3, 1.0, 1.7, 2.0, 5.0])
@pytest.mark.parametrize("first", [0.0, 0.25])
def test_it_is_the_one_before_and_the_other_after_and_smooth_between(at, first):
    target = new(at, first)
    both = Handover(OLD, target, at, at)
    assert (both.start, both.end, both.n) == (0.0, at + first + 1.5, 2)
    knot = at + (first or 0.5)
    before, after = np.linspace(0, at, 20)[:-1], np.linspace(knot, both.end + 1, 20)[1:]
    for got, wanted in zip(both.derivatives(before), OLD.derivatives(before), strict=True):
        np.testing.assert_array_equal(got, wanted)
    for got, wanted in zip(both.derivatives(after), Shifted(target, at).derivatives(after), strict=True):
        np.testing.assert_array_equal(got, wanted)
    for seam in (at, knot):
        h = 1e-10
        for k, (left, right) in enumerate(zip(both.derivatives(seam - h), both.derivatives(seam + h), strict=True)):
            # The fifth derivative, up to some 10^6 here, times 2 h; the others with room for rounding.
            np.testing.assert_allclose(left, right, rtol=0, atol=1e-3 if k == 4 else 1e-6, err_msg=f"{seam} {k}")


def test_it_forgets_what_is_over():
    both = Handover(OLD, new(1.0), 1.0, 1.0)
    assert both.from_then_on(0.9) is both
    bridge = both.from_then_on(1.2)
    for t in (1.2, 1.4, 1.5, 1.8):
        np.testing.assert_array_equal(bridge.derivatives(t), both.derivatives(t))
    later = both.from_then_on(1.5)
    assert isinstance(later, Shifted)
    np.testing.assert_array_equal(later.derivatives(1.8)[0], both.derivatives(1.8)[0])


def test_many_take_over_one_from_another():
    """More than Python calls deep: as of a planner that plans anew a hundred times a second."""
    there = through([0.0, 1e3], [OLD.derivatives(2.0, 0)[0]] * 2)
    ahead = now = OLD
    for k in range(1500):
        ahead = Handover(ahead, there, 100.0 + 1e-3 * k, 100.0 + 1e-3 * k)
        at = 2.0 + 1e-2 * k
        now = Handover(now.from_then_on(at) if isinstance(now, Handover) else now, there, at, at)
    np.testing.assert_array_equal(ahead.derivatives(0.7), OLD.derivatives(0.7))
    np.testing.assert_allclose(ahead.derivatives(200.0)[0], there.states[0, 0], rtol=0, atol=1e-12)
    # What is over is not kept: the one under way, its bridge, and the next.
    assert isinstance(now, Handover) and len(now._pieces) == 3


def test_of_those_that_begin_at_the_same_time_the_last_one_counts():
    first, last = new(1.0), through([0.0, 1.0], [OLD.derivatives(1.0, 0)[0]] * 2)
    both = Handover(Handover(OLD, first, 1.0, 1.0), last, 1.0, 1.0)
    only = Handover(OLD, last, 1.0, 1.0)
    for t in (0.5, 1.0, 1.3, 2.5):
        for got, wanted in zip(both.derivatives(t), only.derivatives(t), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-9)


def test_one_that_is_under_way_already_is_joined_at_its_next_knot():
    """Its own time 0 was at 0.2, and it is 0.3 later: joined at its knot 0.5, which is at 0.7."""
    target = through([0.0, 0.5, 1.0], [OLD.derivatives(0.5, 0)[0]] * 3)
    both = Handover(OLD, target, 0.2, 0.5)
    np.testing.assert_array_equal(both.derivatives(0.7)[0], target.derivatives(0.5)[0])
    np.testing.assert_allclose(both.derivatives(0.5)[1], OLD.derivatives(0.5)[1], rtol=0, atol=1e-14)


def test_one_that_begins_elsewhere_or_is_over_is_refused():
    with pytest.raises(TrajectoryError, match=r"^joint 0 begins 0\.02 rad or m from where it is commanded"):
        Handover(OLD, new(1.0, offset=0.02), 1.0, 1.0)
    with pytest.raises(TrajectoryError, match=r"^elbow begins 0\.02 rad or m from where it is commanded"):
        Handover(OLD, new(1.0, offset=0.02), 1.0, 1.0, ["elbow", "wrist"])
    Handover(OLD, new(1.0, offset=0.009), 1.0, 1.0)
    Handover(OLD, new(1.0, first=0.1, offset=0.5), 1.0, 1.0)  # there is time to go there
    still = through([0.0, 1.0], [OLD.derivatives(2.0, 0)[0]] * 2)
    with pytest.raises(TrajectoryError, match="it has ended before it begins"):
        Handover(OLD, still, 2.0, 3.5)
