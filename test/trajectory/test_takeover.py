# SPDX-License-Identifier: Apache-2.0
"""Replacement of trajectories: the transition meets the limits of the arm, where it can."""

from __future__ import annotations

import numpy as np
import pytest

from eom_dynamics import ElasticArm, TrajectoryError, load_robot
from eom_dynamics.trajectory import check, rest_to_rest
from eom_dynamics.trajectory.takeover import Handover, Shifted, stop, take_over

ARM = ElasticArm(load_robot("panda"))
HOME = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])
MOTION = rest_to_rest(HOME, HOME + 0.5, 2.0)


def test_a_transition_within_limits_ends_at_the_next_knot() -> None:
    new = rest_to_rest(MOTION.derivatives(1.0, 0)[0], HOME, 1.5)
    both, verdict = take_over(ARM, MOTION, new, 1.0, 1.0)
    assert verdict.ok and both.transition.end == 2.5
    for got, wanted in zip(both.derivatives(1.7), Handover(MOTION, new, 1.0, 1.0).derivatives(1.7), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("late", [-0.012, 0.012])
@pytest.mark.parametrize("left", [0.001, 0.013, 0.084])
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
    for seam in (at, both.transition.end):
        for k, (left_of, right_of) in enumerate(
            zip(both.derivatives(seam - 1e-10), both.derivatives(seam + 1e-10), strict=True)
        ):
            # For the snap, 2e-10 s times the fifth derivative, up to 1e8 in a transition of 50 ms.
            np.testing.assert_allclose(left_of, right_of, rtol=0, atol=0.05 if k == 4 else 1e-5, err_msg=f"{k}")


def test_one_that_is_far_away_takes_no_other_time_than_its_own() -> None:
    """Its first knot is to be met; 0.3 rad in 50 ms are not, and the verdict says so."""
    new = rest_to_rest(HOME + 0.8, HOME, 1.5, start_time=0.05)
    both, verdict = take_over(ARM, MOTION, new, 3.0, 3.0)
    assert not verdict.ok and both.transition.end == pytest.approx(3.05, abs=1e-12)


def test_what_starts_at_once_must_start_close() -> None:
    with pytest.raises(TrajectoryError, match=r"^fer_joint1 starts 0\.3 rad or m from its commanded position"):
        take_over(ARM, MOTION, rest_to_rest(HOME + 0.8, HOME, 1.5), 3.0, 3.0)
