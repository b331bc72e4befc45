# SPDX-License-Identifier: Apache-2.0
"""Writer of robots as URDF."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ... import lie
from ...arrays import Array
from ...exceptions import RobotDescriptionError
from ...robot.model import ENDS
from ...spelling import unused_name
from ..inertia import Inertial
from ..model import STANDARD_GRAVITY, Joint, Limits, Robot
from . import Written, left_out, losses_of_rigid, moments, rpy, word, words

# Represents no limit if the format requires a limit; the largest number that the reader accepts.
_UNLIMITED = 1e12

# Radius of the rods that represent links, in units of their length, and their color.
_THICKNESS, _COLOUR = 0.06, "0.45 0.5 0.6 1"


def robot_as_urdf(robot: Robot) -> Written:
    """Write a robot as a URDF, with link frames on the joint axes.

    A missing limit that URDF requires is 1e12. Links are shown as rods between joints. Bodies with a joint axis off
    their frame get a link on the axis, with the frame as a link fixed to it. Raises RobotDescriptionError if a joint is
    helical, which URDF lacks.
    """
    for joint in robot.joints:
        if joint.type == "helical":
            raise RobotDescriptionError(f"{robot.name}: joint {joint.name}: URDF has no helical joints; write YAML")
    writer = _Writer(robot)
    ET.indent(writer.root)
    text = ET.tostring(writer.root, encoding="unicode", xml_declaration=False)
    return Written(f'<?xml version="1.0"?>\n{text}\n', (*left_out(robot), *_implied(robot, writer.last)))


def add_inertia(link: ET.Element, body: Inertial, origin: ArrayLike = 0.0) -> None:
    """Add the inertia of a body to its link with the origin (3,) in the body's frame, along its axes."""
    if body.mass or np.any(body.about_origin):
        element = ET.Element("inertial")
        ET.SubElement(element, "origin", xyz=words(body.center_of_mass - np.asarray(origin)), rpy="0 0 0")
        ET.SubElement(element, "mass", value=word(body.mass))
        names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        ET.SubElement(element, "inertia", dict(zip(names, map(word, moments(body)), strict=True)))
        link.insert(0, element)


def add_losses(element: ET.Element, joint: Joint) -> None:
    """Write damping and dry friction of a joint and of its motor into the element of the joint."""
    damping, friction = losses_of_rigid(joint)
    dynamics = element.find("dynamics")
    if dynamics is None and (damping or friction):
        dynamics = ET.SubElement(element, "dynamics")
    if dynamics is not None:
        dynamics.attrib |= {"damping": word(damping), "friction": word(friction)}


def friction_in_urdf(robot: Robot) -> list[str]:
    """Return a note if friction is part of a robot's efforts, but of its URDF only on request."""
    if not any(losses_of_rigid(joint)[0] or losses_of_rigid(joint)[1] for joint in robot.joints):
        return []
    if not robot.joint_friction and all(joint.actuator.friction.is_none for joint in robot.joints):
        return []
    return ["friction is joint friction; load the URDF with joint_friction: included to add it to the joint efforts"]


class _Link(NamedTuple):
    """Name of a link on a body's joint axis, and its pose (4, 4) in the body's frame."""

    name: str
    pose: Array


