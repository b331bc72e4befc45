# SPDX-License-Identifier: Apache-2.0
"""States and parameters of the node, and its starts and ends."""

import re
import signal
import time

import numpy as np
import pytest
from lifecycle_msgs.msg import TransitionEvent
from node_client import EACH_WARNING, refusals_at_start
from paths import CONFIG
from rclpy.parameter import Parameter
from stopped import stopped
from urdf_arms import urdf_arm

import eom_dynamics as eom
from eom_dynamics.control.fields import COMMAND_FIELDS, WRENCH_FIELDS

IIWA = ("--params-file", CONFIG / "iiwa.yaml")
SETPOINT = np.full((5, 7), 0.1)
UP = {"unconfigured": "configure", "inactive": "activate"}
DOWN = {"active": "deactivate", "inactive": "cleanup"}
FRESH, HELD, STOPPING = range(3)


@pytest.fixture(scope="module")
def managed(start_shared, tmp_path_factory):
    """A node with the iiwa that was left to a lifecycle manager."""
    other = tmp_path_factory.mktemp("parameters") / "other.yaml"
    other.write_text("/eom_dynamic: {ros__parameters: {stop_duration: 9.0}}", encoding="utf-8")
    given = ("autostart:=false", "stop_duraton:=5.0", "stop_time:=0.2", "colour:=blue", "robot_source_node:=/rsp")
    return start_shared(
        *IIWA, "--params-file", other, EACH_WARNING, *(word for parameter in given for word in ("-p", parameter))
    )


@pytest.fixture
def unconfigured(managed):
    while (state := managed.state) != "unconfigured":
        assert managed.transition(DOWN[state])
    return managed


@pytest.fixture
def active(managed):
    while (state := managed.state) != "active":
        assert managed.transition(UP[state])
    return managed


# --- States -----------------------------------------------------------------------------


# Activation goes on when a file is there, as on a machine that is busy at that time.
LATE_ACTIVATION = """
import time
from pathlib import Path
from eom_dynamics.ros.dynamics.setpoint_stream import SetpointStream
ignore_waiting = SetpointStream._ignore_waiting
def late(stream):
    while not Path({go!r}).exists():
        time.sleep(0.01)
    ignore_waiting(stream)
SetpointStream._ignore_waiting = late
"""


def test_setpoints_from_before_the_node_is_active_are_not_answered(start, tmp_path):
    """They wait in the middleware while the process starts, and would arrive together."""
    go = tmp_path / "go"
    patch = LATE_ACTIVATION.format(go=str(go))
    client = start(*IIWA, "-p", "safety:=permissive", discovered=False, patch=patch)
    client.wait(client._setpoints.get_subscription_count, "a subscriber of setpoint")
    client.spin(0.5)  # until the node also knows the publisher
    for _ in range(20):
        client.publish(SETPOINT)
    client.spin(0.2)
    go.touch()
    client.wait_for_node()
    client.answers_to(client.publish(SETPOINT))
    values = client.next_diagnostics()[2]
    assert values["published"] == "1" and 0 < int(values["ignored while not active"]) <= 20


def test_a_manager_brings_the_node_up_and_down(unconfigured):
    client = unconfigured
    ignored = int(client.next_diagnostics()[2]["ignored while not active"])
    assert client.transition("configure")
    assert client.state == "inactive"
    client.publish(SETPOINT)
    level, message, _ = client.wait_for_diagnostics(
        lambda *s: s[2]["ignored while not active"] == str(ignored + 1), "the setpoint to be counted"
    )
    assert (level, message) == (1, "1 setpoints ignored: the node is not active")
    answer = client.inverse_dynamics(SETPOINT)
    assert (answer.success, answer.message) == (False, "the node is inactive; it answers only when active")

    assert client.transition("activate")
    answered = len(client.feedforward)
    number = client.publish(SETPOINT)
    client.answers_to(number)
    assert [m.header.stamp.nanosec for m in client.feedforward[answered:]] == [number]
    assert client.inverse_dynamics(SETPOINT).success

    assert client.transition("deactivate")
    client.publish(SETPOINT)
    client.wait_for_diagnostics(lambda *s: s[2]["ignored while not active"] == str(ignored + 2), "one more")
    level, message, values = client.next_diagnostics()
    assert (level, message, values["state"]) == (0, "inactive: setpoints are not answered", "inactive")
    # The stop, and a last command.
    last_commands(client)
    statuses = [message.status for message in client.feedforward[answered:]]
    assert (statuses[0], statuses[-1], {*statuses[1:]}) == (FRESH, HELD, {STOPPING, HELD})
    assert not any(client.feedforward[-1].effort) and len(client.motor_setpoint) == len(client.feedforward)


