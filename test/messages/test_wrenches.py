# SPDX-License-Identifier: Apache-2.0
"""Wrenches of messages as arrays, and back."""

from types import SimpleNamespace

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.messages.fields import WRENCH_FIELDS
from eom_dynamics.messages.spatial import read_wrenches, wrench_messages

ONE_TOOL, TWO_TOOLS = eom.load_robot("planar_2r"), eom.load_robot("dual_arm")


def vector(x, y, z):
    return SimpleNamespace(x=x, y=y, z=z)


def entries(values):
    """Like the list of geometry_msgs/Wrench that holds wrenches (…, 6), moment first."""
    rows = np.asarray(values, dtype=float).reshape(-1, 6).tolist()
    return [SimpleNamespace(torque=vector(*row[:3]), force=vector(*row[3:])) for row in rows]


def message(**fields):
    return SimpleNamespace(
        **({field: [] for field in WRENCH_FIELDS} | {name: entries(x) for name, x in fields.items()})
    )


@pytest.mark.parametrize("given", [(), (0,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("robot", [ONE_TOOL, TWO_TOOLS], ids=["one tool", "two tools"])
def test_the_moment_comes_first_and_an_empty_field_is_zero(robot, given):
    values = np.random.default_rng(1).normal(size=(3, *robot.wrench_shape))
    found = read_wrenches(message(**{WRENCH_FIELDS[i]: values[i] for i in given}), WRENCH_FIELDS, robot)
    if given:
        wanted = [values[i] if i in given else np.zeros(robot.wrench_shape) for i in range(3)]
        np.testing.assert_array_equal(found, wanted)
    else:
        assert found == ()


@pytest.mark.parametrize("robot", [ONE_TOOL, TWO_TOOLS], ids=["one tool", "two tools"])
def test_wrenches_of_a_batch_are_given_once_or_for_each_sample(robot):
    values = np.random.default_rng(1).normal(size=(5, *robot.wrench_shape))
    once, each, rest = read_wrenches(message(wrench=values[0], wrench_rate=values), WRENCH_FIELDS, robot, 5)
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
    with pytest.raises(eom.StateError) as caught:
        read_wrenches(message(**{field: np.zeros((number, 6))}), WRENCH_FIELDS, robot, count)
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
    with pytest.raises(eom.StateError) as caught:
        read_wrenches(message(wrench_rate=values), WRENCH_FIELDS, robot, count)
    assert str(caught.value) == f"wrench_rate{name} is {value}"


def test_messages_of_ros_2_are_read_as_written():
    pytest.importorskip("geometry_msgs")
    values = np.random.default_rng(1).normal(size=(2, 6))
    first, second = wrench_messages(values)
    assert [second.force.x, second.torque.z] == [values[1, 3], values[1, 2]]
    (found,) = read_wrenches(SimpleNamespace(wrench=[first, second]), ("wrench",), TWO_TOOLS)
    np.testing.assert_array_equal(found, values)
