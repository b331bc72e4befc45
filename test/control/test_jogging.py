# SPDX-License-Identifier: Apache-2.0
"""Jogging of a tool: its path beside the integral of the twist, limits, singularities, and arms of few joints."""

from functools import cache

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.control.jogging import Jogging
from eom_dynamics.control.online_trajectory import motion_limits
from eom_dynamics.kinematics import body_poses
from eom_dynamics.kinematics.compiled import kinematics_of
from eom_dynamics.kinematics.motion import ToolTracker

STEP = 0.01
BENT = {"panda": np.array([0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5]), "ur5e": np.array([0.3, -1.2, 1.4, 0.3, 0.9, 0.6])}


arm_of = cache(lambda name: eom.ElasticArm(eom.load_robot(name)))


def jogged(name: str, q: np.ndarray, twist: np.ndarray, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Targets and rates (N, n) of a twist that ends after some seconds, until rest."""
    limits, robot = motion_limits(arm_of(name), {"velocity": 2.0, "acceleration": 5.0}), arm_of(name).robot
    jogging = Jogging(ToolTracker(kinematics_of(robot)), limits, q, np.zeros(robot.n))
    rows = []
    for k in range(int(20 * seconds / STEP)):
        jogging.advance(twist if k * STEP < seconds else np.zeros(6), STEP if k else 0.0, STEP)
        rows.append((jogging.q, jogging.qd))
        if k * STEP > seconds and not jogging.qd.any():
            break
    return np.array(rows)[:, 0], np.array(rows)[:, 1]


@pytest.mark.parametrize("name", BENT)
@pytest.mark.parametrize("axis", range(6))
def test_the_tool_moves_along_its_twist_and_turns_about_it_alone(name: str, axis: int) -> None:
    twist = -0.1 * np.eye(6)[axis]
    q, _ = jogged(name, BENT[name], twist, 1.0)
    robot = eom.load_robot(name)
    frame = robot.tools[0]
    start, end = (body_poses(robot, x)[frame.joint] @ frame.pose for x in (q[0], q[-1]))
    turned = eom.lie.rotation_vector(end[:3, :3] @ start[:3, :3].T)
    moved = np.concatenate([turned, end[:3, 3] - start[:3, 3]])
    # What steps of the midpoint rule leave.
    assert np.delete(moved, axis) == pytest.approx(np.zeros(5), abs=3e-7)
    assert -moved[axis] == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("name", BENT)
@pytest.mark.parametrize("linear", [(0, 0, 0.5), (0.5, 0, 0), (-0.5, 0, 0), (0, 0.5, 0.5)])
def test_singularities_and_the_ends_of_ranges_stop_the_tool_within_limits(name: str, linear: tuple[float, ...]) -> None:
    q, qd = jogged(name, BENT[name], np.array([0, 0, 0, *linear]), 5.0)
    joints = eom.load_robot(name).independent_joints
    assert np.all(q >= [x.limits.lower for x in joints]) and np.all(q <= [x.limits.upper for x in joints])
    # Targets move on at their rates, which change by half of the acceleration limit.
    assert np.abs(qd).max() <= 2.0 and np.abs(np.diff(qd, axis=0)).max() <= 0.5 * 5.0 * STEP + 1e-12
    assert np.diff(q, axis=0) == pytest.approx(STEP * qd[:-1], abs=1e-12)  # at the ends of their ranges, too
    assert not qd[-1].any()


def test_joints_that_cannot_give_the_twist_say_so() -> None:
    robot = eom.load_robot("sea_planar_2r")
    limits = motion_limits(eom.ElasticArm(robot), {"velocity": 2.0, "acceleration": 5.0})
    jogging = Jogging(ToolTracker(kinematics_of(robot)), limits, np.array([0.3, 0.5]), np.zeros(2))
    with pytest.raises(eom.StateError, match="cannot give the tool its twist"):
        jogging.require(np.array([0, 0, 0, 0.1, 0, 0]))
