# SPDX-License-Identifier: Apache-2.0
"""Commands by name, and all that is wrong with them."""

from array import array

import numpy as np
import pytest

from eom_dynamics import StateError

pytest.importorskip("rclpy", reason="rclpy is not installed")

from eom_dynamics.ros.fake_robot.commands import MotorOrder

NAMES = ("a", "b", "c")
GOOD = {"position": array("d", [1.0, 2.0, 3.0]), "velocity": array("d"), "effort": array("d", [4.0, 5.0, 6.0])}


@pytest.mark.parametrize(("names", "order"), [([], [0, 1, 2]), (list(NAMES), [0, 1, 2]), (["c", "a", "b"], [1, 2, 0])])
def test_values_come_in_the_order_of_the_robot(names, order):
    reader = MotorOrder(NAMES)
    for _ in range(2):
        position, velocity, effort = reader.read("name", names, **GOOD)
        np.testing.assert_array_equal(position, np.array([1.0, 2.0, 3.0])[order])
        np.testing.assert_array_equal(velocity, np.zeros(3))
        np.testing.assert_array_equal(effort, np.array([4.0, 5.0, 6.0])[order])


BAD = {
    "unknown": (["a", "b", "x"], {}, "name[2]: there is no motor 'x'; there are a, b, c"),
    "twice": (["a", "b", "b"], {}, "name[2]: motor 'b' stands there twice"),
    "missing": (["a", "b"], {}, "name: c missing; each motor must be there once"),
    "short": ([], {"position": array("d", [1.0])}, "position has 1 entries, must have 3"),
    "empty": ([], {"position": array("d")}, "position has 0 entries, must have 3"),
    "long": ([], {"effort": array("d", [1.0] * 4)}, "effort has 4 entries, must have 3 or none"),
    "nan": (["c", "b", "a"], {"effort": array("d", [np.nan, 0, 0])}, "effort of c is nan"),
    "infinite": ([], {"velocity": array("d", [0, -np.inf, 0])}, "velocity of b is -inf"),
}


@pytest.mark.parametrize(("names", "values", "reason"), BAD.values(), ids=BAD)
def test_a_bad_command_is_refused_and_the_next_one_read(names, values, reason):
    reader = MotorOrder(NAMES)
    with pytest.raises(StateError) as error:
        reader.read("name", names, **{**GOOD, **values})
    assert str(error.value) == reason
    np.testing.assert_array_equal(reader.read("name", ["c", "a", "b"], **GOOD)[0], [2.0, 3.0, 1.0])
