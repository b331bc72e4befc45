# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics: the poses that come back, limits, redundancy, tasks that leave something free, and refusals."""

from dataclasses import replace

import numpy as np
import pytest
from differences import deviation
from exported import robot

from eom_dynamics import KernelError, Kinematics, lie, load_robot
from eom_dynamics.kinematics import (
    POINTING,
    POSITION,
    body_poses,
    inverse_kinematics,
    planar_2r_inverse,
)
from eom_dynamics.robot.model import Limits

TOLERANCE = 1e-10
"""Of a solution, rad and m; entries of poses deviate by no more than the distance and the angle together."""


def ranges(robot):
    limits = [joint.limits for joint in robot.independent_joints]
    lower, upper = np.array([(limit.lower, limit.upper) for limit in limits]).T
    return np.where(np.isfinite(lower), lower, -np.pi), np.where(np.isfinite(upper), upper, np.pi)


def tool_poses(robot, q):
    tool = robot.tools[0]
    return body_poses(robot, q)[tool.joint] @ tool.pose


@pytest.mark.parametrize("name", ["iiwa", "panda", "ur5e"])
def test_random_reachable_poses(name):
    robot = load_robot(name)
    lower, upper = ranges(robot)
    q, start = np.random.default_rng(5).uniform(lower, upper, (2, 500, robot.n))
    targets = tool_poses(robot, q)
    found = inverse_kinematics(Kinematics(robot), targets, start=start)
    assert np.all(found.success) and np.all(found.reason == "solved")
    assert np.max(np.abs(tool_poses(robot, found.q) - targets)) < 2 * TOLERANCE
    assert np.all(found.angle <= TOLERANCE) and np.all(found.distance <= TOLERANCE)
    finite = [np.isfinite(joint.limits.upper) for joint in robot.independent_joints]
    assert np.all((found.q >= lower)[:, finite]) and np.all((found.q <= upper)[:, finite])


def test_one_target_is_one_of_many():
    robot = load_robot("panda")
    kinematics, q = Kinematics(robot), np.array([0.1, -0.5, 0.2, -1.8, 0.1, 1.9, 0.7])
    one = inverse_kinematics(kinematics, tool_poses(robot, q))
    many = inverse_kinematics(kinematics, np.repeat(tool_poses(robot, q)[np.newaxis], 3, axis=0))
    assert one.q.shape == (7,) and one.success.shape == () and many.q.shape == (3, 7)
    np.testing.assert_array_equal(many.q, [one.q] * 3)
    # From the solution itself, there is nothing to do.
    still = inverse_kinematics(kinematics, tool_poses(robot, q), start=q)
    np.testing.assert_array_equal(still.q, q)
    assert still.iterations == 0 and still.attempts == 1


def test_out_of_reach_is_said_and_the_closest_configuration_returned():
    robot = load_robot("ur5e")
    kinematics = Kinematics(robot)
    away = lie.pose(np.eye(3), [3.0, 0.0, 0.2])
    found = inverse_kinematics(kinematics, away, attempts=5, weights=POSITION)
    assert not found.success and found.reason in ("out of reach", "iterations") and found.attempts == 5
    reached = np.linalg.norm(tool_poses(robot, found.q)[:3, 3] - away[:3, 3])
    assert reached == pytest.approx(float(found.distance), rel=1e-9)
    # Stretched towards the target.
    reach = np.linalg.norm(tool_poses(robot, found.q)[:3, 3])
    towards = away[:3, 3] @ tool_poses(robot, found.q)[:3, 3] / np.linalg.norm(away[:3, 3]) / reach
    assert 0.9 < reach < 1.4 and towards > 0.99
    # The distance is flat there: SciPy's minimum from twenty starts is 2.0313075257941.
    assert found.distance == pytest.approx(2.0313075257941, rel=1e-9)


def test_without_limits_joints_go_beyond():
    robot = load_robot("panda")
    q = np.array([0.1, -0.5, 0.2, 0.5, 0.1, 1.9, 0.7])  # the elbow bends backwards
    kinematics = Kinematics(robot)
    found = inverse_kinematics(kinematics, tool_poses(robot, q), start=q, limits=False)
    assert found.success and found.q[3] == 0.5
    within = inverse_kinematics(kinematics, tool_poses(robot, q), start=q)
    assert within.q[3] <= robot.independent_joints[3].limits.upper


