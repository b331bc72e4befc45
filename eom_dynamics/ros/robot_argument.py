# SPDX-License-Identifier: Apache-2.0
"""Argument ``robot_file`` of the launch files: parameters with the robot for the nodes, and its URDF."""

from __future__ import annotations

from pathlib import Path
from tempfile import NamedTemporaryFile

import yaml

from ..robot import load_robot, packaged_robots
from ..robot.description import root_link
from ..robot.formats import PARAMETER_FILE, format_of
from ..robot.readers.files import PACKAGE, is_xml, located, read_text
from ..robot.readers.loading import PACKAGED, read_description, urdf_of
from ..robot.readers.parameter_file import find_robot
from ..robot.readers.parameter_tree import JOINT_LIMITS
from ..robot.writers.urdf import robot_as_urdf


def robot_parameters(path: str) -> list[str | dict[str, str]]:
    """Return parameters and parameter files for a robot's file, as ``launch_ros.actions.Node`` takes them.

    A parameter file is passed as parameters, so that ``ros2 param list`` shows the robot of every node: the returned
    file has it in the section ``/**``, with an absolute path of its URDF. Other files are passed by path.

    Raises:
        RobotDescriptionError: a parameter file does not describe exactly one robot.
    """
    if format_of(path) is not PARAMETER_FILE:
        return [{"robot_file": path}]
    robot, document = find_robot(read_text(Path(path), PARAMETER_FILE.largest), path)
    for entry in ("urdf", JOINT_LIMITS):
        if (file := robot.get(entry)) and isinstance(file, str) and not file.startswith(PACKAGE):
            robot[entry] = str(Path(path).parent.resolve() / file)
    document.setdefault("/**", {}).setdefault("ros__parameters", {})["robot"] = robot
    # The file stays, like launch_ros's own files for dictionaries: nodes may be started again.
    with NamedTemporaryFile("w", suffix=".yaml", delete=False, encoding="utf-8") as file:
        yaml.safe_dump(document, file, sort_keys=False)
    return [file.name]


def file_of_robot(source: str) -> str:
    """Return the path of a packaged robot's parameter file, or the path itself; ``package://`` is resolved."""
    return str(PACKAGED / f"{source}.yaml") if source in packaged_robots() else located(source)


def urdf_to_show(source: str, joint_prefix: str = "") -> tuple[str, str]:
    """Return a URDF with the joints of a robot's file, or of a URDF's text, and the name of its root link.

    It is the robot file itself, or the URDF that it names, with its meshes; otherwise, and with a prefix, a URDF
    without meshes is written for the robot.

    Raises:
        RobotDescriptionError: the file cannot be used, or has a helical joint, which URDF does not have.
    """
    description = None if joint_prefix else (source, None) if is_xml(source) else urdf_of(source)
    text = description[0] if description else robot_as_urdf(load_robot(source).with_prefix(joint_prefix)).text
    return text, root_link(read_description(text))
