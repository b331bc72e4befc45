# SPDX-License-Identifier: Apache-2.0
"""States, parameters, and the ways in which the node starts and ends."""

import re
import signal

import numpy as np
import pytest
from node_client import CONFIG

import eom_dynamics as eom
from eom_dynamics.stream.conversions import STATE_FIELDS

IIWA = ("--params-file", CONFIG / "iiwa.yaml")
FAST = ("-p", "diagnostic_period:=0.1")
SETPOINT = {name: np.full(7, 0.1) for name in STATE_FIELDS}


def holding_effort(robot):
    zero = np.zeros(robot.n)
    return eom.Dynamics(robot).inverse_dynamics(np.full(robot.n, 0.1), zero, zero, zero, zero)[0]


def test_without_autostart_the_node_waits_for_its_manager(start):
    client = start(*IIWA, *FAST, "-p", "autostart:=false")
    assert client.state == "unconfigured"
    assert client.transition("configure")
    assert client.state == "inactive"

    client.publish(**SETPOINT)
    level, message, values = client.wait_for_diagnostics(lambda *s: s[2]["ignored while not active"] == "1", "one more")
    assert (level, message) == (1, "1 setpoints ignored: the node is not active")
    assert (values["received"], values["published"], values["refused"]) == ("1", "0", "0")
    answer = client.inverse_dynamics(**SETPOINT)
    assert (answer.success, answer.message) == (False, "the node is inactive; it answers only when active")

    assert client.transition("activate")
    number = client.publish(**SETPOINT)
    client.answers_to(number)
    assert [m.header.stamp.nanosec for m in client.feedforward] == [number]
    assert client.inverse_dynamics(**SETPOINT).success

    assert client.transition("deactivate")
    client.publish(**SETPOINT)
    client.wait_for_diagnostics(lambda *s: s[2]["ignored while not active"] == "2", "one more")
    level, message, values = client.next_diagnostics()
    assert (level, message, values["state"]) == (0, "inactive: setpoints are not answered", "inactive")
    assert len(client.feedforward) == len(client.motor_setpoint) == len(client.effort_command) == 1