def test_a_transition_that_the_state_does_not_allow_is_refused_with_the_possible_ones(active):
    for label in ("configure", "activate", "cleanup"):
        assert not active.transition(label)
    assert active.state == "active"
    active.answers_to(active.publish(SETPOINT))
    possible = "state active, possible transitions: deactivate, shutdown"
    for label in ("configure", "activate", "cleanup"):
        assert f"transition refused: {label}: {possible}" in active.process.log
    assert "Traceback" not in active.process.log
    assert active.next_diagnostics()[2]["last refused transition"] == f"cleanup: {possible}"


def test_transitions_by_an_unknown_label_or_number_are_refused_in_each_state(unconfigured):
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState

    def refused(**wanted):
        request = ChangeState.Request(transition=Transition(**wanted))
        assert not unconfigured.call(ChangeState, "change_state", request).success

    possible = {
        "unconfigured": "configure, shutdown",
        "inactive": "cleanup, activate, shutdown",
        "active": "deactivate, shutdown",
    }
    for state, transition in zip(possible, ("configure", "activate", "deactivate"), strict=True):
        for wanted, name in (
            ({"label": "fly"}, "fly"),
            ({"id": 99}, "99"),
            ({"id": Transition.TRANSITION_DESTROY}, "8"),
        ):
            refused(**wanted)
            text = f"transition refused: {name}: state {state}, possible transitions: {possible[state]}\n"
            assert text in unconfigured.process.log
        assert unconfigured.transition(transition)
    assert unconfigured.state == "inactive" and unconfigured.transition("cleanup")
    assert "Traceback" not in unconfigured.process.log


def test_the_node_outlives_requests_that_rclpy_cannot_read(active):
    from rcl_interfaces.msg import Parameter, ParameterValue
    from rcl_interfaces.srv import SetParameters

    # Deep enough for all answers, which may arrive before the first is read.
    service = active.client(SetParameters, "set_parameters", depth=100)
    no_such_type = Parameter(name="start_tolerance", value=ParameterValue(type=99))
    futures = [service.call_async(SetParameters.Request(parameters=[no_such_type])) for _ in range(20)]
    active.wait(lambda: all(future.done() for future in futures), "20 answers")
    assert futures[0].result().results == []
    active.answers_to(active.publish(SETPOINT))
    assert active.set_parameter("start_tolerance", 0.1) == ""
    assert 1 <= active.process.log.count("request cannot be read: 99 is not a valid Parameter.Type") < 20
    assert "Traceback" not in active.process.log


# --- Parameters of the robot ------------------------------------------------------------


def test_a_robot_that_cannot_be_used_is_one_line_and_can_be_corrected(unconfigured):
    client, name = unconfigured, "robot.joints.iiwa_joint_3.\x1b[31m"
    logged = len(client.process.log)
    assert client.set_parameter(name, 1.0) == ""
    assert not client.transition("configure")
    level, message, values = client.next_diagnostics()
    reason = r"parameters: robot.joints.iiwa_joint_3.\x1b[31m: unknown entry"
    assert (level, values["state"]) == (2, "unconfigured")
    assert message.startswith(f"robot not loaded: {reason}"), message
    (line,) = client.process.log[logged:].splitlines()
    assert "[ERROR]" in line and reason in line
    answer = client.inverse_dynamics(SETPOINT)
    assert (answer.success, answer.message) == (False, "the node is unconfigured; it answers only when active")
    assert client.set_parameter(name, None) == ""
    assert client.transition("configure")
    assert client.transition("activate")
    assert client.next_diagnostics()[:2] == (0, "waiting for setpoints")


# --- Other parameters -------------------------------------------------------------------

SETPOINT_QUALITY, OUTPUT_QUALITY = (
    f"qos_overrides.{{namespace}}/{topic}" for topic in ("setpoint.subscription", "feedforward.publisher")
)
REFUSED_AT_START = [
    (("-p", "start_tolerance:=.nan"), "start_tolerance"),
    (("-p", "limits:=fast"), "limits must be one of ignore, warn, refuse, is 'fast'"),
    (("--params-file", "a.yaml"), "--params-file a.yaml: no such file in {folder}: give the path of a parameter file"),
    (("limits:=warn",), "unknown arguments: 'limits:=warn'; write -p before a parameter"),
    (("-p", "robot_source_node:=/a//b"), "must be the name of a node such as /robot_state_publisher, is '/a//b'"),
    (("-p", f"{OUTPUT_QUALITY}.depth:=-1"), "depth must be from 0 to 1000000, is -1"),
    (("-p", f"{SETPOINT_QUALITY}.deadline:=-5"), "deadline must be positive, in ns, or 0 to disable it, is -5"),
]


