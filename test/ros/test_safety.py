# SPDX-License-Identifier: Apache-2.0
"""``safety: strict``, the default: its parameters and refusals; test/control has its streams."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hostile_streams import HOME
from paths import CONFIG
from urdf_arms import urdf_arm

import eom_dynamics as eom
from eom_dynamics.control.settings import SAFETY, SETTINGS


@pytest.fixture(scope="module")
def node(start_shared: Any) -> Any:
    # This process may stall for longer than the timeout of strict.
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
        values = {name: value for name, value in values.items() if name in SETTINGS}
        assert {name: client.get_parameter(name) for name in values} == values


def test_a_robot_with_limits_in_degrees_is_refused_unless_it_is_accepted(start: Any) -> None:
    given = ("safety:=strict", "autostart:=false", "robot.joints.iiwa_joint_3.limits.upper:=170.0")
    client = start("--params-file", CONFIG / "iiwa.yaml", *(word for parameter in given for word in ("-p", parameter)))
    assert not client.transition("configure")
    message = client.next_diagnostics()[1]
    said = "robot not loaded: iiwa_joint_3: limits are upper 170 rad; if in degrees: 2.967; correct them, or set "
    assert message.startswith(f"{said}robot.implausible: accept if intended"), message
    assert client.set_parameter("robot.implausible", "accept") == ""
    assert client.transition("configure")


HEAVY = urdf_arm().replace('mass value="1.0"', 'mass value="150"', 1).replace('effort="100"', 'effort="20"')


def test_a_urdf_with_masses_that_contradict_effort_limits_is_refused_unless_it_is_accepted(
    start: Any, tmp_path: Path
) -> None:
    file = tmp_path / "heavy.urdf"
    file.write_text(HEAVY)
    client = start(*(w for x in (f"robot_file:={file}", "safety:=strict", "autostart:=false") for w in ("-p", x)))
    assert not client.transition("configure")
    message = client.next_diagnostics()[1]
    assert message.startswith("robot not loaded: shoulder: holding the arm needs 33"), message
    assert message.endswith("correct them, or set urdf.implausible: accept if intended")
    assert client.set_parameter("urdf.implausible", "accept") == ""
    assert client.transition("configure")


def test_a_urdf_with_a_negative_mass_is_refused_unless_it_is_accepted(start: Any, tmp_path: Path) -> None:
    file = tmp_path / "negative.urdf"
    file.write_text(urdf_arm().replace('mass value="1.0"', 'mass value="-1.0"', 1))
    client = start(*(w for x in (f"robot_file:={file}", "safety:=off", "autostart:=false") for w in ("-p", x)))
    assert not client.transition("configure")
    assert (
        "mass must not be negative, is -1 kg; to load it anyway, set unphysical: warn" in client.next_diagnostics()[1]
    )
    assert client.set_parameter("urdf.unphysical", "warn") == ""
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


def test_a_first_setpoint_in_degrees_of_a_joint_without_limits_is_asked_for_its_unit(
    start: Any, tmp_path: Path
) -> None:
    file = tmp_path / "unlimited.yaml"
    file.write_text(re.sub(r" +limits: .*\n", "", (CONFIG / "planar_2r.yaml").read_text()))
    client = start("-p", f"robot_file:={file}", "-p", "safety:=strict")
    assert not any(joint.limits.known for joint in eom.load_robot(file).joints)
    unchecked = "joint_1, joint_2: steps are not checked; give these motors or their joints a velocity limit"
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


def test_joints_without_limits_are_reported_in_the_status_of_a_strict_node_alone(start: Any, tmp_path: Path) -> None:
    tree = yaml.safe_load((CONFIG / "planar_2r.yaml").read_text())
    for joint in tree["/**"]["ros__parameters"]["robot"]["joints"].values():
        joint.pop("limits", None)
    file = tmp_path / "unlimited.yaml"
    file.write_text(yaml.safe_dump(tree))
    limits = [f"robot.joints.joint_{k}.limits.{x}" for k in (1, 2) for x in ("velocity:=2.0", "effort:=50.0")]
    given = ("--params-file", file)
    nodes = [
        start(*given, *(word for x in (f"safety:={level}", *more) for word in ("-p", x)), discovered=False)
        for level, more in (("strict", ()), ("permissive", ()), ("strict", limits), ("strict", limits[:3]))
    ]
    two = "joint_1 (velocity, effort), joint_2 (velocity, effort)"
    for node, joints in zip(nodes, (two, "", "", "joint_2 (effort)"), strict=True):
        node.wait_for_diagnostics(lambda *s: s[2]["state"] == "active", "activation")
        more = f"; no limits of {joints}: add them to the robot's file" if joints else ""
        assert node.next_diagnostics()[:2] == (bool(joints), f"waiting for setpoints{more}")
