# SPDX-License-Identifier: Apache-2.0
"""Argument ``robot_file`` of the launch files: the parameters by which nodes receive the robot, and its URDF."""

from __future__ import annotations

from pathlib import Path

from ..robot import load_robot
from ..robot.formats import PARAMETER_FILE, format_of
from ..robot.readers.files import PACKAGE, read_text
from ..robot.readers.loading import read_description, urdf_of
from ..robot.readers.parameter_file import find_robot
from ..robot.readers.xml import is_xml
from ..robot.tree import root_link
from ..robot.writers.urdf import robot_as_urdf

_ALL_NODES = "/**"


def robot_parameters(path: str) -> list[str | dict[str, str]]:
    """Return parameter files and parameters for a robot's file, as ``launch_ros.actions.Node`` takes them.

    A parameter file may hold parameters of the nodes, too. If its robot is in the section of one node, such as
    ``/eom_dynamics``, ROS 2 gives it to no other node, which would use a robot from the topic instead; such a file is
    given by its path, too, so that the node reads it. A URDF beside the file is given by its absolute path, since
    parameters do not tell a node their file.

    Raises:
        RobotDescriptionError: a parameter file does not describe exactly one robot.
    """
    if format_of(path) is not PARAMETER_FILE:
        return [{"robot_file": path}]
    node, robot = find_robot(read_text(Path(path), PARAMETER_FILE.largest), path)
    if node != _ALL_NODES:
        return [{"robot_file": path}, path]
    urdf = robot.get("urdf")
    if not isinstance(urdf, str) or not urdf or urdf.startswith(PACKAGE) or Path(urdf).is_absolute():
        return [path]
    return [path, {"robot.urdf": str(Path(path).parent / urdf)}]


def urdf_to_show(source: str, joint_prefix: str = "") -> tuple[str, str]:
    """Return a URDF with the joints of a robot's file, or of a URDF's text, and the name of its root link.

    It is the one that the file is or names, with its meshes; otherwise, and with a prefix, one that is written for the
    robot, without any.

    Raises:
        RobotDescriptionError: the file cannot be used, or has a helical joint, which URDF does not have.
    """
    found = None if joint_prefix else (source, None) if is_xml(source) else urdf_of(source)
    text = found[0] if found else robot_as_urdf(load_robot(source).with_prefix(joint_prefix)).text
    return text, root_link(read_description(text))
