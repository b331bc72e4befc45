# SPDX-License-Identifier: Apache-2.0
"""URDF patched with identified inertias and friction; meshes, limits and other joints remain."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from ...exceptions import RobotDescriptionError
from ...robot import Joint, Robot
from ...robot.writers.urdf import add_inertia


def patched_urdf(text: str, robot: Robot) -> str:
    """Write the inertias and friction of a robot into the URDF that it was read from.

    Links that are fixed to a link that moves are part of its body: the inertia of all is written to the link that the
    joint moves, and the others lose theirs.

    Raises:
        RobotDescriptionError: the text is not a URDF with the joints of the robot.
    """
    try:
        root = ET.fromstring(text, parser=ET.XMLParser(target=ET.TreeBuilder(insert_comments=True)))
    except ET.ParseError as error:
        raise RobotDescriptionError(f"not a URDF: {error}") from None
    joints = {element.get("name", ""): element for element in root.findall("joint")}
    links = {element.get("name", ""): element for element in root.findall("link")}
    if missing := [joint.name for joint in robot.joints if joint.name not in joints]:
        raise RobotDescriptionError(
            f"{robot.name}: the URDF has no joint {', '.join(missing)}; one with several variables cannot be patched"
        )
    moving = {joint.name for joint in robot.joints}
    for joint in robot.joints:
        element = joints[joint.name]
        child = _named(element, "child")
        if child not in links:
            raise RobotDescriptionError(f"{robot.name}: the URDF has no link {child}, the child of {joint.name}")
        _set_inertia(links[child], joint)
        _set_friction(element, joint)
        for fixed in _fixed_to(child, joints, moving):
            for old in links[fixed].findall("inertial"):
                links[fixed].remove(old)
    return f'<?xml version="1.0"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _named(joint: ET.Element, which: str) -> str:
    found = joint.find(which)
    return "" if found is None else found.get("link", "")


def _fixed_to(link: str, joints: dict[str, ET.Element], moving: set[str]) -> list[str]:
    """Links below a link that do not move relative to it."""
    below = [
        _named(element, "child")
        for name, element in joints.items()
        if name not in moving and _named(element, "parent") == link
    ]
    return [name for child in below for name in (child, *_fixed_to(child, joints, moving))]


def _set_inertia(link: ET.Element, joint: Joint) -> None:
    for old in link.findall("inertial"):
        link.remove(old)
    add_inertia(link, joint.inertial)
    for new in link.findall("inertial"):
        new.tail = "\n  "


def _set_friction(element: ET.Element, joint: Joint) -> None:
    if not joint.damping and not joint.friction:
        return
    dynamics = element.find("dynamics")
    if dynamics is None:
        dynamics = ET.SubElement(element, "dynamics")
    dynamics.set("damping", repr(float(joint.damping)))
    dynamics.set("friction", repr(float(joint.friction)))
