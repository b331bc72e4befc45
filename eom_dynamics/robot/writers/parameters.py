# SPDX-License-Identifier: Apache-2.0
"""Write a robot as the ``robot`` section of a ROS 2 parameter file."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import yaml

from ...actuators.parameters import declared_entries, written_entries
from ...arrays import Array
from ...exceptions import RobotDescriptionError
from ..description import BodyEntries, MimicDescription, OriginEntries, ToolEntries
from ..inertia import Inertial, body_violation
from ..mass_matrix import joints_without_inertia
from ..model import ENDS, Joint, Robot
from ..readers.parameter_tree import BASE
from . import Written, moments, rpy

_HEADER = "# Written by eom_dynamics. Units are SI, angles rad; the entries are described in docs/parameter_files.md.\n"


def robot_as_yaml(robot: Robot) -> Written:
    """Write a robot as a parameter file, with body screws and inertias about the center of mass.

    Frames become fixed joints without mass, so that tips, tools and payloads keep their names. RobotDescriptionError if
    a joint's name is not a valid name of a ROS 2 parameter.
    """
    lost: list[str] = []
    section = robot_as_parameters(robot, lost)
    document = {"/**": {"ros__parameters": {"robot": section}}}
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=120)
    return Written(_HEADER + text, tuple(lost))


def robot_as_parameters(robot: Robot, lost: list[str]) -> dict[str, Any]:
    """Return the section; adds a line to ``lost`` for each property that a parameter file cannot express."""
    names = [joint.name for joint in robot.joints]
    for name in names:
        if reason := bad_name(name):
            raise RobotDescriptionError(f"{robot.name}: joint {name!r}: {reason}; rename it")
    joints = {joint.name: _joint(robot, joint, lost) for joint in robot.joints}
    for frame in robot.frames:
        if frame.name in joints or (frame.name == BASE and frame.joint < 0):
            if not _is_body(robot, frame.name, frame.joint, frame.pose):
                lost.append(f"frame {frame.name} is omitted: a joint has its name")
        elif reason := bad_name(frame.name):
            lost.append(f"frame {frame.name} is omitted: {reason}")
        else:
            parent = robot.joints[frame.joint].name if frame.joint >= 0 else BASE
            joints[frame.name] = {"type": "fixed", "parent": parent, "origin": written_entries(_origin(frame.pose))}
    bodies = (*(joint.inertial for joint in robot.joints), robot.base)
    section: dict[str, Any] = {
        "name": robot.name,
        "joint_names": list(joints),
        "inertia_reference": "com",
        "gravity": [float(x) for x in robot.gravity],
        "unphysical": "warn" if any(map(body_violation, bodies)) or joints_without_inertia(robot) else "refuse",
        "joints": joints,
    }
    if robot.base.mass or np.any(robot.base.about_origin):
        section["base"] = _inertia(robot.base)
    for key, shared in (("coupled_stiffness", robot.coupled_stiffness), ("transmission", robot.transmission)):
        if shared is not None:
            members = [robot.joint_names[i] for i in shared[0]]
            section[key] = {"joints": members, "matrix": [float(x) for x in shared[1].matrix.ravel()]}
    section |= written_entries(robot)
    section["tool_names"], tools = [], {}
    for tool in robot.tools:
        name = tool.name
        if name not in joints or (name in names and not _is_body(robot, name, tool.joint, tool.pose)):
            name = re.sub(r"[./]", "_", f"{name}_tool")
            tools[name] = written_entries(ToolEntries(robot.joints[tool.joint].name, _origin(tool.pose)))
            lost.append(f"tool {tool.name} becomes {name}: its name is not free")
        section["tool_names"].append(name)
    return section | ({"tools": tools} if tools else {})


def _inertia(body: Inertial) -> dict[str, Any]:
    if not (body.mass or np.any(body.about_origin)):
        return {"mass": 0.0}
    return written_entries(BodyEntries(body.mass, body.center_of_mass, np.array(moments(body))))


def _joint(robot: Robot, joint: Joint, lost: list[str]) -> dict[str, Any]:
    entries: dict[str, Any] = {
        "type": joint.type,
        "parent": robot.joints[joint.parent].name if joint.parent >= 0 else BASE,
        "screw": [float(x) for x in joint.screw],
        "origin": written_entries(_origin(joint.reference_pose)),
        **_inertia(joint.inertial),
    }
    extra = written_entries(_with_written_limits(joint, lost))
    if joint.mimic is not None:
        leader = MimicDescription(robot.joints[joint.mimic.joint].name, joint.mimic.ratio, joint.mimic.offset)
        for name in (each.name for each in declared_entries(Joint) if each.entry.of_motor):
            extra.pop(name, None)
        return entries | extra | {"mimic": written_entries(leader)}
    if joint.rotor_mount is not None:
        carrier = robot.joints[joint.rotor_mount.carrier].name if joint.rotor_mount.carrier >= 0 else BASE
        extra["rotor"] = {"carrier": carrier, "axis": [float(x) for x in joint.rotor_mount.axis]}
    return entries | extra


def _with_written_limits(joint: Joint, lost: list[str]) -> Joint:
    """The joint without limits of zero, which files do not have."""
    zero = [name for name, value in joint.limits.known.items() if value == 0 and name not in ENDS]
    lost += [f"joint {joint.name}: limit {name} of 0 is omitted: it must be positive" for name in zero]
    return replace(joint, limits=replace(joint.limits, **dict.fromkeys(zero, np.inf)))


def _origin(pose: Array) -> OriginEntries:
    return OriginEntries(pose[:3, 3], np.array(rpy(pose[:3, :3])))


def _is_body(robot: Robot, name: str, joint: int, pose: Array) -> bool:
    """True if a frame is the frame of a body, named by its joint."""
    body = robot.joints[joint].name if joint >= 0 else BASE
    return body == name and np.array_equal(pose, np.eye(4))


def bad_name(name: str) -> str | None:
    """Reason why a joint cannot have a name in a parameter file, or None."""
    if name == BASE:
        return f"{BASE!r} is reserved for the base"
    if "." in name or "/" in name or not name or name != name.strip() or not name.isprintable():
        return "it is no name of a ROS 2 parameter, which has no '.', '/' or blanks at its ends"
    return None


class _Dumper(yaml.SafeDumper):
    """Floats so that ROS 2, PyYAML and this library read them as floats: 1.0e-05, not 1e-05."""


def _float(dumper: yaml.SafeDumper, value: float) -> yaml.ScalarNode:
    text = repr(value)
    if "." not in text:
        text = text.replace("e", ".0e")
    return dumper.represent_scalar("tag:yaml.org,2002:float", text)


_Dumper.add_representer(float, _float)
