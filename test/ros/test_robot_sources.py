# SPDX-License-Identifier: Apache-2.0
"""Where the node takes its robot from: each source, which comes before which, and what is wrong with one."""

import json
import signal

import numpy as np
import pytest
from node_client import CONFIG
from urdf_arms import urdf_arm

import eom_dynamics as eom
from eom_dynamics.robot import robot_from_urdf
from eom_dynamics.stream.conversions import STATE_FIELDS

FAST = ("-p", "diagnostic_period:=0.1")
IIWA = ("--params-file", CONFIG / "iiwa.yaml")
ARM = urdf_arm("arm")
HEAVY = urdf_arm("heavy", mass=2.5)


def parameter_file(folder, **parameters):
    path = folder / "more.yaml"
    path.write_text(json.dumps({"/**": {"ros__parameters": parameters}}))
    return ("--params-file", path)


def up_with(client, name):
    """Wait until the node is active with the robot of this name; returns its diagnostic values."""
    condition = lambda level, message, values: values["robot"] == name and values["state"] == "active"  # noqa: E731
    return client.wait_for_diagnostics(condition, f"robot {name}")[2]


def assert_computes(client, robot):
    """The node answers setpoints, motor side and all, as the library does for this robot."""
    state = np.random.default_rng(7).normal(size=(5, robot.n))
    fields = dict(zip(STATE_FIELDS, state, strict=True))
    feedforward, _, _ = client.answers_to(client.publish(joint_names=list(robot.joint_names), **fields))
    wanted = eom.ElasticArm(robot).feedforward(*state)
    for name, values in [
        ("effort", wanted.tau),
        ("effort_acceleration", wanted.taudd),
        ("motor_position", wanted.motor_position),
        ("motor_effort", wanted.motor_effort),
    ]:
        np.testing.assert_allclose(getattr(feedforward, name), values, rtol=0, atol=1e-12 * np.abs(values).max())


# --- Each source ------------------------------------------------------------------------


def test_the_parameter_robot_description(start, tmp_path):
    client = start(*FAST, *parameter_file(tmp_path, robot_description=ARM))
    assert up_with(client, "arm")["robot source"] == "parameter robot_description"
    assert_computes(client, eom.load_robot(ARM))


def test_another_node_with_a_robot_description(start, other):
    other("rsp", robot_description=ARM, use_tf_static=True)
    client = start(*FAST, "-p", "robot_source_node:=/rsp")
    assert up_with(client, "arm")["robot source"] == "parameters of node /rsp"
    assert_computes(client, eom.load_robot(ARM))


def test_another_node_with_a_robot_section(start, other):
    import yaml

    section = yaml.safe_load((CONFIG / "planar_2r.yaml").read_text())["/**"]["ros__parameters"]
    other("arm_server", **section, robot_description=ARM)
    client = start(*FAST, "-p", "robot_source_node:=/arm_server")
    up_with(client, "planar_2r")
    assert_computes(client, eom.load_robot("planar_2r"))


def test_a_relative_name_is_of_the_node_s_namespace(start, other):
    client = start(*FAST, "-p", "robot_source_node:=rsp")
    message = client.next_diagnostics()[1]
    assert message.startswith(f"waiting for the robot from parameters of node /{client.process.name}/rsp: ")


@pytest.mark.parametrize("executor", ["events", "single_threaded"])
def test_the_topic_that_was_published_before(start, describe, executor):
    describe(ARM)
    client = start(*FAST, "-r", f"robot_description:={describe.topic}", "-p", f"executor:={executor}")
    assert up_with(client, "arm")["robot source"] == f"topic {describe.topic}"
    assert_computes(client, eom.load_robot(ARM))


