# SPDX-License-Identifier: Apache-2.0
"""Parameters of nodes that are dumped as by ``ros2 param dump`` start a node again, and may be set again."""

from array import array
from pathlib import Path
from typing import Any

import pytest
import yaml
from node_client import Client
from paths import CONFIG

URDF = """\
<robot name="arm"><link name="base"/>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" velocity="3" effort="20"/></joint>
<link name="upper"><inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>
</inertial></link></robot>
"""

SOURCES: dict[str, tuple[Any, ...]] = {
    "parameters": ("--params-file", CONFIG / "vsa_planar_2r.yaml"),
    "file": ("-p", "robot_file:=sea_planar_2r"),
    "URDF with springs": (
        *("-p", f"robot_description:={yaml.safe_dump(URDF, default_style='|', width=10**6).strip()}"),
        *("-p", "urdf.joints.shoulder.elasticity.type:=linear"),
        *("-p", "urdf.joints.shoulder.elasticity.stiffness:=900.0"),
        *("-p", "urdf.joints.shoulder.rotor_inertia:=0.1"),
    ),
}


def dump(client: Client) -> dict[str, Any]:
    """Parameters by name, by one request for all of them, as ``ros2 param dump`` makes it."""
    from rcl_interfaces.srv import GetParameters, ListParameters
    from rclpy.parameter import parameter_value_to_python

    names = client.call(ListParameters, "list_parameters", ListParameters.Request()).result.names
    values = client.call(GetParameters, "get_parameters", GetParameters.Request(names=names)).values
    assert len(values) == len(names)  # rclpy answers nothing if a parameter has no value
    found = {name: parameter_value_to_python(value) for name, value in zip(names, values, strict=True)}
    return {name: value.tolist() if isinstance(value, array) else value for name, value in found.items()}


def written(client: Client, values: dict[str, Any], path: Path) -> Path:
    tree: dict[str, Any] = {}
    for name, value in sorted(values.items()):
        *sections, leaf = name.split(".")
        place = tree
        for section in sections:
            place = place.setdefault(section, {})
        place[leaf] = value
    process = client.process
    content = {f"{process.namespace}/{process.name}": {"ros__parameters": tree}}
    path.write_text(yaml.dump(content, default_flow_style=False), encoding="utf-8")
    return path


def set_all(client: Client, values: dict[str, Any], service: str) -> list[str]:
    """Reasons of refusals of values that are set one by one or together."""
    from rcl_interfaces.srv import SetParameters, SetParametersAtomically
    from rclpy.parameter import Parameter

    parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
    if service == "set_parameters":
        request = SetParameters.Request(parameters=parameters)
        results = client.call(SetParameters, service, request).results
    else:
        request = SetParametersAtomically.Request(parameters=parameters)
        results = [client.call(SetParametersAtomically, service, request).result]
    return [result.reason for result in results if not result.successful]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("module", ["dynamics_node", "planning_node", "simulated_robot_node"])
def test_a_dump_starts_a_node_again_and_can_be_set_at_run_time(
    start: Any, tmp_path: Path, module: str, source: str
) -> None:
    node = start(*SOURCES[source], module=module, client=Client)
    node.wait(lambda: node.values["robot"], "a robot")
    before = dump(node)
    path = written(node, before, tmp_path / "dump.yaml")
    for service in ("set_parameters", "set_parameters_atomically"):
        assert set_all(node, before, service) == []
    assert dump(node) == before
    # A change is refused as before.
    assert "read-only" in node.set_parameter("robot_file", "panda")
    name = node.process.name
    start.replace(node)
    again = start("--params-file", path, module=module, client=Client, name=name)
    again.wait(lambda: again.values["robot"], "the robot again")
    assert dump(again) == before


def test_a_value_that_is_set_again_acts_as_at_first(iiwa: Any) -> None:
    """Only unchanged values of parameters that are read-only now have no effect: a mode, for one, is tried again."""
    assert iiwa.set_parameter("mode", "position") == ""
    assert iiwa.set_parameter("stop_duration", iiwa.get_parameter("stop_duration")) == ""
    assert "read-only while the node is active" in iiwa.set_parameter("stop_duration", 0.123)
    assert "read-only" in iiwa.set_parameters({"stream_rate": 123.0})


def test_constraints_name_joints_of_the_robot_and_are_not_negative(start: Any) -> None:
    given = ("constraints.iiwa_joint_1.goal:=0.02", "constraints.elbow.goal:=0.02", "constraints.goal_time:=2")
    client = start("--params-file", CONFIG / "iiwa.yaml", *(word for value in given for word in ("-p", value)))
    log = client.process.log
    assert "parameter constraints.elbow.goal has no effect: the robot has no such joint" in log
    assert "unknown parameter" not in log
    assert client.get_parameter("constraints.iiwa_joint_1.goal") == 0.02
    assert client.get_parameter("constraints.goal_time") == 2.0
    for name, value, reason in (
        ("iiwa_joint_2.trajectory", 0.1, ""),
        ("iiwa_joint_2.trajectory", 1, ""),
        ("iiwa_joint_2.trajectory", -0.1, "must be a number of at least 0, is -0.1"),
        ("iiwa_joint_2.trajectory", "wide", "must be a number of at least 0, is 'wide'"),
        ("iiwa_joint_9.goal", 0.1, "the robot has no joint 'iiwa_joint_9'; did you mean"),
        ("iiwa_joint_2.path", 0.1, "is not a parameter of this node"),
    ):
        answer = client.set_parameter(f"constraints.{name}", value)
        assert reason in answer and bool(answer) == bool(reason)