def test_position_and_pointing_leave_the_rest_free():
    robot = load_robot("ur5e")
    kinematics = Kinematics(robot)
    rng = np.random.default_rng(6)
    targets = tool_poses(robot, rng.uniform(-2, 2, (50, 6)))
    start = rng.uniform(-2, 2, (50, 6))
    position = inverse_kinematics(kinematics, targets, start=start, weights=POSITION)
    assert np.all(position.success)
    C = tool_poses(robot, position.q)
    assert np.max(np.abs(C[:, :3, 3] - targets[:, :3, 3])) < TOLERANCE
    assert np.min(np.max(np.abs(C[:, :3, :3] - targets[:, :3, :3]), axis=(1, 2))) > 1e-3
    pointing = inverse_kinematics(kinematics, targets, start=start, weights=POINTING)
    C = tool_poses(robot, pointing.q)
    assert np.all(pointing.success)
    assert np.max(np.abs(C[:, :3, 2:] - targets[:, :3, 2:])) < 2 * TOLERANCE
    assert np.min(np.max(np.abs(C[:, :3, 0] - targets[:, :3, 0]), axis=1)) > 1e-6


def test_objectives_of_a_redundant_arm():
    robot = load_robot("panda")
    kinematics = Kinematics(robot)
    lower, upper = ranges(robot)
    q, start = np.random.default_rng(7).uniform(lower, upper, (2, 20, 7))
    targets = tool_poses(robot, q)
    solutions = {
        name: inverse_kinematics(kinematics, targets, start=start, objective=name)
        for name in (None, "start", "central", "manipulable")
    }
    for found in solutions.values():
        assert np.all(found.success)
        assert np.max(np.abs(tool_poses(robot, found.q) - targets)) < 2 * TOLERANCE
        assert np.all(found.q >= lower) and np.all(found.q <= upper)
    on_limit = (solutions["start"].q <= lower) | (solutions["start"].q >= upper)
    values = {
        "start": lambda q: -np.sum((q - start) ** 2, axis=1),
        "central": lambda q: -np.sum(((q - 0.5 * (lower + upper)) / (upper - lower)) ** 2, axis=1),
    }
    for name, value in values.items():
        gained = value(solutions[name].q) - value(solutions[None].q)
        # Both begin at the same solution, from which the objective climbs.
        assert np.all(gained >= -1e-9) and np.median(gained) > 1e-3
    # No step in the null space of J, back to the solutions, is closer to the start.
    for at, end, limited in zip(start, solutions["start"].q, np.any(on_limit, axis=1), strict=True):
        null = np.linalg.svd(kinematics.jacobian(end))[2][-1]
        assert limited or abs(null @ (at - end)) < 1e-5
    # Of a task with lengths in units of the robot's size; here only its singular values' product is compared.
    climbed = kinematics.manipulability(solutions["manipulable"].q) - kinematics.manipulability(solutions[None].q)
    assert np.all(climbed >= -1e-9) and np.median(climbed) > 1e-3


def test_several_tools_at_once():
    robot = load_robot("dual_arm")
    kinematics = Kinematics(robot)
    names = [tool.name for tool in robot.tools]
    assert len(names) == 2
    rng = np.random.default_rng(8)
    q, start = rng.uniform(*ranges(robot), (2, 20, robot.n))
    targets = np.stack([kinematics.pose(q, frame=name) for name in names], axis=1)
    for weights in (POSITION, np.ones(6)):
        found = inverse_kinematics(kinematics, targets, start=start, frame=names, weights=weights)
        assert np.all(found.success)
        for k, name in enumerate(names):
            reached = kinematics.pose(found.q, frame=name)
            assert np.max(np.abs(reached - targets[:, k])[:, :3, 3 * (weights is POSITION) :]) < 2 * TOLERANCE


@pytest.fixture(scope="module")
def ur5e():
    return Kinematics(load_robot("ur5e"))


def test_of_whole_turns_it_is_the_one_nearest_to_the_start(ur5e):
    """The joints of the UR5e turn twice; from the middle of their ranges, and from far away."""
    rng = np.random.default_rng(8)
    for start in (np.zeros(6), rng.uniform(-6, 6, 6)):
        targets = tool_poses(ur5e.robot, rng.uniform(-np.pi, np.pi, (200, 6)))
        found = inverse_kinematics(ur5e, targets, start=np.tile(start, (200, 1)))
        assert np.all(found.success)
        lower, upper = ranges(ur5e.robot)
        for turn in (-2 * np.pi, 2 * np.pi):
            other = found.q + turn
            within = (other >= lower) & (other <= upper)
            nearer = np.abs(other - start) < np.abs(found.q - start) - 1e-12
            assert not np.any(within & nearer)