class _Writer:
    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.root = ET.Element("robot", name=robot.name)
        self._taken = {frame.name for frame in (*robot.frames, *robot.tools)}
        self._joint_names = {joint.name for joint in robot.joints}
        self._placed: set[str] = set()
        self._links: list[_Link] = []
        self._base = self._link(-1, np.eye(4))
        add_inertia(ET.SubElement(self.root, "link", name=self._base.name), robot.base)
        for i, joint in enumerate(robot.joints):  # the frame on the joint axis closest to the body frame
            place = np.zeros(3) if joint.type == "prismatic" else np.cross(joint.screw[:3], joint.screw[3:])
            self._links.append(self._link(i, lie.pose(np.eye(3), place)))
        for joint, link in zip(robot.joints, self._links, strict=True):
            self._add(joint, link)
        for body in range(-1, len(robot.joints)):
            self._draw(body)
        self.last = self._links[robot.joints.index(list(_depth_first(robot, -1))[-1])].name
        for frame in (*robot.frames, *robot.tools):
            if frame.name not in self._placed:
                self._placed.add(frame.name)
                ET.SubElement(self.root, "link", name=frame.name)
                fixed = unused_name(f"{frame.name}_fixed", self._joint_names)
                self._joint_names.add(fixed)
                self._joint(fixed, "fixed", self._of(frame.joint), frame.pose, frame.name)

    def _link(self, body: int, pose: Array) -> _Link:
        """Link of a body, with the name of a frame at its pose, if any."""
        at = [frame.name for frame in self.robot.frames if frame.joint == body and np.array_equal(frame.pose, pose)]
        name = self.robot.joints[body].name if body >= 0 else "base"
        name = at[0] if at else unused_name(name, self._taken)
        self._taken.add(name)
        self._placed.add(name)
        return _Link(name, pose)

    def _of(self, body: int) -> _Link:
        return self._links[body] if body >= 0 else self._base

    def _add(self, joint: Joint, link: _Link) -> None:
        element = ET.SubElement(self.root, "link", name=link.name)
        add_inertia(element, joint.inertial, link.pose[:3, 3])
        parent = self._of(joint.parent)
        bounded = not joint.limits.known.keys().isdisjoint(ENDS)
        kind = "prismatic" if joint.type == "prismatic" else "revolute" if bounded else "continuous"
        moved = self._joint(joint.name, kind, parent, joint.reference_pose @ link.pose, link.name)
        ET.SubElement(moved, "axis", xyz=words(joint.axis))
        _limit(moved, joint.limits, kind)
        add_losses(moved, joint)
        if joint.mimic is not None:
            leader = self.robot.joints[joint.mimic.joint].name
            relation = {"multiplier": word(joint.mimic.ratio), "offset": word(joint.mimic.offset)}
            ET.SubElement(moved, "mimic", {"joint": leader, **relation})
        elif joint.gear_ratio != 1 or joint.rotor_inertia:
            self._transmission(joint)

    def _draw(self, body: int) -> None:
        """Show a body as rods to the joints after it; the last body as a rod to its tool or center of mass."""
        link, joints, tools = self._of(body), self.robot.joints, self.robot.tools
        ends = [
            (joint.reference_pose @ self._links[i].pose)[:3, 3]
            for i, joint in enumerate(joints)
            if joint.parent == body
        ]
        ends = ends or [tool.pose[:3, 3] for tool in tools if tool.joint == body]
        rods = [end - link.pose[:3, 3] for end in ends]
        if body >= 0 and not np.any(rods):
            rods = [joints[body].center_of_mass - link.pose[:3, 3]]
        element = next(node for node in self.root.iter("link") if node.get("name") == link.name)
        for rod in rods:
            if length := float(np.linalg.norm(rod)):
                visual = ET.SubElement(element, "visual")
                turned = (0.0, np.arccos(np.clip(rod[2] / length, -1.0, 1.0)), np.arctan2(rod[1], rod[0]))
                ET.SubElement(visual, "origin", xyz=words(rod / 2), rpy=words(turned))
                shape = ET.SubElement(visual, "geometry")
                ET.SubElement(shape, "cylinder", radius=word(_THICKNESS * length), length=word(length))
                ET.SubElement(ET.SubElement(visual, "material", name="link"), "color", rgba=_COLOUR)

    def _joint(self, name: str, kind: str, parent: _Link, pose: Array, child: str) -> ET.Element:
        """Joint at a pose in the parent body's frame."""
        element = ET.SubElement(self.root, "joint", name=name, type=kind)
        origin = lie.inverse(parent.pose) @ pose
        ET.SubElement(element, "origin", xyz=words(origin[:3, 3]), rpy=words(rpy(origin[:3, :3])))
        ET.SubElement(element, "parent", link=parent.name)
        ET.SubElement(element, "child", link=child)
        return element

    def _transmission(self, joint: Joint) -> None:
        element = ET.SubElement(self.root, "transmission", name=f"{joint.name}_transmission")
        ET.SubElement(element, "type").text = "transmission_interface/SimpleTransmission"
        interface = ET.SubElement(ET.SubElement(element, "joint", name=joint.name), "hardwareInterface")
        interface.text = "hardware_interface/EffortJointInterface"  # required by the format, and by urdf_parser_py
        motor = ET.SubElement(element, "actuator", name=f"{joint.name}_motor")
        ET.SubElement(motor, "mechanicalReduction").text = word(joint.gear_ratio)
        if joint.rotor_inertia:
            ET.SubElement(motor, "motorInertia").text = word(joint.rotor_inertia / joint.gear_ratio**2)


def _limit(joint: ET.Element, limits: Limits, kind: str) -> None:
    names = (*(ENDS if kind != "continuous" else ()), "velocity", "effort")
    if limits.known.keys().isdisjoint(names) and kind == "continuous":
        return
    bounded = {name: float(np.clip(getattr(limits, name), -_UNLIMITED, _UNLIMITED)) for name in names}
    ET.SubElement(joint, "limit", {name: word(value) for name, value in bounded.items()})


def _implied(robot: Robot, last: str) -> list[str]:
    """Gravity, order of joints and tool, as far as a URDF implies others."""
    lines = friction_in_urdf(robot)
    if not np.array_equal(robot.gravity, STANDARD_GRAVITY):
        lines.append(f"gravity {robot.gravity.tolist()} is omitted: load the URDF with it")
    order = [joint.name for joint in _depth_first(robot, -1) if joint.mimic is None]
    if order != list(robot.joint_names):
        lines.append(f"the joints are in another order, depth-first: {', '.join(order)}")
    if [tool.name for tool in robot.tools] != [last]:
        options = " ".join(f"--tool {tool.name}" for tool in robot.tools)
        lines.append(f"tools are omitted: load the URDF with {options}")
    return lines


def _depth_first(robot: Robot, body: int) -> Iterator[Joint]:
    for i, joint in enumerate(robot.joints):
        if joint.parent == body:
            yield joint
            yield from _depth_first(robot, i)