def test_the_topic_that_is_published_later(start, describe):
    client = start(*FAST, "-r", f"robot_description:={describe.topic}", "-p", "robot_timeout:=0.3")
    _, message, values = client.next_diagnostics()
    wanted = f"waiting for the robot from topic {describe.topic}: nothing was published on it yet"
    assert message == wanted
    assert values["state"] == client.state == "unconfigured"
    client.wait_for_diagnostics(lambda level, message, _: level == 2 and message == wanted, "an error when overdue")
    answer = client.inverse_dynamics(position=np.zeros(2), velocity=np.zeros(2), acceleration=np.zeros(2))
    assert (answer.success, answer.message) == (False, "the node is unconfigured; it answers only when active")
    assert "[ERROR]" not in client.process.log
    describe(ARM)
    assert up_with(client, "arm")
    assert client.next_diagnostics()[:2] == (0, "waiting for setpoints")
    assert_computes(client, eom.load_robot(ARM))


def test_waiting_is_a_warning_until_it_is_overdue(start, describe):
    client = start(*FAST, "-r", f"robot_description:={describe.topic}", "-p", "robot_timeout:=3600.0")
    assert client.next_diagnostics()[0] == 1


# --- Precedence -------------------------------------------------------------------------


def test_its_own_robot_comes_before_everything(start, other, describe, tmp_path):
    describe(ARM)
    other("rsp", robot_description=ARM)
    more = parameter_file(tmp_path, robot_description=ARM, robot_source_node="/rsp", urdf={"branches": "lump"})
    client = start(*IIWA, *FAST, *more, "-r", f"robot_description:={describe.topic}")
    assert up_with(client, "iiwa")["robot source"] == "parameters robot.*"
    warning = "the robot is from parameters robot.*: no effect of robot_description, robot_source_node, urdf.*"
    assert warning in client.process.log
    client.spin(0.5)  # nor does what comes later take its place
    describe(HEAVY)
    client.spin(0.5)
    assert client.next_diagnostics()[2]["robot"] == "iiwa"


def test_its_robot_description_comes_before_another_node_and_the_topic(start, other, describe, tmp_path):
    describe(HEAVY)
    other("rsp", robot_description=HEAVY)
    more = parameter_file(tmp_path, robot_description=ARM, robot_source_node="/rsp")
    client = start(*FAST, *more, "-r", f"robot_description:={describe.topic}")
    up_with(client, "arm")
    assert "the robot is from parameter robot_description: no effect of robot_source_node" in client.process.log
    client.spin(1.0)
    assert client.next_diagnostics()[2]["robot"] == "arm"


def test_another_node_comes_before_the_topic(start, other, describe):
    describe(HEAVY)
    client = start(*FAST, "-p", "robot_source_node:=/rsp", "-r", f"robot_description:={describe.topic}")
    client.spin(1.0)
    assert client.next_diagnostics()[2]["state"] == "unconfigured"
    other("rsp", robot_description=ARM)
    up_with(client, "arm")
    assert "no effect" not in client.process.log


def test_a_robot_that_cannot_be_used_does_not_give_way_to_the_next_source(start, describe, tmp_path):
    describe(ARM)
    more = parameter_file(tmp_path, robot_description="<robot/>")
    client = start(*FAST, *more, "-r", f"robot_description:={describe.topic}")
    level, message, values = client.next_diagnostics()
    assert (level, values["state"]) == (2, "unconfigured")
    assert message.startswith("robot not loaded: robot_description: line 1: ")
    # Corrected by hand, it is loaded when the node is told to.
    assert client.set_parameter("robot_description", HEAVY) == ""
    assert client.transition("configure")
    assert client.transition("activate")
    assert_computes(client, eom.load_robot(HEAVY))
    assert client.set_parameter("robot_description", ARM).startswith("robot_description is read-only while")
    assert client.set_parameter("robot_source_node", "/x").startswith("robot_source_node is read-only while")
    assert client.set_parameter("urdf.root", "base").startswith("urdf.root is read-only while")


def test_the_source_can_be_chosen_anew_after_a_cleanup(start, other, describe):
    client = start(*FAST, *IIWA, "-r", f"robot_description:={describe.topic}", "-p", "autostart:=false")
    for name in list_parameters(client, "robot"):
        assert client.set_parameter(name, None) == ""
    describe(ARM)
    client.wait_for_diagnostics(lambda *s: s[2]["robot source"] == f"topic {describe.topic}", "the topic")
    wait_until_configured(client)
    assert client.next_diagnostics()[2]["robot"] == "arm"
    assert client.transition("cleanup")
    other("rsp", robot_description=HEAVY)
    assert client.set_parameter("robot_source_node", "/rsp") == ""
    wait_until_configured(client)
    assert client.next_diagnostics()[2]["robot"] == "heavy"


