# SPDX-License-Identifier: Apache-2.0
"""Limits of joints and motors in stream, services and trajectories: reported, refused, clipped, ignored or met."""

import numpy as np
import pytest
from eom_dynamics.msg import SplineTrajectory, TrajectoryStatus
from node_client import EACH_WARNING, joint_trajectory, status_of
from paths import CONFIG
from tool_messages import spline_message

import eom_dynamics as eom
from eom_dynamics.control.fields import STATE_FIELDS
from eom_dynamics.trajectory import Samples, check, minimum_time, rest_to_rest, through

ROBOT = eom.load_robot(CONFIG / "panda.yaml")
NAMES = list(ROBOT.joint_names)
ARM = eom.ElasticArm(ROBOT)

# Within its limits, and beyond ±2.9 rad, 2.2 rad/s and 87 N m.
HOME = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])
INSIDE = dict(zip(STATE_FIELDS, [HOME, *np.zeros((4, 7))], strict=True))
OUTSIDE = {**INSIDE, "position": HOME + 9.0 * np.eye(7)[0], "velocity": 50.0 * np.eye(7)[5]}

ARGUMENTS = ("--params-file", CONFIG / "panda.yaml", EACH_WARNING)


@pytest.fixture(scope="module")
def node(start_shared):
    return start_shared(*ARGUMENTS)


@pytest.fixture(scope="module")
def planning(start_shared, node):
    return start_shared.planning(*ARGUMENTS, beside=node.process)


def with_limits(node, policy):
    assert node.transition("deactivate")
    assert node.set_parameter("limits", policy) == ""
    assert node.transition("activate")


def test_violations_are_published_logged_and_counted(node):
    before = int(node.next_diagnostics()[2]["over limits"])
    feedforward, _, _ = node.answers_to(node.publish(**OUTSIDE))
    np.testing.assert_allclose(feedforward.effort, ARM.feedforward(*OUTSIDE.values()).tau, rtol=1e-12)
    node.answers_to(node.publish(**INSIDE))
    node.wait_for_diagnostics(lambda *s: int(s[2]["over limits"]) == before + 1, "the violation to be counted")
    worst = "fer_joint6: velocity 50 rad/s, limit 2.61 rad/s"
    assert any(status_of(m)[:1] == (1,) and worst in status_of(m)[1] for m in node.diagnostics)
    assert f"command exceeds limits: {worst}; " in node.process.log
    assert "fer_joint1: position 9 rad, limit 2.897 rad" in node.process.log
    answer = node.inverse_dynamics(**OUTSIDE)
    assert answer.success and answer.message.startswith(f"exceeds limits: {worst}; ")


def test_setpoints_beyond_limits_are_refused_on_request(node):
    assert node.set_parameter("limits", "ignore").startswith("limits is read-only while the node is active")
    with_limits(node, "refuse")
    refused = node.publish(**OUTSIDE)
    node.answers_to(node.publish(**INSIDE))
    assert all(m.header.stamp.nanosec != refused for m in node.feedforward)
    assert "setpoint refused: exceeds limits: fer_joint6: velocity 50 rad/s" in node.process.log
    answer = node.inverse_dynamics(**OUTSIDE)
    assert answer.success and answer.message.startswith("exceeds limits: fer_joint6: velocity")
    with_limits(node, "warn")


def spline(distance, duration):
    return spline_message(rest_to_rest(HOME, HOME + distance, duration), NAMES)


def test_a_planner_sends_splines_beyond_limits(node):
    statuses = node.collect(TrajectoryStatus, "trajectory_status")
    publisher = node.publisher(SplineTrajectory, "spline_trajectory")

    def send():
        publisher.publish(spline(0.4, 0.04))

    # This text, since trajectories of the previous test may still arrive, and be refused for other reasons.
    remedy = "times the duration meets all limits"
    with_limits(node, "refuse")
    node.repeat(send, lambda: any(remedy in status.message for status in statuses), "the refusal")
    refusal = next(status for status in statuses if remedy in status.message)
    assert refusal.status == TrajectoryStatus.REFUSED
    assert refusal.message.startswith("exceeds limits: fer_joint")
    with_limits(node, "warn")
    send()
    node.wait(lambda: "trajectory exceeds limits: fer_joint" in node.process.log, "the warning")
    publisher.publish(spline(90.0, 100.0))
    unit = "rad, more than a turn beyond its limit: angles are in rad, not in degrees"
    node.wait(lambda: any(status.message.endswith(unit) for status in statuses), "the refusal of degrees")


