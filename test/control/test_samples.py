# SPDX-License-Identifier: Apache-2.0
"""Fields of messages as arrays and back, for one sample and many."""

from array import array
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from refusals import refusals

from eom_dynamics import StateError
from eom_dynamics.control.fields import STATE_FIELDS, STIFFNESS_FIELDS, doubles, read_samples, read_stiffness, write
from eom_dynamics.control.joint_order import JointOrder
from eom_dynamics.exceptions import StiffnessError

NAMES = ["a", "b", "c"]
ORDER, SHUFFLED = JointOrder(NAMES, []), JointOrder(NAMES, ["b", "c", "a"])


def message(**fields):
    """A message like those of ROS 2: array.array in its fields, empty where nothing is given."""
    empty = {name: array("d") for name in (*STATE_FIELDS, *STIFFNESS_FIELDS)}
    return SimpleNamespace(**(empty | {name: array("d", np.ravel(values)) for name, values in fields.items()}))


@given(arrays(float, (5, 3), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_a_state_is_read_bit_by_bit_in_the_order_of_the_robot(rows):
    state = read_samples(message(**dict(zip(STATE_FIELDS, rows, strict=True))), SHUFFLED)[:, 0]
    assert state.tobytes() == np.ascontiguousarray(rows[:, [2, 0, 1]]).tobytes()


def test_samples_follow_one_another():
    values = np.arange(5 * 4 * 3.0).reshape(5, 4, 3)
    found = read_samples(message(**dict(zip(STATE_FIELDS, values, strict=True))), SHUFFLED, most=4)
    np.testing.assert_array_equal(found, values[..., [2, 0, 1]])


GOOD = {name: np.ones(3) for name in STATE_FIELDS}


test_samples_that_cannot_be_used_are_refused = refusals(
    StateError,
    ({"position": []}, "position has 0 entries, must have 3 for each sample, one for each joint"),
    ({"position": np.ones(7)}, "position has 7 entries, must have 3 for each sample, one for each joint"),
    ({"position": np.ones(9)}, "position has 3 samples, must have at most 2: split the request"),
    ({"velocity": np.ones(3)}, "velocity has 3 entries, must have 6, as position has"),
    ({"snap": np.ones(3)}, "snap has 3 entries, must have 6 or none"),
    ({"jerk": [1, 1, 1, 1, np.nan, 1]}, r"jerk\[4\] \(sample 1, joint 'b'\) is nan"),
    call=lambda fields: read_samples(
        message(**dict.fromkeys(STATE_FIELDS, np.ones(6)) | fields), ORDER, optional=("jerk", "snap"), most=2
    ),
)


def test_optional_fields_may_be_empty():
    fields = {"position": [1.0, 2.0, 3.0], "velocity": [4.0] * 3, "acceleration": [5.0] * 3}
    state = read_samples(message(**fields), ORDER, optional=("jerk", "snap"))[:, 0]
    np.testing.assert_array_equal(state, [[1, 2, 3], [4] * 3, [5] * 3, [0] * 3, [0] * 3])
    with pytest.raises(StateError, match=r"^jerk has 0 entries"):
        read_samples(message(**fields), ORDER)


@pytest.mark.parametrize("field", STATE_FIELDS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_named(field, value):
    with pytest.raises(StateError, match=rf"^{field}\[1\] \(joint 'c'\) is {value}$"):
        read_samples(message(**GOOD | {field: [0.0, value, value]}), SHUFFLED)


@given(arrays(float, st.tuples(st.integers(0, 4), st.integers(0, 4)), elements=st.floats()), st.booleans())
def test_doubles_keep_every_bit_row_after_row(values, transposed):
    values = values.T if transposed else values  # not contiguous
    field = doubles(values)
    assert field.typecode == "d"
    assert field.tobytes() == np.ascontiguousarray(values).tobytes()


def test_numbers_that_overflowed_are_not_written():
    response = message()
    write(response, ["position", "velocity"], [np.eye(2), np.ones(1)])
    assert list(response.position) == [1, 0, 0, 1] and list(response.velocity) == [1]
    with pytest.raises(StateError, match="large"):
        write(response, ["velocity"], [np.array([np.inf])])


VARIABLE = np.array([False, True, False])


def test_stiffness_is_read_in_the_order_of_the_robot_and_what_is_left_out_is_zero():
    setpoint = message(stiffness=[1.0, 2.0, 3.0], stiffness_acceleration=[4.0] * 3)
    k, kd, kdd = read_stiffness(setpoint, SHUFFLED, VARIABLE)
    np.testing.assert_array_equal(k, [3, 1, 2])
    np.testing.assert_array_equal(kd, [0, 0, 0])
    np.testing.assert_array_equal(kdd, [4, 4, 4])
    assert read_stiffness(message(), SHUFFLED, VARIABLE) == ()


def test_stiffness_of_a_batch_is_given_once_or_for_each_sample():
    setpoint = message(stiffness=[1.0, 2.0, 3.0], stiffness_rate=np.arange(6.0))
    k, kd, kdd = read_stiffness(setpoint, SHUFFLED, VARIABLE, 2)
    np.testing.assert_array_equal(k, [3, 1, 2])
    np.testing.assert_array_equal(kd, [[2, 0, 1], [5, 3, 4]])
    np.testing.assert_array_equal(kdd, [0, 0, 0])


def test_stiffness_of_other_joints_may_be_anything():
    values = [5.0, np.nan, -np.inf]
    assert read_stiffness(message(**dict.fromkeys(STIFFNESS_FIELDS, values)), SHUFFLED, VARIABLE)[0][1] == 5.0


test_stiffness_that_cannot_be_used_is_refused = refusals(
    StiffnessError,
    *(({field: np.ones(2)}, 1, rf"^{field} has 2 entries, must have 3 \(one for each") for field in STIFFNESS_FIELDS),
    ({"stiffness": np.ones(4)}, 2, r"stiffness has 4 entries, must have 3 \(one for each joint\), 6 \(for each joint"),
    ({"stiffness_rate": np.ones(3)}, 1, "stiffness is empty, but its time derivatives are not"),
    ({"stiffness": np.ones(3), "stiffness_rate": [np.inf, 1, 1]}, 1, r"^stiffness_rate\[0\] \(joint 'b'\) is inf"),
    ({"stiffness": [1, 1, 1, np.nan, 1, 1]}, 2, r"^stiffness\[3\] \(sample 1, joint 'b'\) is nan"),
    call=lambda fields, count: read_stiffness(message(**fields), SHUFFLED, VARIABLE, count),
)
