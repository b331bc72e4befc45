# SPDX-License-Identifier: Apache-2.0
"""Layouts for PlotJuggler, Foxglove and RViz: every topic and field is one of the nodes' messages."""

import ast
import json
import re
from xml.etree import ElementTree

import pytest
import yaml
from paths import ROOT

import eom_dynamics as eom

types = pytest.importorskip("eom_dynamics.recordings.bags.types", reason="reads definitions of messages by rosbags")

LAYOUTS = ROOT / "resource" / "layouts"
JOINTS = eom.load_robot("iiwa").joint_names

TOPICS = {
    **{"setpoint": types.SETPOINT, "feedforward": types.COMMAND, "motor_setpoint": types.JOINT_STATE},
    **{"effort_command": types.NUMBERS, "joint_states": types.JOINT_STATE},
}


def published() -> set[tuple[str, str]]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "eom_dynamics" / "ros").rglob("*.py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = set()
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("create_publisher", "_create"):
            *_, kind, topic = call.args[:3] if call.func.attr == "_create" else call.args[:2]
            found.add((ast.unparse(topic).strip("'"), ast.unparse(kind)))
    return found


def test_the_nodes_publish_these_topics() -> None:
    assert {(topic, kind.rpartition("/")[2]) for topic, kind in TOPICS.items()} - published() == set()


def check(topic: str, field: str, index: str | None) -> None:
    """A field of a topic is a list of numbers if it is shown with an index, which must be of a joint; else a number."""
    kind = TOPICS[topic]
    fields = dict(types.typestore(kind).fielddefs[kind][1])
    node, description = fields[field]
    assert (node.name == "SEQUENCE") == (index is not None), (topic, field)
    name, _ = description[0][1] if index is not None else description
    assert name in ("float64", "uint8", "bool"), (topic, field)
    assert index is None or int(index) < len(JOINTS)


def test_foxglove_shows_fields_of_messages_in_every_panel() -> None:
    layout = json.loads((LAYOUTS / "foxglove.json").read_text(encoding="utf-8"))
    panels = layout["configById"]
    tabs = panels.pop(layout["layout"])["tabs"]
    named = re.findall(r'"(Plot![^"]*)"', json.dumps([tab["layout"] for tab in tabs]))
    assert sorted(named) == sorted(panels)
    shown = [path for panel in panels.values() for path in panel["paths"]]
    topics = set()
    for path in shown:
        topic, field, index = re.fullmatch(r"/(\w+)\.(\w+)(?:\[(\d+)\])?", path["value"]).groups()
        check(topic, field, index)
        topics.add(topic)
        has_header = TOPICS[topic] != types.NUMBERS
        assert path["timestampMethod"] == ("headerStamp" if has_header else "receiveTime")
    assert topics == set(TOPICS)


def test_plotjuggler_shows_fields_of_messages() -> None:
    root = ElementTree.parse(LAYOUTS / "plotjuggler.xml").getroot()
    names = [curve.attrib["name"] for curve in root.iter("curve")]
    topics = set()
    for name in names:
        topic, *parts = name.removeprefix("/").split("/")
        topics.add(topic)
        if TOPICS[topic] == types.JOINT_STATE:
            joint, field = parts
            check(topic, field, str(JOINTS.index(joint)))
        else:
            field, index = re.fullmatch(r"(\w+)(?:\[(\d+)\])?", parts[0]).groups()
            check(topic, field, index)
    assert topics == set(TOPICS) and len(names) == len(set(names))


def test_rviz_shows_the_description() -> None:
    manager = yaml.safe_load((LAYOUTS / "robot.rviz").read_text(encoding="utf-8"))["Visualization Manager"]
    (robot,) = (display for display in manager["Displays"] if display["Class"].endswith("/RobotModel"))
    assert robot["Description Topic"]["Value"] == "/robot_description"  # which the launch files remap
    assert robot["Description Topic"]["Durability Policy"] == "Transient Local"
