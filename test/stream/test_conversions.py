# SPDX-License-Identifier: Apache-2.0
"""Messages to arrays and back, without ROS."""

from array import array
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from eom_dynamics import StateError
from eom_dynamics.exceptions import StiffnessError
from eom_dynamics.stream.conversions import (
    EFFORT_FIELDS,
    MOTOR_FIELDS,
    STATE_FIELDS,
    STIFFNESS_FIELDS,
    WRENCH_FIELDS,
    JointOrder,
    JointOrders,
    check_efforts,
    check_motors,
    doubles,
    read_state,
    read_stiffness,
    read_wrench,
)

NAMES = ["a", "b", "c"]
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def permutations(draw):
    """The robot's names, and a message's order of them."""
    robot = draw(st.lists(st.text(max_size=5).filter(bool), min_size=1, max_size=9, unique=True))
    return robot, draw(st.permutations(robot))


def message(joint_names=(), **fields):
    """A message like those of ROS 2: array.array in its fields, empty where nothing is given."""
    given = {name: array("d", values) for name, values in fields.items()}
    empty = {name: array("d") for name in (*STATE_FIELDS, *WRENCH_FIELDS, *STIFFNESS_FIELDS)}
    return SimpleNamespace(joint_names=list(joint_names), **(empty | given))


@given(permutations())
def test_order_takes_values_by_name(case):
    robot, names = case
    order = JointOrder(robot, names)
    values = np.array([[100.0 * row + robot.index(name) for name in names] for row in range(2)])
    wanted = np.array([[100.0 * row + i for i in range(len(robot))] for row in range(2)])
    np.testing.assert_array_equal(order.to_robot(values), wanted)
    np.testing.assert_array_equal(order.to_message(wanted), values)
    assert order.names == list(names)


@given(permutations(), st.data())
def test_orders_of_a_stream_do_not_depend_on_what_came_before(case, data):
    robot, _ = case
    orders = JointOrders(robot)
    for names in data.draw(st.lists(st.one_of(st.just([]), st.permutations(robot)), max_size=6)):
        order, fresh = orders.of(names), JointOrder(robot, names)
        values = np.arange(float(len(robot)))
        assert order.names == fresh.names
        np.testing.assert_array_equal(order.to_robot(values), fresh.to_robot(values))


def test_refused_names_do_not_stay_in_the_cache():
    orders = JointOrders(NAMES)
    for _ in range(2):
        with pytest.raises(StateError, match="no joint 'x'"):
            orders.of(["a", "b", "x"])
    assert orders.of(["b", "a", "c"]).names == ["b", "a", "c"]


def test_no_names_mean_the_order_of_the_robot():
    order = JointOrder(NAMES, [])
    assert order.names == NAMES
    values = np.arange(3.0)
    assert order.to_robot(values) is values


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["a", "b", "x"], r"joint_names\[2\]: the robot has no joint 'x'"),
        (["a", "b", "c", "x"], r"joint_names\[3\]: the robot has no joint 'x'"),
        (["a", "b"], "joint_names: 'c' missing"),
        (["b"], "joint_names: 'a', 'c' missing"),
        (["a", "b", "b"], r"joint_names\[2\]: joint 'b' stands there twice"),
        (["a", "b", "c", "a"], r"joint_names\[3\]: joint 'a' stands there twice"),
        (["A", "b", "c"], r"joint_names\[0\]: the robot has no joint 'A'"),
        (["a", "b", "x" * 10_000], r"no joint 'x{57}\.\.\.'$"),
        (["a", "b", "x\ny"], r"no joint 'x\\ny'$"),
    ],
)
def test_names_that_are_not_the_robots_are_refused(names, reason):
    with pytest.raises(StateError, match=reason):
        JointOrder(NAMES, names)


@given(permutations(), st.data())
def test_state_is_read_bit_by_bit_in_the_order_of_the_robot(case, data):
    robot, names = case
    n = len(robot)
    rows = data.draw(arrays(float, (5, n), elements=finite))
    state = read_state(message(names, **dict(zip(STATE_FIELDS, rows, strict=True))), JointOrder(robot, names))
    wanted = [[row[names.index(name)] for name in robot] for row in rows]
    assert state.tobytes() == np.array(wanted).tobytes()


