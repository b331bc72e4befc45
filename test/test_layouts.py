# SPDX-License-Identifier: Apache-2.0
"""Layouts for PlotJuggler, Foxglove and RViz: every topic and field is one of the nodes' messages."""

import ast
import json
import re
from collections.abc import Iterator
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


def shown() -> Iterator[tuple[str, str, str | None]]:
    """Topic, field and index, if any, of each curve of Foxglove, then of PlotJuggler."""
    layout = json.loads((LAYOUTS / "foxglove.json").read_text(encoding="utf-8"))
    panels = layout["configById"]
    tabs = json.dumps([tab["layout"] for tab in panels.pop(layout["layout"])["tabs"]])
    assert sorted(re.findall(r'"(Plot![^"]*)"', tabs)) == sorted(panels)
    for path in (path for panel in panels.values() for path in panel["paths"]):
        topic, field, index = re.fullmatch(r"/(\w+)\.(\w+)(?:\[(\d+)\])?", path["value"]).groups()
        assert path["timestampMethod"] == ("receiveTime" if TOPICS[topic] == types.NUMBERS else "headerStamp")
        yield topic, field, index
    for curve in ElementTree.parse(LAYOUTS / "plotjuggler.xml").getroot().iter("curve"):
        topic, *parts = curve.attrib["name"].removeprefix("/").split("/")
        if TOPICS[topic] == types.JOINT_STATE:
            yield topic, parts[1], str(JOINTS.index(parts[0]))
        else:
            yield topic, *re.fullmatch(r"(\w+)(?:\[(\d+)\])?", parts[0]).groups()


def test_curves_are_fields_of_messages() -> None:
    """A field is a list of numbers if it is shown with an index, which must be of a joint; else a number."""
    for topic, field, index in shown():
        kind = TOPICS[topic]
        node, description = dict(types.typestore(kind).fielddefs[kind][1])[field]
        assert (node.name == "SEQUENCE") == (index is not None), (topic, field)
        name, _ = description[0][1] if index is not None else description
        assert name in ("float64", "uint8", "bool"), (topic, field)
        assert index is None or int(index) < len(JOINTS)
    assert {topic for topic, *_ in shown()} == set(TOPICS)


def test_rviz_shows_the_description() -> None:
    manager = yaml.safe_load((LAYOUTS / "robot.rviz").read_text(encoding="utf-8"))["Visualization Manager"]
    (robot,) = (display for display in manager["Displays"] if display["Class"].endswith("/RobotModel"))
    assert robot["Description Topic"]["Value"] == "/robot_description"  # which the launch files remap
    assert robot["Description Topic"]["Durability Policy"] == "Transient Local"