def test_values_that_are_not_allowed_are_refused_at_the_start(ros, tmp_path):
    cases = [((*IIWA, *arguments), reason) for arguments, reason in REFUSED_AT_START]
    for code, log, reason in refusals_at_start(tmp_path, cases):
        lines = [line for line in log.splitlines() if not line.startswith("[")]
        assert (code, len(lines)) == (1, 1), log
        assert lines[0].startswith("eom_dynamics: ") and reason.replace("{folder}", str(tmp_path)) in lines[0]


def test_misspelt_parameters_and_those_without_effect_are_reported(active):
    log = active.process.log
    (line,) = (line for line in log.splitlines() if "other.yaml" in line)
    assert "[WARN]" in line and "without effect: it is for /eom_dynamic, not for /" in line
    assert "the robot is from parameters robot.*; without effect: robot_source_node" in log
    for name in ("stop_duraton", "stop_time"):
        assert f"unknown parameter {name} has no effect: did you mean stop_duration?" in log
    (known,) = re.findall(r"unknown parameter colour has no effect: known are ([\w.]+(?:, [\w.]+)*)", log)
    assert known.split(", ") == sorted(known.split(", "))
    assert {"autostart", "limits", "stop_duration", "robot", "urdf"} <= set(known.split(", "))
    values = active.next_diagnostics()[2]
    assert sorted(values["parameters without effect"].split(", ")) == ["colour", "stop_duraton", "stop_time"]
    assert values["robot source"] == "parameters robot.*"


CHANGES = [
    ("start_tolerance", 0.15, ""),
    ("autostart", True, "Trying to set a read-only parameter: autostart."),
    ("stop_duration", 0.5, "stop_duration is read-only while the node is active"),
    ("use_sim_time", True, "use_sim_time is read-only while the node is active"),
    ("setpoint_timeout", 1.0, "setpoint_timeout is read-only while the node is active, since a change is a step"),
    ("on_setpoint_loss", "stop", "on_setpoint_loss must be one of none, hold, deactivate, is 'stop'"),
    ("start_tolerance", np.nan, "Parameter start_tolerance out of range"),
    ("colour", "blue", "colour is not a parameter of this node"),
    ("robot.name", "other", "robot.name is read-only while the node is configured"),
]


def test_a_change_of_a_parameter_is_accepted_or_refused(active):
    for name, value, reason in CHANGES:
        before = active.get_parameter(name)
        given = active.set_parameter(name, value)
        assert given.startswith(reason) and bool(given) == bool(reason)
        assert active.get_parameter(name) == (before if reason else value)


# --- Switched off in motion, or at the end -------------------------------------------------------------

PANDA = ("--params-file", CONFIG / "panda.yaml", EACH_WARNING)
ARM = eom.ElasticArm(eom.load_robot("panda"))
MOVING = np.zeros((5, 7))
MOVING[0] = 0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0
MOVING[1], MOVING[2] = 0.3, 0.5
STILL = np.zeros((4, 7))


@pytest.fixture(scope="module")
def held():
    """A loop with an arm at rest after a stop of the motion."""
    return stopped(ARM, MOVING, 0.3)


def in_motion(client, **fields):
    """Publish setpoints of an arm in motion until the last is answered."""
    client.frame = "base"
    for _ in range(4):  # in both ways of the node
        number = client.publish(MOVING, **fields)
    client.answers_to(number)


def last_commands(client):
    """The last command on feedforward and motor_setpoint of a node that falls silent; it may have ended."""
    client.until_silent()
    return client.feedforward[-1], client.motor_setpoint[-1]


WRENCH = {name: np.full((1, 6), 1.0 * (name == "wrench")) for name in WRENCH_FIELDS}
REMAINING = {"gravity": {}, "keep": {"wrench": tuple(row[0] for row in WRENCH.values())}}