GOOD = lie.pose(np.eye(3), [0.4, 0.2, 0.3])


def test_mimic_joints_keep_to_their_ranges():
    scissors = robot("scissors")  # second = 0.2 - 0.7 first
    narrow = [replace(x, limits=Limits(-0.5, 0.5)) if x.name == "second" else x for x in scissors.joints]
    kinematics = Kinematics(replace(scissors, joints=tuple(narrow)))
    reachable, beyond = (kinematics.pose([0.1, angle], "first") for angle in (0.3, 1.4))
    assert inverse_kinematics(kinematics, reachable, "first").success
    found = inverse_kinematics(kinematics, beyond, "first")
    assert not found.success and -3 / 7 - 1e-12 <= found.q[1] <= 1 + 1e-12


def test_without_a_compiler_it_says_so():
    with pytest.raises(KernelError, match="inverse kinematics requires the native backend"):
        inverse_kinematics(Kinematics(load_robot("ur5e"), backend="numpy"), GOOD)


# --- Planar arm ---------------------------------------------------------------------


@pytest.mark.parametrize("target", [(0.8, 0.3), (-0.5, 0.9), (0.0, -0.6), (1.5, 0.0), (0.0, 0.5)])
def test_both_branches_of_the_planar_arm(target):
    right, left = planar_2r_inverse((1.0, 0.5), target)
    for angles in (right, left):
        first, second = angles[0], angles.sum()
        reached = np.array([np.cos(first), np.sin(first)]) + 0.5 * np.array([np.cos(second), np.sin(second)])
        assert deviation(reached, target, floor=1.0) < 1e-15
    assert right[1] >= 0 >= left[1]


@pytest.mark.parametrize("name", ["ur5e", "planar_pr"])
@pytest.mark.parametrize("far", [1e4, 1e16, 1e155, 1e308])
def test_success_is_that_of_the_answer_returned(name, far):
    """Far from zero, whole turns are rounded, and squares overflow: either the answer is a solution, or it says no."""
    robot = load_robot(name)
    rng = np.random.default_rng(5)
    q = rng.uniform(-1.0, 1.0, (20, robot.n))
    weights = POSITION if name == "planar_pr" else np.ones(6)
    targets = np.array([tool_poses(robot, x) for x in q])
    starts = q + far * rng.choice([-1.0, 1.0], q.shape)
    for attempts in (1, 20):
        found = inverse_kinematics(
            robot, targets, start=starts, limits=False, weights=weights, attempts=attempts, tolerance=1e-7
        )
        assert np.all(np.isfinite(found.error[found.success]))
        for target, answer, distance in zip(
            targets[found.success], found.q[found.success], found.distance[found.success], strict=True
        ):
            away = np.linalg.norm(tool_poses(robot, answer)[:3, 3] - target[:3, 3])
            # Sums of angles are rounded by each route in its own way.
            rounding = 4 * robot.n * np.spacing(max(1.0, np.max(np.abs(answer))))
            assert away <= 1e-7 + rounding and abs(away - distance) <= rounding
        if name == "ur5e" and attempts == 20:
            assert found.success.all()


def test_the_reason_tells_what_is_out_of_reach():
    robot = load_robot("iiwa")
    narrow = tuple(replace(joint, limits=replace(joint.limits, lower=-0.3, upper=0.3)) for joint in robot.joints)
    kinematics = Kinematics(replace(robot, joints=narrow))
    here, beyond = (tool_poses(robot, np.full(7, angle)) for angle in (0.2, 0.6))
    far = here.copy()
    far[:3, 3] = [0.0, 3.0, 0.5]
    found = inverse_kinematics(kinematics, np.stack([here, far, beyond]), attempts=20)
    assert found.reason.tolist() == ["solved", "out of reach", "joint range"]
    assert inverse_kinematics(kinematics, beyond, attempts=20).reason == "joint range"
    assert inverse_kinematics(robot, beyond).reason == "solved"


def test_a_stretched_arm_leaves_no_choice_of_the_orientation():
    robot = load_robot("ur5e")
    far = lie.pose(np.eye(3), [3.0, 0.0, 0.2])
    pose = tool_poses(robot, inverse_kinematics(robot, far, weights=POSITION).q)
    pose[:3, 3] *= 0.999
    pose[:3, :3] = pose[:3, :3] @ lie.exp(np.array([1.0, 1.0, 1.0, 0, 0, 0]), 1.0)[:3, :3]
    assert inverse_kinematics(robot, pose, weights=POSITION).success
    assert inverse_kinematics(robot, pose, attempts=20).reason == "orientation"