def test_a_robot_may_change_while_the_node_is_unconfigured(start):
    client = start(*IIWA, *FAST)
    name = "robot.joints.iiwa_joint_7.mass"
    reason = client.set_parameter(name, 2.0)
    assert reason.startswith(f"{name} is read-only while the node is configured")
    assert client.get_parameter(name) == 0.35432
    assert client.transition("deactivate")
    assert client.set_parameter(name, 2.0).startswith(f"{name} is read-only")
    assert client.transition("cleanup")
    assert client.next_diagnostics()[2]["robot"] == ""

    assert client.set_parameter(name, 2.0) == ""
    assert client.transition("configure")
    assert client.transition("activate")
    zero = np.zeros(7)
    effort = client.inverse_dynamics(position=np.full(7, 0.1), velocity=zero, acceleration=zero).effort

    parameters = eom_parameters("iiwa.yaml")
    before = holding_effort(eom.robot_from_parameters(parameters))
    parameters["joints"]["iiwa_joint_7"]["mass"] = 2.0
    wanted = holding_effort(eom.robot_from_parameters(parameters))
    np.testing.assert_allclose(effort, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
    assert np.abs(wanted - before).max() > 1


def test_another_robot_can_take_the_place_of_the_first(start):
    client = start(*IIWA, *FAST)
    assert client.transition("deactivate")
    assert client.transition("cleanup")
    for name, value in flat({"robot": eom_parameters("planar_2r.yaml")}).items():
        assert client.set_parameter(name, value) == ""
    # The joints of the first robot are still there.
    assert not client.transition("configure")
    assert client.state == "unconfigured"
    level, message, _ = client.next_diagnostics()
    assert level == 2
    assert message.startswith("robot not loaded: parameters: robot.joints.iiwa_joint_1: unknown entry")

    for name in flat({"robot": eom_parameters("iiwa.yaml")}):
        if ".iiwa_joint_" in name:
            assert client.set_parameter(name, None) == ""
    assert client.transition("configure")
    assert client.transition("activate")
    assert client.next_diagnostics()[2]["robot"] == "planar_2r"
    zero = np.zeros(2)
    effort = client.inverse_dynamics(position=np.full(2, 0.1), velocity=zero, acceleration=zero).effort
    np.testing.assert_allclose(effort, holding_effort(eom.load_robot("planar_2r")), rtol=1e-12)


def eom_parameters(file):
    import yaml

    return yaml.safe_load((CONFIG / file).read_text())["/**"]["ros__parameters"]["robot"]


def flat(tree, prefix=""):
    """Parameters by full name."""
    leaves = {}
    for key, value in tree.items():
        leaves |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return leaves


BAD_ROBOTS = {
    "negative mass": (
        (*IIWA, "-p", "robot.joints.iiwa_joint_3.mass:=-1.0"),
        "parameters: robot.joints.iiwa_joint_3.mass: must be greater than 0, is -1",
    ),
    "unknown entry": (
        (*IIWA, "-p", "robot.joints.iiwa_joint_3.stifness:=1.0"),
        "parameters: robot.joints.iiwa_joint_3.stifness: unknown entry",
    ),
    "value and section": (
        (*IIWA, "-p", "robot.joints.iiwa_joint_3:=1.0"),
        "parameters: robot.joints.iiwa_joint_3 is a value, and has robot.joints.iiwa_joint_3.",
    ),
    "nan": ((*IIWA, "-p", "robot.joints.iiwa_joint_1.mass:=.nan"), "parameters: robot.joints.iiwa_joint_1.mass: "),
}


@pytest.mark.parametrize(("arguments", "reason"), BAD_ROBOTS.values(), ids=BAD_ROBOTS)
def test_a_robot_that_cannot_be_used_is_one_line_and_can_be_corrected(start, arguments, reason):
    client = start(*arguments, *FAST)
    assert client.state == "unconfigured"
    level, message, values = client.next_diagnostics()
    assert level == 2
    assert message.startswith(f"robot not loaded: {reason}"), message
    assert values["state"] == "unconfigured"
    lines = [line for line in client.process.log.splitlines() if f".{client.process.name}]" in line]
    assert len(lines) == 1, lines
    assert "[ERROR]" in lines[0]
    assert reason in lines[0]
    assert "Traceback" not in client.process.log
    answer = client.inverse_dynamics(**SETPOINT)
    assert (answer.success, answer.message) == (False, "the node is unconfigured; it answers only when active")

    for parameter in [a.partition(":=")[0] for a in map(str, arguments) if a.startswith("robot.")]:
        assert client.set_parameter(parameter, None) == ""
    for name, value in flat({"robot": eom_parameters("iiwa.yaml")}).items():
        assert client.set_parameter(name, value) == ""
    assert client.transition("configure")
    assert client.transition("activate")
    assert client.next_diagnostics()[:2] == (0, "waiting for setpoints")


def test_a_transition_that_the_state_does_not_allow_is_refused(start):
    client = start(*IIWA, *FAST)
    for label in ("configure", "activate", "cleanup"):
        assert not client.transition(label)
    assert client.state == "active"
    client.answers_to(client.publish(**SETPOINT))
    assert client.process.log.count("transition refused in state active") == 3
    assert "Traceback" not in client.process.log


def test_the_node_outlives_requests_that_rclpy_cannot_read(start):
    from rcl_interfaces.msg import Parameter, ParameterValue
    from rcl_interfaces.srv import SetParameters

    client = start(*IIWA, *FAST)
    service = client.node.create_client(SetParameters, f"/{client.process.name}/{client.process.name}/set_parameters")
    client.wait(service.service_is_ready, "set_parameters")
    no_such_type = Parameter(name="diagnostic_period", value=ParameterValue(type=99))
    futures = [service.call_async(SetParameters.Request(parameters=[no_such_type])) for _ in range(20)]
    client.wait(lambda: all(future.done() for future in futures), "20 answers")
    assert futures[0].result().results == []
    client.answers_to(client.publish(**SETPOINT))
    assert client.set_parameter("diagnostic_period", 0.2) == ""
    assert 1 <= client.process.log.count("request cannot be read: 99 is not a valid Parameter.Type") < 5
    assert "Traceback" not in client.process.log


def test_after_shutdown_the_node_answers_nothing(start):
    client = start(*IIWA, *FAST)
    assert client.transition("active_shutdown")
    assert client.state == "finalized"
    client.publish(**SETPOINT)
    client.wait_for_diagnostics(lambda *s: s[2]["ignored while not active"] == "1", "one more")
    assert client.feedforward == []
    assert client.process.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize("executor", ["events", "single_threaded"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_node_in_good_order(start, executor, number):
    client = start(*IIWA, *FAST, "-p", f"executor:={executor}")
    client.answers_to(client.publish(**SETPOINT))
    for _ in range(200):  # some of them are still to be answered when the signal comes
        client.publish(**SETPOINT)
    assert client.process.stop(number) == 0
    log = client.process.log
    assert "Traceback" not in log
    assert "rror" not in log.replace("RTPS_TRANSPORT_SHM", "").replace(" Error]", ""), log


def test_a_signal_while_the_node_comes_up_ends_it_too(start):
    client = start(*IIWA, *FAST, discovered=False)
    # Its first word is that of configuring: it does not spin yet.
    client.wait(lambda: "robot iiwa" in client.process.log, "the node to configure")
    assert client.process.stop(signal.SIGINT) == 0
    assert "Traceback" not in client.process.log


REFUSED_AT_START = {
    "out of range": (("-p", "diagnostic_period:=0.0"), "diagnostic_period"),
    "nan": (("-p", "warning_period:=.nan"), "warning_period"),
    "wrong type": (("-p", "autostart:=maybe"), "autostart"),
    "no such executor": (("-p", "executor:=fast"), "executor must be one of events, single_threaded, is 'fast'"),
    "no such effort": (("-p", "effort_command:=tau"), "effort_command must be one of motor, joint, is 'tau'"),
    "no such hold": (
        ("-p", "hold_last_command:=sometimes"),
        "hold_last_command must be one of stiffness, always, never, is 'sometimes'",
    ),
    "no such file": (("--params-file", "missing.yaml"), "missing.yaml"),
    "no such quality": (
        ("-p", "qos_overrides.{namespace}/setpoint.subscription.reliability:=perhaps"),
        "reliability",
    ),
    "no such depth": (
        ("-p", "qos_overrides.{namespace}/setpoint.subscription.depth:=99999999999"),
        "depth must be from 0 to 1000000, is 99999999999",
    ),
    "negative depth": (
        ("-p", "qos_overrides.{namespace}/feedforward.publisher.depth:=-1"),
        "depth must be from 0 to 1000000, is -1",
    ),
}


@pytest.mark.parametrize(("arguments", "reason"), REFUSED_AT_START.values(), ids=REFUSED_AT_START)
def test_a_value_that_is_not_allowed_is_refused_at_the_start(start, arguments, reason):
    client = start(*IIWA, *arguments, discovered=False)
    assert client.process.process.wait(30) == 1
    assert "Traceback" not in client.process.log
    lines = [line for line in client.process.log.splitlines() if line.startswith("eom_dynamics: ")]
    assert len(lines) == 1, client.process.log
    assert reason in lines[0]


def test_a_misspelt_parameter_is_reported(start):
    client = start(*IIWA, *FAST, "-p", "diagnostic_perod:=5.0", "-p", "colour:=blue")
    log = client.process.log
    assert (
        "parameter diagnostic_perod is not one of this node and has no effect: did you mean diagnostic_period?" in log
    )
    (known,) = re.findall(r"parameter colour is not one of this node and has no effect: known are (\w+(?:, \w+)*)", log)
    assert known.split(", ") == sorted(known.split(", "))
    assert {"autostart", "clip_to_limits", "diagnostic_period", "robot", "urdf"} <= set(known.split(", "))
    values = client.next_diagnostics()[2]
    assert sorted(values["parameters without effect"].split(", ")) == ["colour", "diagnostic_perod"]


CHANGES = {
    "period": ("diagnostic_period", 0.2, ""),
    "same period": ("diagnostic_period", 0.1, ""),
    "period too short": ("diagnostic_period", 0.01, "Parameter diagnostic_period out of range"),
    "period nan": ("diagnostic_period", float("nan"), "Parameter diagnostic_period out of range"),
    "period integer": ("diagnostic_period", 1, "Wrong parameter type"),
    "period removed": ("diagnostic_period", None, "Static parameter cannot be undeclared"),
    "warnings": ("warning_period", 2.5, ""),
    "warnings negative": ("warning_period", -1.0, "Parameter warning_period out of range"),
    "autostart": ("autostart", False, "Trying to set a read-only parameter: autostart."),
    "executor": ("executor", "single_threaded", "Trying to set a read-only parameter: executor."),
    "effort": ("effort_command", "joint", "effort_command is read-only while the node is active"),
    "effort unknown": ("effort_command", "tau", "effort_command must be one of motor, joint, is 'tau'"),
    "unknown": ("colour", "blue", "colour is not a parameter of this node"),
    "robot": ("robot.name", "other", "robot.name is read-only while the node is configured"),
    "new entry of the robot": ("robot.colour", "blue", "robot.colour is read-only while the node is configured"),
}


@pytest.mark.parametrize(("name", "value", "reason"), CHANGES.values(), ids=CHANGES)
def test_a_change_of_a_parameter_is_taken_or_refused(iiwa, name, value, reason):
    before = iiwa.get_parameter(name)
    given = iiwa.set_parameter(name, value)
    assert given.startswith(reason)
    assert bool(given) == bool(reason)
    assert iiwa.get_parameter(name) == (before if reason else value)


def test_the_diagnostic_period_changes_while_the_node_runs(start):
    client = start(*IIWA, "-p", "diagnostic_period:=3600.0", discovered=False)
    client.wait(lambda: "robot iiwa" in client.process.log, "the node")
    assert client.set_parameter("diagnostic_period", 0.1) == ""
    count = len(client.diagnostics)
    client.wait(lambda: len(client.diagnostics) > count + 3, "diagnostics in the new period")


def test_what_effort_command_carries_changes_only_while_inactive(start):
    client = start(*IIWA, *FAST)
    moving = {**SETPOINT, "acceleration": np.full(7, 5.0)}
    feedforward, _, effort_command = client.answers_to(client.publish(**moving))
    assert effort_command.data == feedforward.motor_effort
    assert client.transition("deactivate")
    assert client.set_parameter("effort_command", "joint") == ""
    assert client.transition("activate")
    feedforward, _, effort_command = client.answers_to(client.publish(**moving))
    assert effort_command.data == feedforward.effort
    assert feedforward.effort != feedforward.motor_effort