@given(st.integers(1, 6), st.lists(st.integers(0, 8), min_size=5, max_size=5))
def test_only_the_right_lengths_are_read(n, lengths):
    order = JointOrder([f"j{i}" for i in range(n)], [])
    setpoint = message(**{field: [0.5] * length for field, length in zip(STATE_FIELDS, lengths, strict=True)})
    if lengths == [n] * 5:
        assert read_state(setpoint, order).shape == (5, n)
    else:
        wrong = next(i for i, length in enumerate(lengths) if length != n)
        with pytest.raises(StateError, match=f"^{STATE_FIELDS[wrong]} has {lengths[wrong]} entries, must have {n},"):
            read_state(setpoint, order)


def test_optional_fields_may_be_empty_but_not_of_another_length():
    order = JointOrder(NAMES, [])
    fields = {"position": [1.0, 2.0, 3.0], "velocity": [4.0] * 3, "acceleration": [5.0] * 3}
    state = read_state(message(**fields), order, optional=("jerk", "snap"))
    np.testing.assert_array_equal(state, [[1, 2, 3], [4] * 3, [5] * 3, [0] * 3, [0] * 3])
    with pytest.raises(StateError, match=r"^jerk has 2 entries, must have 3 or none"):
        read_state(message(**fields, jerk=[1.0, 2.0]), order, optional=("jerk", "snap"))
    with pytest.raises(StateError, match=r"^jerk has 0 entries"):
        read_state(message(**fields), order)


@given(
    st.sampled_from(STATE_FIELDS),
    st.sampled_from(["b", "c", "a"]),
    st.sampled_from([np.nan, np.inf, -np.inf]),
)
def test_a_number_that_is_not_finite_is_named(field, joint, value):
    names = ["b", "c", "a"]
    fields = {name: [0.0] * 3 for name in STATE_FIELDS}
    fields[field][names.index(joint)] = value
    with pytest.raises(StateError, match=rf"^{field}\[{names.index(joint)}\] \(joint '{joint}'\) is {value}$"):
        read_state(message(names, **fields), JointOrder(NAMES, names))


@given(arrays(float, (3, 6), elements=finite), st.lists(st.booleans(), min_size=3, max_size=3))
def test_wrench_is_read_and_what_is_left_out_is_zero(values, present):
    fields = {field: row for field, row, here in zip(WRENCH_FIELDS, values, present, strict=True) if here}
    wrench = read_wrench(message(**fields))
    if not any(present):
        assert wrench == ()
    else:
        np.testing.assert_array_equal(wrench, np.where(np.array(present)[:, None], values, 0.0))


@pytest.mark.parametrize("field", WRENCH_FIELDS)
@pytest.mark.parametrize("length", [1, 5, 7, 12])
def test_wrench_of_another_length_is_refused(field, length):
    with pytest.raises(
        StateError, match=rf"^{field} has {length} entries, must have 6 \(moment and force at each tool\) or none$"
    ):
        read_wrench(message(**{field: [0.0] * length}))


@pytest.mark.parametrize("field", WRENCH_FIELDS)
def test_wrench_that_is_not_finite_is_refused(field):
    with pytest.raises(StateError, match=rf"^{field}\[4\] is nan$"):
        read_wrench(message(**{field: [0, 0, 0, 0, np.nan, 0]}))


@pytest.mark.parametrize(
    ("check", "what", "fields"), [(check_efforts, "joint", EFFORT_FIELDS), (check_motors, "motor", MOTOR_FIELDS)]
)
def test_command_that_overflowed_is_refused(check, what, fields):
    for row, field in enumerate(fields):
        values = np.zeros((len(fields), 3))
        check(values, NAMES)
        values[row, 1] = -np.inf
        with pytest.raises(StateError, match=f"numbers too large: {field} of {what} 'b' would be -inf"):
            check(values, NAMES)