@pytest.fixture(scope="module")
def activated(start_shared):
    """Activate a node with parameters; it has no last command."""
    client = start_shared(*PANDA, depth=0)
    defaults = {"setpoint_timeout": 0.0, "on_setpoint_loss": "none", "effort_on_deactivate": "zero"}

    def activate(**parameters):
        if client.state == "active":
            assert client.transition("deactivate")
        assert client.set_parameters(defaults | {"stop_duration": 0.3} | parameters) == ""
        assert client.transition("activate")
        return client

    return activate


@pytest.mark.parametrize("efforts", REMAINING)
def test_a_parameter_says_which_efforts_remain(activated, held, efforts):
    client = activated(effort_on_deactivate=efforts)
    in_motion(client, **WRENCH)
    refusals = client.process.log.count("setpoint refused")
    client.publish(MOVING * np.nan)  # changes nothing
    client.wait(lambda: client.process.log.count("setpoint refused") > refusals, "the refusal")
    assert client.transition("deactivate")
    remains = ARM.feedforward(held.setpoint["q"], *STILL, **REMAINING[efforts])
    last, _ = last_commands(client)
    # The effort of the first joint is the rounding of 26 N m of other joints.
    np.testing.assert_allclose(last.effort, remains.tau, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(last.motor_effort, remains.motor_effort, rtol=1e-9, atol=1e-15)
    assert not np.any(last.motor_velocity) and client.effort_command[-1].data == last.motor_effort


def test_a_response_to_lost_setpoints_is_continued(activated, held):
    client = activated(setpoint_timeout=0.3, on_setpoint_loss="hold", effort_on_deactivate="gravity")
    in_motion(client)
    client.wait_for_diagnostics(lambda *s: s[2]["watchdog"] == "held", "the end of the stop")
    assert client.transition("deactivate")
    last, _ = last_commands(client)
    np.testing.assert_allclose(last.effort, ARM.dynamics.gravity(held.setpoint["q"]), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(last.motor_position, held.command["motor_position"])
    assert not np.any(last.motor_velocity)
    assert "efforts: gravity\n" in client.process.log


def test_efforts_fade_to_zero_before_the_node_is_inactive(activated):
    """Monotonically, in many steps; a busy machine leaves commands out."""
    client = activated(effort_on_deactivate="zero", stop_duration=0.3)
    in_motion(client)
    client.feedforward.clear()
    assert client.transition("deactivate")
    efforts = np.abs([m.motor_effort for m in client.feedforward if m.status == HELD])[:, 1]
    assert efforts[0] > 10 and efforts[-1] == 0 and len(set(efforts)) > 5
    assert np.diff(efforts).max() <= 1e-9


def test_the_node_answers_while_its_arm_is_stopped(activated):
    client = activated(stop_duration=2.0)
    count = int(client.next_diagnostics()[2]["ignored while not active"])
    in_motion(client)
    first, second = client.begin_transition("deactivate"), client.begin_transition("deactivate")
    client.wait(lambda: client.feedforward[-1].status == STOPPING, "the stop")
    assert client.state == "active"
    assert client.inverse_dynamics(MOVING).success
    ignored = client.publish(MOVING)
    client.wait_for_diagnostics(lambda *s: s[2]["ignored while not active"] == str(count + 1), "the setpoint")
    assert "read-only while the node is active" in client.set_parameter("stop_duration", 1.0)
    assert not first.done()
    client.wait(lambda: first.done() and second.done(), "the answers")
    assert (first.result().success, second.result().success) == (True, False)
    assert client.state == "inactive"
    assert all(message.header.stamp.nanosec != ignored for message in client.feedforward)


def test_where_no_stop_is_possible_the_arm_rests_at_once(start):
    """Its springs would be slack: at their least stiffness, they exert no efforts."""
    client = start("--params-file", CONFIG / "vsa_planar_2r.yaml", depth=0)
    hanging = np.array([[-np.pi / 2, 0.0], [1.0, 0.0], *np.zeros((3, 2))])
    before = client.answers_to(client.publish(hanging, stiffness=[100.0, 100.0]))[0]
    assert client.transition("deactivate")
    last, _ = last_commands(client)
    # At rest, springs that hang carry nothing.
    np.testing.assert_allclose(last.motor_position, before.motor_position, atol=0.05)
    assert not any(np.any(getattr(last, name)) for name in COMMAND_FIELDS if name != "motor_position")
    assert "no stop is possible: numbers would be too large, or a spring slack" in client.process.log


def test_a_second_signal_ends_the_node_at_once_and_at_rest(activated):
    """The last test of the node that these share."""
    client = activated(stop_duration=30.0)
    in_motion(client)
    client.process.process.send_signal(signal.SIGINT)
    client.wait(lambda: client.feedforward[-1].status == STOPPING, "the stop")
    client.spin(0.5)  # an earlier signal counts as the first
    client.wait(lambda: np.min(np.subtract(client.feedforward[-1].motor_position, MOVING[0])) > 0.05, "motion")
    assert client.process.stop(signal.SIGTERM) == 0
    last, setpoint = last_commands(client)
    assert last.status == HELD and not np.any(last.effort) and not np.any(setpoint.velocity)
    away = np.subtract(last.motor_position, MOVING[0])
    assert np.min(away) > 0.05 and np.max(away) < 2.0  # of 4.5 rad


# --- A robot of another node --------------------------------------------------------------


def test_each_configuration_has_the_present_robot_of_a_slow_node_and_so_has_the_planning_node(start, other):
    """Also when that node answers later than the requests of the transitions come, or not at all."""
    source, end = other("source", namespace="/renewed", robot_description=urdf_arm("first"))
    source.create_timer(0.01, lambda: time.sleep(0.05))  # its services wait for it
    given = ("-p", "robot_source_node:=/renewed/source", {"robot_sources.ROBOT_TIMEOUT": 2.0})
    node = start(*given, discovered=False)
    renamed = ("-r", f"eom_dynamics/transition_event:={node.process.name}/transition_event")
    planning = start.planning(*given, *renamed, beside=node.process)
    planning.join(node)
    for client in (node, planning):
        client.wait_for_diagnostics(lambda *s: s[2]["robot"] == "first", "the first robot")
    for name in ("second", "third"):
        source.set_parameters([Parameter("robot_description", value=urdf_arm(name))])
        assert all(map(node.transition, ("deactivate", "cleanup", "configure", "activate")))
        assert node.next_diagnostics()[2]["robot"] == name
        planning.wait_for_diagnostics(lambda *s, name=name: s[2]["robot"] == name, "the same robot")
    end()
    assert all(map(node.transition, ("deactivate", "cleanup")))
    assert not node.transition("configure")
    level, message, _ = node.next_diagnostics()
    assert level == 2 and message.startswith("robot not loaded: none from parameters of node /renewed/source: ")
    assert node.state == "unconfigured"


def test_the_planning_node_reads_the_file_of_the_robot_again_with_the_dynamics_node(start, tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(urdf_arm("first"), encoding="utf-8")
    node = start("-p", f"robot_file:={file}", discovered=False)
    renamed = ("-r", f"eom_dynamics/transition_event:={node.process.name}/transition_event")
    planning = start.planning("-p", f"robot_file:={file}", *renamed, beside=node.process)
    planning.join(node)
    planning.wait_for_diagnostics(lambda *s: s[2]["robot"] == "first", "the first robot")
    node.wait_for_diagnostics(lambda *s: s[2]["state"] == "active", "the node")
    loads = planning.process.log.count("robot first")
    assert all(map(node.transition, ("deactivate", "cleanup", "configure")))
    file.write_text(urdf_arm("second"), encoding="utf-8")
    for _ in range(20):  # an event is lost until its publisher has discovered the planning node
        assert all(map(node.transition, ("cleanup", "configure")))
        if planning.next_diagnostics()[2]["robot"] == "second":
            break
    planning.wait_for_diagnostics(lambda *s: s[2]["robot"] == "second", "the second robot")
    assert planning.process.log.count("robot first") == loads


def test_the_planning_node_reads_the_file_of_the_robot_again_when_a_dynamics_node_appears(start, other, tmp_path):
    """The events of a node that was configured before the two have discovered each other are lost."""
    file = tmp_path / "arm.urdf"
    file.write_text(urdf_arm("first"), encoding="utf-8")
    topic = "/appearing/transition_event"
    planning = start.planning("-p", f"robot_file:={file}", "-r", f"eom_dynamics/transition_event:={topic}")
    planning.wait_for_diagnostics(lambda *s: s[2]["robot"] == "first", "the first robot")
    file.write_text(urdf_arm("second"), encoding="utf-8")
    planning.spin(1.0)
    assert planning.next_diagnostics()[2]["robot"] == "first"
    dynamics, _ = other("appearing")
    dynamics.create_publisher(TransitionEvent, topic, 10)
    planning.wait_for_diagnostics(lambda *s: s[2]["robot"] == "second", "the second robot")