def test_planning_services_report_limits(planning):
    fields = {name: np.concatenate((INSIDE[name], OUTSIDE[name])) for name in STATE_FIELDS}
    answer = planning.inverse_dynamics(**fields)
    assert answer.success and answer.message.startswith("exceeds limits: fer_joint6: velocity 50 rad/s")
    answer = timed(planning, [0.0, 0.04], [HOME, HOME + 0.4])
    assert answer.success and answer.exceeded and "times the duration meets all limits" in answer.message


# --- Timing of trajectories: as given, slowed down, or the fastest within limits --------------

WAYPOINT_TIMES = np.array([0.0, 0.3, 0.5])
WAYPOINTS = np.array(
    [[0, 0.2, 0, -1.6, 0, 1.8, 0], [0.6, -0.3, 0.4, -2.0, 0.5, 2.2, 0.4], [1.2, 0.3, 0.1, -1.4, -0.3, 1.5, 1.0]]
)


def timed(planning, times=WAYPOINT_TIMES, positions=WAYPOINTS, **options):
    return planning.trajectory_feedforward(trajectory=joint_trajectory(NAMES, times, positions), **options)


def test_the_service_finds_the_fastest_motion(planning):
    answer = timed(planning, timing="fastest", sample_rate=1000.0)
    assert answer.success, answer.message
    assert not answer.exceeded and answer.time_scaling == 1.0
    expected = minimum_time(ARM, WAYPOINTS)
    assert answer.time[-1] == pytest.approx(expected.end, rel=1e-9)
    states = [np.reshape(getattr(answer, field), (-1, 7)) for field in STATE_FIELDS]
    assert check(ARM, Samples(np.array(answer.time), *states)).ok
    points = answer.trajectory.points
    np.testing.assert_allclose([point.positions for point in points], WAYPOINTS, rtol=0, atol=1e-9)
    assert all(len(point.velocities) == len(point.accelerations) == len(point.effort) == 7 for point in points)
    last = points[-1].time_from_start
    assert last.sec + 1e-9 * last.nanosec == pytest.approx(expected.end, abs=1e-9)


def test_the_service_takes_many_waypoints_as_a_path_within_a_tolerance(planning):
    """Positions with four digits are as fast as their curve."""
    curve = through(WAYPOINT_TIMES, WAYPOINTS, ends="free")
    times = np.linspace(0.0, 0.5, 400)
    positions = np.round(curve.derivatives(times, 0)[0], 4)
    answer, wider, refused = (
        timed(planning, times, positions, timing="fastest", path_tolerance=x) for x in (0.0, 0.01, -1.0)
    )
    assert answer.success, answer.message
    assert answer.time[-1] == pytest.approx(minimum_time(ARM, curve).end, rel=0.03)
    assert wider.success and wider.time[-1] < answer.time[-1]
    assert not refused.success and "path_tolerance must be at least 0 (0: by the digits), is -1" in refused.message


NO_TIMING = [
    ({"timing": "late"}, "timing must be given, slow_down or fastest, is 'late'"),
    (
        {"timing": "fastest", "times": WAYPOINT_TIMES[:1], "positions": WAYPOINTS[:1]},
        "waypoints must have shape (K, n), K >= 2, have (1, 7)",
    ),
    (
        {"timing": "slow_down", "positions": WAYPOINTS * np.where(np.arange(7) == 3, 0.0, 1.0)},
        "; slowing down does not help; change the path",
    ),
]


def test_what_has_no_timing_is_refused_in_one_line(planning):
    for options, reason in NO_TIMING:
        answer = timed(planning, **options)
        assert not answer.success and reason in answer.message and "\n" not in answer.message
