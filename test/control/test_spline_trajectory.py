# SPDX-License-Identifier: Apache-2.0
"""Splines in messages: read and written to the last bit, and refused."""

import tracemalloc
from array import array
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import refusals

from eom_dynamics import ElasticArm, Payload, StateError, load_robot
from eom_dynamics.control.fields import STATE_FIELDS
from eom_dynamics.control.trajectories import (
    MAX_ENTRIES,
    duration,
    hold_others,
    read_spline,
    read_times,
    rest_at_the_end,
    robot_digest,
    write_spline,
)
from eom_dynamics.robot import packaged_robots
from eom_dynamics.robot.payload import payload_parameters, with_parameters
from eom_dynamics.trajectory import Spline
from eom_dynamics.trajectory.feedforward import checked

NAMES = ["a", "b", "c"]
KNOTS = [-0.2, 0.1, 0.7, 0.75]


def message(knots=KNOTS, names=NAMES, states=None):
    """A motion with random states, or these, at knots."""
    if states is None:
        states = np.random.default_rng(1).normal(size=(5, len(knots), len(names)))
    rows = {field: array("d", row.tobytes()) for field, row in zip(STATE_FIELDS, states, strict=True)}
    return SimpleNamespace(joint_names=list(names), knots=array("d", knots), **rows)


@pytest.mark.parametrize("count", [1, 2, 9])
def test_a_spline_is_read_as_it_was_written_in_any_order_of_joints(count):
    rng, order = np.random.default_rng(3), [2, 0, 1]
    motion = Spline(np.cumsum(rng.uniform(0.05, 2.0, count)), rng.normal(size=(5, count, 3)))
    sent = message()
    write_spline(sent, motion, NAMES)
    reordered = message(motion.t, [NAMES[i] for i in order], motion.states[..., order])
    for read in (read_spline(sent, NAMES), read_spline(reordered, NAMES)):
        np.testing.assert_array_equal(read.t, motion.t)
        np.testing.assert_array_equal(read.states, motion.states)


def test_joints_that_a_message_does_not_name_are_held():
    states = np.random.default_rng(4).normal(size=(5, 4, 2))
    motion = read_spline(message(KNOTS, ["c", "a"], states), NAMES, np.array([0.7]))
    np.testing.assert_array_equal(motion.states[..., [2, 0]], states)
    np.testing.assert_array_equal(motion.states[..., 1], [[0.7] * 4, *[[0.0] * 4] * 4])
    with pytest.raises(StateError, match="joint_names: joint 'b' missing"):
        read_spline(message(KNOTS, ["c", "a"], states), NAMES)
    for names, reason in ((["c", "d"], r"joint_names\[1\]: the robot has no joint 'd'"), (["c", "c"], "listed twice")):
        with pytest.raises(StateError, match=reason):
            read_spline(message(KNOTS, names, states), NAMES, np.array([0.7]))


def trajectory(names, *points):
    return SimpleNamespace(
        joint_names=list(names),
        points=[
            SimpleNamespace(positions=list(q), velocities=list(qd), accelerations=list(qdd)) for q, qd, qdd in points
        ],
    )


def test_points_are_completed_by_joints_at_rest_where_they_are_measured():
    given = trajectory(["c", "a"], ([1, 2], [3, 4], []), ([5, 6], [], [7, 8]))
    hold_others(given, NAMES, lambda names: np.array([{"b": 0.7}[name] for name in names]))
    assert given.joint_names == ["c", "a", "b"]
    found = [(x.positions, x.velocities, x.accelerations) for x in given.points]
    assert found == [([1, 2, 0.7], [3, 4, 0.0], []), ([5, 6, 0.7], [], [7, 8, 0.0])]
    whole = trajectory([], ([1, 2, 3], [], []))
    hold_others(whole, NAMES, lambda names: pytest.fail("unexpected measurement"))
    assert (whole.joint_names, whole.points[0].positions) == ([], [1, 2, 3])


test_points_that_are_not_completed = refusals(
    StateError,
    (trajectory(["c", "d"], ([1, 2], [], [])), r"joint_names\[1\]: the robot has no joint 'd'"),
    (trajectory(["c", "c"], ([1, 2], [], [])), "joint 'c' is listed twice"),
    (trajectory(["c", "a"], ([1, 2, 3], [], [])), r"points\[0\]\.positions has 3 entries, must have 2"),
    (trajectory(["c", "a"], ([1, 2], [3], [])), r"points\[0\]\.velocities has 1 entries, must have 2"),
    call=lambda given: hold_others(given, NAMES, lambda names: np.zeros(len(names))),
)


@pytest.mark.parametrize("step", [0, 3])
def test_repeated_point_is_removed(step):
    """A point 3 ns after another with other positions is refused."""
    given = trajectory(NAMES, *[([q] * 3, [v] * 3, []) for q, v in ((0.0, 0.0), (1.0, 0.5), (1.0, 0.0), (2.0, 0.0))])
    for point, stamp in zip(given.points, (0, 500_000_000, 500_000_000 + step, 900_000_000), strict=True):
        point.time_from_start = SimpleNamespace(sec=0, nanosec=stamp)
    last = given.points[2]
    np.testing.assert_allclose(read_times(given), [0.0, 0.5 + 1e-9 * step, 0.9], rtol=0, atol=1e-15)
    assert given.points[1] is last
    last.positions, given.points[2].time_from_start = [1.0] * 3, SimpleNamespace(sec=0, nanosec=500_000_003 + step)
    with pytest.raises(StateError, match=r"points\[2\].time_from_start is 0.50000000\d s, must be later .* by 1000 ns"):
        read_times(given)