@given(arrays(float, st.tuples(st.integers(0, 4), st.integers(0, 4)), elements=st.floats()), st.booleans())
def test_doubles_keep_every_bit_row_after_row(values, transposed):
    values = values.T if transposed else values  # not contiguous
    field = doubles(values)
    assert field.typecode == "d"
    assert field.tobytes() == np.ascontiguousarray(values).tobytes()


PAIR = (["a", "b_agonist", "b_antagonist", "c"], np.array([0, 1, 1, 2]))


@pytest.mark.parametrize(
    ("names", "motors"),
    [
        ([], ["a", "b_agonist", "b_antagonist", "c"]),
        (["a", "b", "c"], ["a", "b_agonist", "b_antagonist", "c"]),
        (["c", "b", "a"], ["c", "b_agonist", "b_antagonist", "a"]),
        (["b", "c", "a"], ["b_agonist", "b_antagonist", "c", "a"]),
    ],
)
def test_motors_stand_in_the_places_of_their_joints(names, motors):
    order = JointOrder(NAMES, names, PAIR)
    assert order.motor_names == motors
    values = np.arange(8.0).reshape(2, 4)
    wanted = np.stack([values[:, PAIR[0].index(name)] for name in motors], axis=1)
    np.testing.assert_array_equal(order.motors_to_message(values), wanted)


@given(permutations(), st.data())
def test_motors_of_a_joint_stay_together_in_their_order(case, data):
    robot, names = case
    counts = data.draw(st.lists(st.integers(1, 3), min_size=len(robot), max_size=len(robot)))
    motors = [(name, k) for name, count in zip(robot, counts, strict=True) for k in range(count)]
    joint = np.repeat(np.arange(len(robot)), counts)
    order = JointOrder(robot, names, ([f"{name} {k}" for name, k in motors], joint))
    wanted = [f"{name} {k}" for name in names for k in range(counts[robot.index(name)])]
    assert order.motor_names == wanted


VARIABLE = np.array([False, True, False])


def test_stiffness_is_read_in_the_order_of_the_robot_and_what_is_left_out_is_zero():
    order = JointOrder(NAMES, ["b", "c", "a"])
    k, kd, kdd = read_stiffness(message(stiffness=[1.0, 2.0, 3.0], stiffness_acceleration=[4.0] * 3), order, VARIABLE)
    np.testing.assert_array_equal(k, [3, 1, 2])
    np.testing.assert_array_equal(kd, [0, 0, 0])
    np.testing.assert_array_equal(kdd, [4, 4, 4])
    assert read_stiffness(message(), order, VARIABLE) == ()


def test_stiffness_of_other_joints_may_be_anything():
    order = JointOrder(NAMES, ["b", "c", "a"])
    values = [5.0, np.nan, -np.inf]
    assert read_stiffness(message(**dict.fromkeys(STIFFNESS_FIELDS, values)), order, VARIABLE)[0][1] == 5.0


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        *(({field: [1.0] * 2}, f"{field} has 2 entries, must have 3 or none") for field in STIFFNESS_FIELDS),
        ({"stiffness": [1.0] * 4}, "stiffness has 4 entries, must have 3 or none"),
        ({"stiffness_rate": [1.0] * 3}, "stiffness is empty, and its time derivatives are not"),
        ({"stiffness_acceleration": [1.0] * 3}, "stiffness is empty, and its time derivatives are not"),
        *(
            ({"stiffness": [1.0] * 3} | {field: [value, 1.0, 1.0]}, rf"{field}\[0\] (joint 'b') is {value}")
            for field in STIFFNESS_FIELDS
            for value in (np.nan, np.inf, -np.inf)
        ),
    ],
)
def test_stiffness_that_cannot_be_used_is_refused(fields, reason):
    order = JointOrder(NAMES, ["b", "c", "a"])
    with pytest.raises(StiffnessError, match="^" + reason.replace("(", r"\(").replace(")", r"\)")):
        read_stiffness(message(**fields), order, VARIABLE)