def list_parameters(client, prefix):
    from rcl_interfaces.srv import ListParameters

    return client.call(ListParameters, "list_parameters", ListParameters.Request(prefixes=[prefix])).result.names


def wait_until_configured(client):
    client.wait(lambda: client.transition("configure"), "the robot to be there")


# --- Without autostart ------------------------------------------------------------------


def test_without_autostart_configure_fails_as_long_as_there_is_no_robot(start, describe):
    client = start(*FAST, "-r", f"robot_description:={describe.topic}", "-p", "autostart:=false")
    level, message, _ = client.next_diagnostics()
    assert (level, message) == (0, "unconfigured: setpoints are not answered")
    assert not client.transition("configure")
    reason = f"robot not loaded: there is none from topic {describe.topic}: nothing was published on it yet"
    assert client.next_diagnostics()[:2] == (2, reason)
    assert reason in client.process.log
    describe(ARM)
    client.spin(1.0)
    assert client.state == "unconfigured"  # it is the manager that configures
    wait_until_configured(client)
    assert client.state == "inactive"
    assert client.transition("activate")
    assert_computes(client, eom.load_robot(ARM))


def test_after_a_cleanup_the_node_waits_for_its_manager(start, describe):
    describe(ARM)
    client = start(*FAST, "-r", f"robot_description:={describe.topic}")
    up_with(client, "arm")
    assert client.transition("deactivate")
    assert client.transition("cleanup")
    describe(HEAVY)
    client.spin(1.0)
    assert client.state == "unconfigured"
    assert client.transition("configure")
    assert client.next_diagnostics()[2]["robot"] == "heavy"


# --- Another node that is not as it should be -------------------------------------------


def test_another_node_that_comes_later(start, other):
    client = start(*FAST, "-p", "robot_source_node:=/rsp", "-p", "robot_timeout:=0.3")
    wanted = (
        "waiting for the robot from parameters of node /rsp: there is no such node, or it has no parameter services"
    )
    client.wait_for_diagnostics(lambda level, message, _: level == 2 and message == wanted, "an error when overdue")
    other("rsp", robot_description=ARM)
    up_with(client, "arm")
    assert_computes(client, eom.load_robot(ARM))


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("silent", "it does not answer"),
        ("ends", "it does not answer"),
        ("too_few_values", "it answered 0 values to a question for 1"),
        ("no_such_type", "its answer cannot be read: unexpected parameter type 99"),
    ],
)
def test_another_node_that_does_not_answer_well_and_is_started_anew(start, other, mode, reason):
    bad = other("rsp", mode, robot_description=ARM)
    client = start(*FAST, "-p", "robot_source_node:=/rsp", "-p", "robot_timeout:=0.5")
    wanted = f"waiting for the robot from parameters of node /rsp: {reason}"
    client.wait_for_diagnostics(lambda level, message, _: level == 2 and message == wanted, reason)
    # The node itself goes on: it answers services, and its diagnostics come.
    assert client.state == "unconfigured"
    bad.kill()
    bad.wait()
    other("rsp", robot_description=ARM)
    up_with(client, "arm")
    assert_computes(client, eom.load_robot(ARM))
    assert "Traceback" not in client.process.log


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"speed": 1.0}, "it has neither robot_description nor parameters robot.*"),
        ({"robot_description": 5}, "its robot_description must be a text, is 5"),
        ({"robot_description": ""}, "its robot_description is empty"),
    ],
)
def test_another_node_without_a_robot(start, other, parameters, reason):
    other("rsp", **parameters)
    client = start(*FAST, "-p", "robot_source_node:=/rsp")
    wanted = f"waiting for the robot from parameters of node /rsp: {reason}"
    client.wait_for_diagnostics(lambda _, message, values: message == wanted, reason)


