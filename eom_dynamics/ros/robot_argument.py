# SPDX-License-Identifier: Apache-2.0
"""Argument ``robot_file`` of the launch files: the parameters by which a node receives the robot."""

from __future__ import annotations

from pathlib import Path

from ..robot.formats import PARAMETER_FILE, format_of
from ..robot.readers.files import read_text
from ..robot.readers.named_file import PACKAGE
from ..robot.readers.parameter_file import find_robot

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
