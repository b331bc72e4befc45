# SPDX-License-Identifier: Apache-2.0
"""Joint motion next to a prediction: what was asked, or why not."""

from __future__ import annotations

import numpy as np
import pytest
from differences import deviation

from eom_dynamics import Kinematics, lie, load_robot
from eom_dynamics.kinematics.motion import ToolTracker

RATES = np.random.default_rng(2).uniform(-1, 1, (4, 6))
BENT = np.array([0.3, -1.2, 1.4, 0.3, 0.9, 0.6])


@pytest.mark.parametrize(
    ("name", "reference"), [("ur5e", "body"), ("ur5e", "world_aligned"), ("planar_2r", "world_aligned")]
)
def test_the_motion_of_the_joints_comes_back(name, reference):
    kinematics = Kinematics(load_robot(name))
    n = kinematics.robot.n
    q, rates = BENT[6 - n :], RATES[:, :n]
    C, *V = kinematics.motion(q, *rates)
    twists = V if reference == "body" else lie.world_aligned_twists(C, *V)
    found = ToolTracker(kinematics).solve(q[None] + 0.01, C[None], *[x[None] for x in twists], reference=reference)
    assert found.refusals[0] == ""
    assert deviation(found.q[0], q, floor=1.0) < 1e-12
    assert deviation(found.rates[:, 0], rates) < 1e-9


def test_a_motion_that_few_joints_cannot_make_is_refused():
    kinematics = Kinematics(load_robot("planar_2r"))
    q, still = np.array([0.3, 0.8]), np.zeros((1, 6))
    upwards = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 0.2]])
    C = kinematics.pose(q)[None]
    tracker = ToolTracker(kinematics)
    assert tracker.solve(q[None], C, still, still, reference="world_aligned").refusals[0] == ""
    for twists, reason in (
        ([upwards, still], "the joints cannot give the tool its twist: 0.2 is missing"),
        ([still, upwards], "the joints cannot give the tool its first derivative of the twist: 0.2 is missing"),
    ):
        assert tracker.solve(q[None], C, *twists, reference="world_aligned").refusals[0] == reason
