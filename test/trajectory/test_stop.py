# SPDX-License-Identifier: Apache-2.0
"""Stop of a motion: continuous, to rest, within limits where they can be met."""

from __future__ import annotations

import numpy as np

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.trajectory import check, rest_to_rest
from eom_dynamics.trajectory.takeover import stop

ARM = ElasticArm(load_robot("panda"))
HOME = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])
MOTION = rest_to_rest(HOME, HOME + 0.5, 2.0)


def test_it_continues_the_motion_to_rest_within_limits() -> None:
    found = stop(ARM, MOTION, 1.0)
    for value, expected in zip(found.derivatives(0.0), MOTION.derivatives(1.0), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-12)
    for rate in found.derivatives(found.end)[1:]:
        np.testing.assert_allclose(rate, 0.0, atol=1e-8)
    assert check(ARM, found, rate=1000.0).ok
    assert found.start == 0.0 and found.end < 1.0


def test_near_a_position_limit_the_violation_is_small() -> None:
    """A motion that cannot stop in time."""
    limit = ARM.robot.joints[0].limits.upper
    start = HOME.copy()
    start[0] = limit - 0.1
    away = np.eye(7)[0]
    fast = rest_to_rest(start - away, start + away, 2.5)
    found = stop(ARM, fast, 1.25)
    assert limit < found.derivatives(found.end)[0][0] < limit + 0.3
