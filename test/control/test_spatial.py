# SPDX-License-Identifier: Apache-2.0
"""Poses, twists and wrenches of messages as arrays, and back; bad ones by name."""

from types import SimpleNamespace

import numpy as np
import pytest
from differences import deviation
from refusals import refusals
from tool_messages import orientation, twist, vector

import eom_dynamics as eom
from eom_dynamics import StateError, lie
from eom_dynamics.control.fields import WRENCH_FIELDS
from eom_dynamics.control.spatial import read_pose, read_twist, read_wrenches, wrench_messages

C = lie.exp([0.3, -0.8, 0.5, 0.4, 0.2, -0.6])
TWIST = np.random.default_rng(1).uniform(-1, 1, 6)


def moving_pose():
    """A message with pose and twist."""
    return SimpleNamespace(
        pose=SimpleNamespace(position=vector(C[:3, 3]), orientation=orientation(C)), twist=twist(TWIST)
    )


def read(message):
    return (read_pose(message.pose.position, message.pose.orientation, "pose"), read_twist(message.twist, "twist"))


def test_a_pose_whose_quaternion_is_nearly_of_unit_length_and_a_twist():
    message = moving_pose()
    pose, found = read(message)
    assert deviation(pose, C, floor=1.0) < 1e-15
    np.testing.assert_array_equal(found, TWIST)
    for name in "xyzw":
        setattr(message.pose.orientation, name, 1.0005 * getattr(message.pose.orientation, name))
    assert deviation(read(message)[0], C, floor=1.0) < 1e-15


def read_with(path, value):
    message = part = moving_pose()
    *parents, name = path.split(".")
    for parent in parents:
        part = getattr(part, parent)
    setattr(part, name, value)
    read(message)


test_bad_numbers_are_refused_by_name = refusals(
    StateError,
    ("pose.orientation.w", 3.0, "the orientation of pose must be a quaternion of length 1, has 3"),
    ("pose.position.y", np.nan, r"pose must be finite, is \[0\.\d+, nan,"),
    ("pose.orientation.x", np.inf, r"pose must be finite, is .*inf"),
    ("twist.linear.z", np.nan, "^twist.linear.z is nan"),
    ("twist.angular.x", -np.inf, "^twist.angular.x is -inf"),
    call=read_with,
)


# --- Wrenches ---------------------------------------------------------------------------

ROBOTS = {"one tool": eom.load_robot("planar_2r"), "two tools": eom.load_robot("dual_arm")}
ONE_TOOL, TWO_TOOLS = ROBOTS.values()


def wrenches(**fields):
    """A message whose fields have wrenches (…, 6), moment first."""
    lists = dict.fromkeys(WRENCH_FIELDS, ())
    for field, values in fields.items():
        rows = np.asarray(values, dtype=float).reshape(-1, 6)
        lists[field] = [SimpleNamespace(torque=vector(row[:3]), force=vector(row[3:])) for row in rows]
    return SimpleNamespace(**lists)


@pytest.mark.parametrize("given", [(), (0,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_the_moment_comes_first_and_an_empty_field_is_zero(robot, given):
    values = np.random.default_rng(1).normal(size=(3, *robot.wrench_shape))
    found = read_wrenches(wrenches(**{WRENCH_FIELDS[i]: values[i] for i in given}), WRENCH_FIELDS, robot)
    wanted = [values[i] if i in given else np.zeros(robot.wrench_shape) for i in range(3)]
    np.testing.assert_array_equal(found, wanted if given else np.zeros(0))


def test_wrenches_of_a_batch_are_given_once_or_for_each_sample():
    robot = TWO_TOOLS
    values = np.random.default_rng(1).normal(size=(5, *robot.wrench_shape))
    once, each, rest = read_wrenches(wrenches(wrench=values[0], wrench_rate=values), WRENCH_FIELDS, robot, 5)
    np.testing.assert_array_equal(once, values[0])
    np.testing.assert_array_equal(each, values)
    np.testing.assert_array_equal(rest, np.zeros(robot.wrench_shape))


def read_row(row, robot, count):
    """Read as wrench_rate zeros but a number that is not finite, at a place, or a number of wrenches."""
    number, place, value = row
    values = np.zeros(6 * number)
    values[place] = value
    read_wrenches(wrenches(wrench_rate=values), WRENCH_FIELDS, robot, count)


test_wrenches_that_cannot_be_used_are_refused = refusals(
    StateError,
    ((2, 0, 0.0), ONE_TOOL, 1, r"^wrench_rate has 2 entries, must have 1 \(one for each tool\) or none$"),
    ((1, 0, 0.0), TWO_TOOLS, 1, r"^wrench_rate has 1 entries, must have 2 \(one for each tool\) or none$"),
    ((3, 0, 0.0), TWO_TOOLS, 4, r"must have 2 \(one for each tool\), 8 \(for each tool of each sample\) or none$"),
    ((1, 3, np.nan), ONE_TOOL, 1, r"^wrench_rate\[0\].force.x is nan$"),
    ((1, 2, -np.inf), ONE_TOOL, 1, r"^wrench_rate\[0\].torque.z is -inf$"),
    ((2, 10, np.nan), TWO_TOOLS, 1, r"^wrench_rate\[1\].force.y \(tool 'right_hand'\) is nan$"),
    ((3, 17, np.nan), ONE_TOOL, 3, r"^wrench_rate\[2\].force.z \(sample 2\) is nan$"),
    ((6, 24, np.nan), TWO_TOOLS, 3, r"^wrench_rate\[4\].torque.x \(sample 2, tool 'left_hand'\) is nan$"),
    call=read_row,
)


def test_messages_of_ros_2_are_read_as_written():
    pytest.importorskip("geometry_msgs")
    values = np.random.default_rng(1).normal(size=(2, 6))
    first, second = wrench_messages(values)
    assert [second.force.x, second.torque.z] == [values[1, 3], values[1, 2]]
    (found,) = read_wrenches(SimpleNamespace(wrench=[first, second]), ("wrench",), TWO_TOOLS)
    np.testing.assert_array_equal(found, values)
