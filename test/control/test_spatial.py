# SPDX-License-Identifier: Apache-2.0
"""Poses, twists and wrenches of messages as arrays, and back; bad ones by name."""

from types import SimpleNamespace

import numpy as np
import pytest
from differences import deviation
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


BAD = [
    ("pose.orientation.w", 3.0, "the orientation of pose must be a quaternion of length 1, has 3"),
    ("pose.position.y", np.nan, r"pose must be finite, is \[0\.\d+, nan,"),
    ("pose.orientation.x", np.inf, r"pose must be finite, is .*inf"),
    ("twist.linear.z", np.nan, "^twist.linear.z is nan"),
    ("twist.angular.x", -np.inf, "^twist.angular.x is -inf"),
]


@pytest.mark.parametrize(("path", "value", "text"), BAD, ids=[row[-1] for row in BAD])
def test_bad_numbers_are_refused_by_name(path, value, text):
    message = part = moving_pose()
    *parents, name = path.split(".")
    for parent in parents:
        part = getattr(part, parent)
    setattr(part, name, value)
    with pytest.raises(StateError, match=text):
        read(message)


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


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_wrenches_of_a_batch_are_given_once_or_for_each_sample(robot):
    values = np.random.default_rng(1).normal(size=(5, *robot.wrench_shape))
    once, each, rest = read_wrenches(wrenches(wrench=values[0], wrench_rate=values), WRENCH_FIELDS, robot, 5)
    np.testing.assert_array_equal(once, values[0])
    np.testing.assert_array_equal(each, values)
    np.testing.assert_array_equal(rest, np.zeros(robot.wrench_shape))


@pytest.mark.parametrize("field", WRENCH_FIELDS)
@pytest.mark.parametrize(
    ("robot", "number", "count", "allowed"),
    [
        (ONE_TOOL, 2, 1, "1 (one for each tool) or none"),
        (TWO_TOOLS, 1, 1, "2 (one for each tool) or none"),
        (TWO_TOOLS, 3, 4, "2 (one for each tool), 8 (for each tool of each sample) or none"),
    ],
)
def test_another_number_of_wrenches_is_refused(field, robot, number, count, allowed):
    with pytest.raises(StateError) as caught:
        read_wrenches(wrenches(**{field: np.zeros((number, 6))}), WRENCH_FIELDS, robot, count)
    assert str(caught.value) == f"{field} has {number} entries, must have {allowed}"


@pytest.mark.parametrize(
    ("robot", "count", "place", "name"),
    [
        (ONE_TOOL, 1, 3, "[0].force.x"),
        (ONE_TOOL, 1, 2, "[0].torque.z"),
        (TWO_TOOLS, 1, 10, "[1].force.y (tool 'right_hand')"),
        (ONE_TOOL, 3, 17, "[2].force.z (sample 2)"),
        (TWO_TOOLS, 3, 24, "[4].torque.x (sample 2, tool 'left_hand')"),
    ],
)
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_number_that_is_not_finite_is_named(robot, count, place, name, value):
    values = np.zeros(6 * len(robot.tools) * count)
    values[place] = value
    with pytest.raises(StateError) as caught:
        read_wrenches(wrenches(wrench_rate=values), WRENCH_FIELDS, robot, count)
    assert str(caught.value) == f"wrench_rate{name} is {value}"


def test_messages_of_ros_2_are_read_as_written():
    pytest.importorskip("geometry_msgs")
    values = np.random.default_rng(1).normal(size=(2, 6))
    first, second = wrench_messages(values)
    assert [second.force.x, second.torque.z] == [values[1, 3], values[1, 2]]
    (found,) = read_wrenches(SimpleNamespace(wrench=[first, second]), ("wrench",), TWO_TOOLS)
    np.testing.assert_array_equal(found, values)