def test_a_bad_robot_of_another_node_is_refused_once_and_can_be_corrected_there(start, other):
    from rcl_interfaces.srv import SetParameters
    from rclpy.parameter import Parameter

    other("rsp", robot_description=ARM.replace('mass value="1.0"', 'mass value="-1"'))
    client = start(*FAST, "-p", "robot_source_node:=/rsp")
    reason = "robot not loaded: robot_description of node /rsp: line 1: "
    client.wait_for_diagnostics(lambda level, message, _: level == 2 and message.startswith(reason), "the refusal")
    client.spin(2.5)  # it is asked anew meanwhile
    assert client.process.log.count("robot not loaded") == 1
    service = client.node.create_client(SetParameters, "/rsp/set_parameters")
    client.wait(service.service_is_ready, "the other node")
    service.call_async(SetParameters.Request(parameters=[Parameter("robot_description", value=ARM).to_parameter_msg()]))
    up_with(client, "arm")
    assert_computes(client, eom.load_robot(ARM))


@pytest.mark.parametrize("name", ["no name", "/a//b", "rsp/", "7", "/" + 200 * "a"])
def test_what_cannot_be_the_name_of_a_node_is_refused(start, name):
    client = start(*FAST, "-p", f"robot_source_node:='{name}'", discovered=False)
    assert client.process.process.wait(30) == 1
    (line,) = client.process.log.splitlines()
    assert line.startswith("eom_dynamics: ")
    assert f"robot_source_node must be the name of a node such as /robot_state_publisher, is {name!r:.60}" in line


def test_a_signal_while_the_node_waits_ends_it(start):
    client = start(*FAST, "-p", "robot_source_node:=/rsp")
    assert client.process.stop(signal.SIGINT) == 0
    assert "Traceback" not in client.process.log


# --- What parameters add to a URDF ------------------------------------------------------

SPRINGS = {
    "joints": {
        "shoulder": {"elasticity": {"type": "linear", "stiffness": 800.0}, "rotor_inertia": 0.3},
        "elbow": {"rotor_inertia": 0.1},
    },
    "gravity": [0.0, -3.0, -9.0],
}


def test_springs_and_gravity_are_added_to_the_parameter(start, tmp_path):
    client = start(*FAST, *parameter_file(tmp_path, robot_description=ARM, urdf=SPRINGS))
    up_with(client, "arm")
    assert_computes(client, robot_from_urdf(ARM, SPRINGS))


def test_springs_are_added_to_the_topic_and_to_another_node(start, describe, other, tmp_path):
    describe(ARM)
    client = start(*FAST, *parameter_file(tmp_path, urdf=SPRINGS), "-r", f"robot_description:={describe.topic}")
    up_with(client, "arm")
    assert_computes(client, robot_from_urdf(ARM, SPRINGS))
    other("rsp", robot_description=HEAVY)
    client = start(*FAST, *parameter_file(tmp_path, urdf=SPRINGS), "-p", "robot_source_node:=/rsp")
    up_with(client, "heavy")
    assert_computes(client, robot_from_urdf(HEAVY, SPRINGS))


def test_a_part_is_picked_out_of_a_description(start, tmp_path):
    options = {"root": "shoulder_link", "tip": ["elbow_link"]}
    client = start(*FAST, *parameter_file(tmp_path, robot_description=ARM, urdf=options))
    assert up_with(client, "arm")["joints"] == "elbow"
    assert_computes(client, eom.load_robot(ARM, **options))


def test_a_spring_of_a_joint_that_is_not_there_is_refused_and_can_be_corrected(start, describe):
    describe(ARM)
    bad = ("urdf.joints.sholder.rotor_inertia", 0.3)
    client = start(*FAST, "-p", f"{bad[0]}:={bad[1]}", "-r", f"robot_description:={describe.topic}")
    reason = "robot not loaded: parameters: urdf.joints.sholder: unknown entry; did you mean shoulder?"
    client.wait_for_diagnostics(lambda level, message, _: (level, message) == (2, reason), "the refusal")
    assert client.set_parameter(bad[0], None) == ""
    up_with(client, "arm")
    assert_computes(client, eom.load_robot(ARM))
