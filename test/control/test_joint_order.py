# SPDX-License-Identifier: Apache-2.0
"""Names of joints and motors in messages, matched with those of the robot."""

from array import array
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusals

import eom_dynamics as eom
from eom_dynamics import StateError
from eom_dynamics.control.joint_order import JointOrder, places, read_motors
from eom_dynamics.control.setpoint_to_command import SetpointEvaluator

NAMES = ["a", "b", "c"]


@given(st.integers(1, 9).flatmap(lambda n: st.permutations(range(n))))
def test_order_takes_values_by_name(order):
    robot = [f"joint {i}" for i in range(len(order))]
    names = [robot[i] for i in order]
    order = JointOrder(robot, names)
    values = np.array([[100.0 * row + robot.index(name) for name in names] for row in range(2)])
    wanted = np.array([[100.0 * row + i for i in range(len(robot))] for row in range(2)])
    np.testing.assert_array_equal(order.to_robot(values), wanted)
    np.testing.assert_array_equal(order.to_message(wanted), values)
    assert order.names == list(names)


def test_orders_of_a_stream_do_not_depend_on_what_came_before():
    """Nor on names that were refused."""
    evaluator = SetpointEvaluator(eom.ElasticArm(eom.load_robot("planar_2r")))
    own, reverse = ["joint_1", "joint_2"], ["joint_2", "joint_1"]
    for names in ([], reverse, reverse, own, [], reverse):
        order, fresh = evaluator.order_of(SimpleNamespace(joint_names=names)), JointOrder(own, names)
        assert order.names == order.motor_names == fresh.names
        np.testing.assert_array_equal(order.to_robot(np.arange(2.0)), fresh.to_robot(np.arange(2.0)))
        with pytest.raises(StateError, match="no joint 'x'"):
            evaluator.order_of(SimpleNamespace(joint_names=["joint_1", "x"]))


test_names_that_are_not_the_robots_are_refused = refusals(
    StateError,
    (["a", "b", "x"], r"joint_names\[2\]: the robot has no joint 'x'; it has a, b, c$"),
    (["a", "b", "c", "x"], r"joint_names\[3\]: the robot has no joint 'x'; it has a, b, c$"),
    (["b"], "joint_names: joint 'a', 'c' missing; list each joint once$"),
    (["a", "b", "c", "a"], r"joint_names\[3\]: joint 'a' is listed twice$"),
    (["A", "b", "c"], r"joint_names\[0\]: the robot has no joint 'A'; it has a, b, c$"),
    (["a", "b", "x" * 10_000], r"no joint 'x{57}\.\.\.'; "),
    (["a", "b", "x\ny"], r"no joint 'x\\ny'; "),
    call=lambda names: JointOrder(NAMES, names),
)


def test_where_others_are_allowed_only_the_robots_names_count():
    given_names = ["finger", "c", "finger", "a"]
    found = places(["a", "c"], given_names, field="name", kind="joint", others=True)
    np.testing.assert_array_equal(found, [3, 1])
    for names, reason in (
        ("ab", "name: joint 'c' missing; name has 'a', 'b'"),
        ("", "name: joint 'a', 'c' missing; list each joint once"),
        ("abca", r"name\[3\]: joint 'a' is listed twice"),
    ):
        with pytest.raises(StateError, match=f"^{reason}$"):
            places(["a", "c"], list(names), field="name", kind="joint", others=True)


PAIR = (["a", "b_agonist", "b_antagonist", "c"], np.array([0, 1, 1, 2]))


@pytest.mark.parametrize(
    ("names", "motors"),
    [
        ([], ["a", "b_agonist", "b_antagonist", "c"]),
        (["c", "b", "a"], ["c", "b_agonist", "b_antagonist", "a"]),
        (["b", "c", "a"], ["b_agonist", "b_antagonist", "c", "a"]),
    ],
)
def test_motors_follow_the_order_of_their_joints(names, motors):
    order = JointOrder(NAMES, names, PAIR)
    assert order.motor_names == motors
    values = np.arange(8.0).reshape(2, 4)
    wanted = np.stack([values[:, PAIR[0].index(name)] for name in motors], axis=1)
    np.testing.assert_array_equal(order.motors_to_message(values), wanted)


COMMAND = {"position": array("d", [1.0, 2.0, 3.0]), "velocity": array("d"), "effort": array("d", [4.0, 5.0, 6.0])}


@pytest.mark.parametrize(("names", "order"), [([], [0, 1, 2]), (list(NAMES), [0, 1, 2]), (["c", "a", "b"], [1, 2, 0])])
def test_commands_of_motors_come_in_the_order_of_the_robot(names, order):
    position, velocity, effort = read_motors(NAMES, "name", names, **COMMAND)
    np.testing.assert_array_equal(position, np.array([1.0, 2.0, 3.0])[order])
    np.testing.assert_array_equal(velocity, np.zeros(3))
    np.testing.assert_array_equal(effort, np.array([4.0, 5.0, 6.0])[order])


test_a_bad_command_is_refused = refusals(
    StateError,
    (["a", "b", "x"], {}, r"name\[2\]: the robot has no motor 'x'; it has a, b, c"),
    (["a", "b", "b"], {}, r"name\[2\]: motor 'b' is listed twice"),
    (["a", "b"], {}, "name: motor 'c' missing; list each motor once"),
    ([], {"position": array("d")}, "position has 0 entries, must have 3"),
    ([], {"effort": array("d", [1.0] * 4)}, "effort has 4 entries, must have 3 or none"),
    (["c", "b", "a"], {"effort": array("d", [np.nan, 0, 0])}, "effort of motor 'c' is nan"),
    ([], {"velocity": array("d", [0, -np.inf, 0])}, "velocity of motor 'b' is -inf"),
    call=lambda names, values: read_motors(NAMES, "name", names, **COMMAND | values),
)
