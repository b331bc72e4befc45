# SPDX-License-Identifier: Apache-2.0
"""Feedforward of trajectories, by service."""

from array import array

import numpy as np
import pytest
from iiwa import without_limits
from node_client import joint_trajectory
from paths import CONFIG

import eom_dynamics as eom
from eom_dynamics.control.fields import STATE_FIELDS
from eom_dynamics.trajectory import paper_motion, through

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from sensor_msgs.msg import JointState

ROBOT = eom.load_robot(CONFIG / "iiwa.yaml")
NAMES = list(ROBOT.joint_names)
N = ROBOT.n
TIMES = np.array([0.0, 0.4, 0.5, 0.9, 1.5])
MOTION = tuple(x / 2.0**k for k, x in enumerate(paper_motion().derivatives(TIMES / 2, 2)))


@pytest.fixture(scope="module")
def limited_iiwa(tmp_path_factory):
    file = without_limits(tmp_path_factory.mktemp("planning"))
    # The first joint alone has limits.
    head, mark, rest = file.read_text().partition("iiwa_joint_1:\n")
    file.write_text(f"{head}{mark}          limits: {{velocity: 2.0, effort: 40.0}}\n{rest}")
    return "--params-file", file


@pytest.fixture(scope="module")
def node(start_shared, limited_iiwa):
    return start_shared.planning(*limited_iiwa)


def message(
    times=TIMES, names=NAMES, fields=("positions", "velocities", "accelerations"), order=range(N), motion=MOTION
):
    """A JointTrajectory of these fields, with further fields of planners."""
    every = zip(("positions", "velocities", "accelerations"), motion, strict=True)
    rows = {field: np.array(values)[:, list(order)] for field, values in every if field in fields}
    trajectory = joint_trajectory([names[i] for i in order], times, **rows)
    trajectory.header.frame_id = "world"
    trajectory.header.stamp.sec = 17
    return trajectory


def ask(client, trajectory, **options):
    return client.trajectory_feedforward(trajectory=trajectory, **options)


def table(values, columns=N):
    return np.reshape(values, (-1, columns))


def test_the_trajectory_comes_back_with_efforts(node, rng):
    order = list(map(int, rng.permutation(N)))
    asked = message(order=order)
    for point in asked.points:
        point.effort = array("d", [99.0] * N)
    answer = ask(node, asked, sample_rate=0.0).trajectory
    assert answer.joint_names == asked.joint_names
    assert answer.header == asked.header
    for k, (point, before) in enumerate(zip(answer.points, asked.points, strict=True)):
        assert point.time_from_start == before.time_from_start
        assert (point.positions, point.velocities) == (before.positions, before.velocities)
        # Given velocities and accelerations are met, so that these say the effort.
        q, qd, qdd = (values[k] for values in MOTION)
        (tau,) = eom.equations_of_motion(ROBOT, q, qd).efforts(qdd)
        np.testing.assert_allclose(point.effort, tau[order], rtol=0, atol=1e-10)


ALL = ("positions", "velocities", "accelerations")
MOTIONS = [
    (ALL[:1], {"ends": "free"}, {"ends": "free"}),
    (ALL[:2], {"ends": "rest"}, {"velocities": MOTION[1]}),
    (ALL, {}, {"velocities": MOTION[1], "accelerations": MOTION[2]}),
    (ALL, {"follow": 1}, {}),
    (ALL, {"follow": 2}, {"velocities": MOTION[1]}),
]


def test_the_motion_is_the_one_that_was_asked_for(node):
    for fields, options, arguments in MOTIONS:
        answer = ask(node, message(fields=fields), sample_rate=50.0, outputs=1, **options)
        assert answer.success, answer.message
        wanted = through(TIMES, MOTION[0], **arguments).derivatives(np.arange(76) / 50)
        for field, values in zip(STATE_FIELDS, wanted, strict=True):
            # Times in a message are whole nanoseconds.
            np.testing.assert_allclose(table(getattr(answer, field)), values, rtol=0, atol=1e-6 * np.abs(values).max())
        assert len(answer.effort) == len(answer.motor_effort) == 0


def test_a_trajectory_of_one_point_and_one_that_begins_later(node):
    answer = ask(node, message(TIMES[:1]), sample_rate=100.0)
    assert answer.success, answer.message
    assert list(answer.time) == [0.0]
    later = ask(node, message(TIMES + 3.0), sample_rate=10.0)
    assert later.success, later.message
    assert (later.time[0], later.time[-1]) == (3.0, 4.5)


def test_derivatives_that_are_not_followed_come_back_as_those_of_the_motion(node):
    trajectory = message()
    trajectory.points[1].velocities = trajectory.points[1].accelerations = []
    answer = ask(node, trajectory, outputs=1, follow=2)
    assert answer.success, answer.message
    for k, (point, asked) in enumerate(zip(answer.trajectory.points, trajectory.points, strict=True)):
        assert point.positions == asked.positions
        for field, values in (("velocities", answer.velocity), ("accelerations", answer.acceleration)):
            if not getattr(asked, field):
                assert not getattr(point, field)
            elif field == "velocities":
                assert getattr(point, field) == getattr(asked, field)
            else:
                # A spline is evaluated from the knot on its left or on its right.
                np.testing.assert_allclose(getattr(point, field), values[k * N : (k + 1) * N], rtol=1e-9, atol=1e-9)