@pytest.mark.parametrize("velocity", [1e-3, -1e-3, 1e-9, 0.0])
def test_small_velocities_at_the_end_become_zero(velocity):
    given = trajectory(NAMES, ([0.0] * 3, [1.0] * 3, []), ([0.0] * 3, [0.0, velocity, 0.0], []))
    rest_at_the_end(given)
    assert given.points[1].velocities == [0.0] * 3 and given.points[0].velocities == [1.0] * 3


@pytest.mark.parametrize("velocity", [1.001e-3, -0.1, np.nan])
def test_larger_velocities_at_the_end_are_refused(velocity):
    given = trajectory(NAMES, ([0.0] * 3, [0.0, velocity, 0.0], []))
    with pytest.raises(StateError, match=r"points\[0\]\.velocities\[1\] \(joint 'b'\) is .* limit 0.001 at the end"):
        rest_at_the_end(given)


test_motions_that_are_not_written = refusals(
    StateError,
    ([0.0, 1e-6], r"knots\[1\].*1e-06.*0.0001"),
    (np.arange(18_000.0), r"18000.*waypoints.*3.*54000.*50000"),
    call=lambda times: write_spline(message(), Spline(times, np.zeros((5, len(times), 3))), NAMES),
)


def test_memory_is_of_the_order_of_the_message():
    arm = ElasticArm(load_robot("planar_2r"))
    checked(arm, read_spline(message(names=["a", "b"]), ["a", "b"]), 1000.0, 100)
    count = MAX_ENTRIES // 2
    sent = message(np.arange(count) * 2e-4, ["a", "b"], np.zeros((5, count, 2)))
    tracemalloc.start()
    motion = read_spline(sent, ["a", "b"])
    checked(arm, motion, 1000.0, 1000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 8 * 5 * MAX_ENTRIES


LARGE = bytes(8 * (MAX_ENTRIES + 1))
REFUSED = [
    ({"joint_names": ["a", "b", "x"]}, r"joint_names\[2\]: the robot has no joint 'x'"),
    ({"joint_names": ["a", "b"]}, r"joint_names: joint 'c' missing"),
    ({"knots": [0.0, np.nan, 1.0, 2.0]}, r"knots\[1\] is nan"),
    ({"knots": [0.0, 1.0, 1.0, 2.0]}, r"knots\[2\] is 1 s, must be later than 1 s"),
    (
        {"knots": [0.0, 1.0, 1.0 + 1e-9, 2.0]},
        r"knots\[2\] is 1e-09 s after the one before it, must be at least 0.0001 s",
    ),
    ({"knots": [0.0, 1.0, 2.0, 1e40]}, r"knots\[3\] is 1e\+40 s, must be at most 1e\+09 s from 0"),
    ({"knots": [0.0, 1.0]}, "position has 12 entries, must have 6, one for each joint at each of the knots"),
    ({"position": [0.0] * 11}, "position has 11 entries, must have 3 for each sample, one for each joint"),
    ({"snap": []}, "snap has 0 entries, must have 12, as position has"),
    ({"jerk": np.where(np.arange(12) == 5, np.nan, 0.0)}, r"jerk\[5\] \(sample 1, joint 'c'\) is nan"),
    ({"position": LARGE}, "fields may have 50000 entries: send the motion in parts"),
    ({"knots": LARGE}, "fields may have 50000 entries: send the motion in parts"),
]


def read_with(fields):
    sent = message()
    for name, value in fields.items():
        setattr(sent, name, value if name == "joint_names" else array("d", value))
    read_spline(sent, NAMES)


test_bad_messages_are_refused = refusals(StateError, *REFUSED, call=read_with)


def test_the_way_to_a_single_knot_lasts_until_it():
    found = [duration(Spline(t, np.zeros((5, len(t), 3)))) for t in ([1.0], [-1.0], [0.25, 1.0])]
    assert found == [1.0, 0.0, 0.75]


def test_a_digest_is_that_of_equal_robots_and_another_for_each_number_that_limits_depend_on():
    for name in packaged_robots():
        assert robot_digest(load_robot(name)) == robot_digest(load_robot(name))
    robot = load_robot("vsa_planar_2r")
    first, second = robot.joints
    motor, gravity = first.actuator.motor, np.nextafter(robot.gravity, 0.0)

    def with_first(**changes):
        return replace(robot, joints=(replace(first, **changes), second))

    def carrying(mass):
        return with_parameters(robot, payload_parameters(robot, [Payload(mass)]))

    robots = {
        "itself": robot,
        "limit of a joint": with_first(limits=replace(first.limits, velocity=np.nextafter(first.limits.velocity, 0.0))),
        "limit of a motor": with_first(actuator=replace(first.actuator, motor=replace(motor, torque_limit=1.0))),
        "mass": with_first(mass=np.nextafter(first.mass, 0.0)),
        "damper": with_first(damping=np.nextafter(first.damping, 1.0)),
        "gravity": replace(robot, gravity=gravity),
        "payload": carrying(1.0),
        "another payload": carrying(1.0 + 1e-15),
    }
    digests = {name: robot_digest(x) for name, x in robots.items()}
    assert len(set(digests.values())) == len(digests)
