# SPDX-License-Identifier: Apache-2.0
"""``safety: strict``, the default: no hostile stream leads to a command beyond a limit, or to a jump."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hostile_streams import COUNT, HOME, PANDA, STREAMS, assert_harmless, wave
from paths import CONFIG
from sensor_msgs.msg import JointState

import eom_dynamics as eom
from eom_dynamics.control.settings import SAFETY
from eom_dynamics.control.trajectories import write_spline
from eom_dynamics.ros.interfaces import SplineTrajectory, TrajectoryStatus
from eom_dynamics.trajectory import through


@pytest.fixture(scope="module")
def node(start_shared: Any) -> Any:
    # This process may be held up for longer than the timeout of strict.
    options = ("safety:=strict", "setpoint_timeout:=2")
    return start_shared("-p", "robot_file:=panda", *(word for option in options for word in ("-p", option)))


@pytest.fixture
def client(node: Any) -> Iterator[Any]:
    for transition in ("deactivate", "activate"):
        assert node.transition(transition)
    node.until_silent()
    node.motor_setpoint.clear()
    node.feedforward.clear()
    return node


def send(client: Any, state: np.ndarray, stamp: int) -> None:
    seconds, nanoseconds = divmod(stamp, 10**9)
    client.publish(state, at=nanoseconds, seconds=seconds)


def test_the_defaults_are_those_of_the_level(node: Any, start: Any) -> None:
    off = start("-p", "robot_file:=panda", "-p", "safety:=off", "-p", "limits:=warn")
    strict = SAFETY["strict"] | {"setpoint_timeout": 2.0}
    for client, values in ((node, strict), (off, SAFETY["off"] | {"limits": "warn"})):
        assert {name: client.get_parameter(name) for name in values} == values


def test_a_robot_with_limits_in_degrees_is_refused_unless_it_is_accepted(start: Any) -> None:
    given = ("safety:=strict", "autostart:=false", "robot.joints.iiwa_joint_3.limits.upper:=170.0")
    client = start("--params-file", CONFIG / "iiwa.yaml", *(word for parameter in given for word in ("-p", parameter)))
    assert not client.transition("configure")
    message = client.next_diagnostics()[1]
    said = "robot not loaded: iiwa_joint_3: limits are upper 170 rad; if in degrees: 2.967; correct them, or set "
    assert message.startswith(f"{said}robot.implausible: accept if they are meant"), message
    assert client.set_parameter("robot.implausible", "accept") == ""
    assert client.transition("configure")


def test_a_setpoint_at_rest_is_answered_again_also_with_its_old_stamp(client: Any) -> None:
    rest, moving = np.zeros((2, 5, 7))
    rest[0] = moving[0] = HOME
    moving[1] = 0.01
    now = client.node.get_clock().now().nanoseconds
    for age in (0.0, 3.0, 50.0):
        send(client, rest, now - round(age * 1e9))
        client.wait(lambda: client.feedforward, f"the answer to a setpoint of {age:g} s before")
        client.until_silent()
        client.feedforward.clear()
    before = client.next_diagnostics()[2]["dropped as too old"]
    for state, age in ((moving, 3.0), (rest, 70.0)):
        send(client, state, now - round(age * 1e9))
    client.wait_for_diagnostics(lambda *x: int(x[2]["dropped as too old"]) == int(before) + 2, "two are dropped")
    assert not client.feedforward


# All of them go through the loop in test/control/test_safety.py; these, also through messages, with their stamps.
@pytest.mark.parametrize("name", ["an hour old", "without stamps"])
def test_a_hostile_stream_commands_nothing_beyond_a_limit_and_no_jump(client: Any, name: str, rng: np.random.Generator):
    for _ in range(10):
        client.spin(0.003)
        send(client, wave(0), client.node.get_clock().now().nanoseconds)
    client.wait(lambda: client.motor_setpoint, "a command")
    begin = client.node.get_clock().now().nanoseconds
    for _ in range(COUNT):
        client.spin(0.003)
        state, stamp = STREAMS[name]((client.node.get_clock().now().nanoseconds - begin) * 1e-6, rng)
        send(client, state, 0 if stamp is None else begin + round(stamp))
    client.spin(0.3)
    before = client.next_diagnostics()[2]
    assert name == "without stamps" or int(before["refused"]) + int(before["dropped as too old"]) > 0
    columns = [client.motor_setpoint, client.feedforward, client.motor_setpoint]
    fields = [
        [getattr(m, name) for m in column]
        for name, column in zip(("position", "effort", "velocity"), columns, strict=True)
    ]
    # A busy machine may hold up this process or the node for longer than messages are apart.
    assert_harmless(*map(np.array, fields), period=0.15)


def test_a_first_setpoint_in_degrees_of_a_joint_without_limits_is_asked_for_its_unit(start: Any) -> None:
    client = start("-p", "robot_file:=planar_2r", "-p", "safety:=strict")
    assert not np.isfinite(eom.load_robot("planar_2r").joints[0].limits.upper)
    unchecked = "joint_1, joint_2: steps are not checked: give these motors, or their joints, a limit of velocity"
    assert client.process.log.count(unchecked) == 1
    state = np.zeros((5, 2))
    state[0] = [45.0, 0.0]
    client.repeat(
        lambda: send(client, state, client.node.get_clock().now().nanoseconds),
        lambda: client.values["last refusal"],
        "a refusal",
    )
    assert "joint_1 at 45 rad is 7.16 turns from zero: was that in degrees?" in client.values["last refusal"]
    assert not client.motor_setpoint
    send(client, np.radians(state), client.node.get_clock().now().nanoseconds)
    client.wait(lambda: client.motor_setpoint, "a command")


@pytest.fixture(scope="module")
def states(node: Any) -> Any:
    return node.node.create_publisher(JointState, "joint_states", 10)


@pytest.fixture
def measured(client: Any, states: Any) -> Iterator[None]:
    """The node knows that the arm is at HOME, and goes on to be told."""
    message = JointState(name=PANDA.joint_names, position=HOME.tolist())
    timer = client.node.create_timer(0.01, lambda: states.publish(message))
    client.next_diagnostics()  # made after it has received some of them
    yield
    client.node.destroy_timer(timer)


@pytest.mark.usefixtures("measured")
def test_a_stream_begins_where_joint_states_say_the_arm_is(client: Any) -> None:
    away = wave(0)
    away[0, 3] += 0.5
    for _ in range(5):
        send(client, away, client.node.get_clock().now().nanoseconds)
        client.spin(0.02)
    text = "fer_joint4 is 0.5 rad from where the arm is, more than 0.01 (parameter resume_distance): begin there"
    client.wait(lambda: text in client.values["last refusal"], "a refusal")
    assert not client.motor_setpoint
    send(client, wave(0), client.node.get_clock().now().nanoseconds)
    client.wait(lambda: client.motor_setpoint, "a command")


@pytest.mark.usefixtures("measured")
def test_a_trajectory_begins_where_joint_states_say_the_arm_is(client: Any) -> None:
    trajectories = client.publisher(SplineTrajectory, "spline_trajectory")
    statuses = client.collect(TrajectoryStatus, "trajectory_status")
    message = SplineTrajectory(joint_names=PANDA.joint_names)
    start = HOME + np.array([0, 0, 0.2, 0, 0, 0, 0])
    write_spline(message, through([0.0, 2.0], [start, start + 0.05]), PANDA.joint_names)

    trajectories.publish(message)
    client.wait(lambda: [x for x in statuses if x.status == TrajectoryStatus.REFUSED], "a refusal")
    text = "fer_joint3 starts 0.2 rad from its commanded position at that time, or where it is measured"
    assert text in statuses[-1].message and not client.motor_setpoint


def test_without_joint_states_it_is_said_once_that_the_start_is_not_compared(start: Any) -> None:
    client = start("-p", "robot_file:=panda", "-p", "safety:=strict")
    for _ in range(5):
        client.repeat(
            lambda: send(client, wave(0), client.node.get_clock().now().nanoseconds),
            lambda: client.motor_setpoint,
            "a command",
        )
    assert client.process.log.count("the start is not compared with where the arm is: joint_states") == 1


@pytest.mark.parametrize("known", [False, True])
def test_a_first_setpoint_as_fast_as_in_degrees_is_asked_for_its_unit(
    client: Any, known: bool, request: pytest.FixtureRequest
) -> None:
    """Whether it is known where the arm is, or not."""
    if known:
        request.getfixturevalue("measured")
    state = wave(0)
    state[1, 0] = 45.0
    client.repeat(
        lambda: send(client, state, client.node.get_clock().now().nanoseconds),
        lambda: "was that in degrees? Angles are in rad" in client.values["last refusal"],
        "a refusal",
    )
    assert not client.motor_setpoint