def test_exceeded_limits_and_the_scaling_that_meets_them(node):
    answer = ask(node, message(TIMES / 2, fields=("positions",)), outputs=8)
    assert answer.success, answer.message
    assert len(answer.position) == len(answer.effort) == len(answer.motor_effort) == 0
    found = {(violation.quantity, violation.name): violation for violation in answer.exceeded}
    assert {name for _, name in found} == {"iiwa_joint_1"}
    velocity = found["velocity", "iiwa_joint_1"]
    motion = through(TIMES / 2, MOTION[0])
    t = np.linspace(0, TIMES[-1] / 2, 20_001)
    rates = np.abs(motion.derivatives(t, 1)[1][:, 0])
    assert velocity.limit == pytest.approx(np.copysign(2.0, velocity.value))
    # Looked at every millisecond: 1e-3 of a second away from the peak it is lower by 1e-4 or so.
    assert abs(velocity.value) == pytest.approx(rates.max(), rel=1e-3)
    assert velocity.time == pytest.approx(t[rates.argmax()], abs=2e-3)
    assert velocity.ratio == pytest.approx(abs(velocity.value) / 2)
    # Unchanged, though times are rounded to nanoseconds.
    slower = ask(node, message(TIMES / 2 * answer.time_scaling, fields=("positions",)), outputs=8)
    assert (len(slower.exceeded), slower.time_scaling) == (0, 1.0)
    assert not slower.message
    assert answer.message.startswith("exceeds limits: ") and answer.message.endswith(" meets all limits")
    almost = ask(node, message(TIMES / 2 * answer.time_scaling * 0.98, fields=("positions",)), outputs=8)
    assert len(almost.exceeded) > 0


def set_point(trajectory, k, field, values):
    setattr(trajectory.points[k], field, array("d", values))


# Cases of points that the tests of replay lack.
BAD = {
    "trajectory has no points": (lambda t: t.points.clear(), {}),
    "joint_names[0]: the robot has no joint 'gripper'": (lambda t: t.joint_names.__setitem__(0, "gripper"), {}),
    "points[2].positions is empty; each point must have positions": (lambda t: set_point(t, 2, "positions", []), {}),
    "points[1].velocities has 8 entries, must have 7": (lambda t: set_point(t, 1, "velocities", [0.0] * 8), {}),
    "points[1].time_from_start is -3.6 s": (lambda t: setattr(t.points[1].time_from_start, "sec", -4), {}),
    "1.5 s at 1e+06 Hz are more than 100000 samples": (lambda t: None, {"sample_rate": 1e6}),
    "sample_rate must be at least 0 Hz (0: waypoints only), is nan": (lambda t: None, {"sample_rate": np.nan}),
    "ends must be rest or free, is 'slow'": (lambda t: None, {"ends": "slow"}),
    "follow must be ALL_GIVEN, POSITIONS or VELOCITIES, is 3": (lambda t: None, {"follow": 3}),
    "outputs must be STATE, EFFORT, MOTOR, a sum of them, NONE or 0, is 9": (lambda t: None, {"outputs": 9}),
    "the motion is too fast": (lambda t: set_point(t, 2, "positions", [1e300] * 7), {"sample_rate": 100.0}),
}


def test_what_cannot_be_used_is_refused(node):
    for wrong, (change, options) in BAD.items():
        trajectory = message()
        change(trajectory)
        answer = ask(node, trajectory, **options)
        assert not answer.success and wrong in answer.message
        assert len(answer.time) == len(answer.trajectory.points) == 0


# --- Some of the joints -----------------------------------------------------------------

NAMED = [NAMES[4], NAMES[0]]


def part():
    """The message for two joints only, and with all others at their measured positions."""
    held = np.linspace(-0.3, 0.3, N)
    moved = np.array([name in NAMED for name in NAMES])
    whole = tuple(np.where(moved, values, held * (k == 0)) for k, values in enumerate(MOTION))
    return message(order=[4, 0]), message(order=[4, 0, 1, 2, 3, 5, 6], motion=whole), held


def test_joints_that_a_trajectory_does_not_name_are_held_where_they_are_measured(node):
    named, whole, held = part()
    refused = ask(node, named)
    assert not refused.success and "the position of 'iiwa_joint_2', 'iiwa_joint_3', " in refused.message
    assert "is not known yet after 1 s: publish it on joint_states" in refused.message
    states = node.node.create_publisher(JointState, "joint_states", 10)
    node.node.create_timer(0.05, lambda: states.publish(JointState(name=NAMES, position=held.tolist())))
    node.wait(states.get_subscription_count, "discovery")
    answer, wanted = ask(node, named, sample_rate=100.0), ask(node, whole, sample_rate=100.0)
    assert answer.success, answer.message
    assert answer.joint_names == answer.trajectory.joint_names == [*NAMED, *(x for x in NAMES if x not in NAMED)]
    assert answer == wanted
