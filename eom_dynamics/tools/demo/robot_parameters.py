# SPDX-License-Identifier: Apache-2.0
"""The robot of the demo as a parameter file for the node."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from ...exceptions import RobotDescriptionError
from ...robot import packaged_robots
from ...robot.readers.xacro import expand_xacro
from ..robot_options import RobotOptions


def parameter_file(source: str, options: RobotOptions, folder: Path) -> Path:
    """Return the path of a ROS 2 parameter file with the robot.

    Args:
        source: packaged name, path, or text of a URDF, as for :func:`eom_dynamics.load_robot`.
        options: part of the robot to use.
        folder: for the file.

    Raises:
        RobotDescriptionError: the source is a parameter file, of which the node takes all, and options select a part.
    """
    parameters: dict[str, Any]
    path = Path(source)
    packaged = source in packaged_robots()
    if packaged or path.suffix in (".yaml", ".yml"):
        if options != RobotOptions():
            raise RobotDescriptionError(f"{source}: the node takes parameter files whole; select a part of a URDF only")
        # By its path, since a URDF that it names may be relative to it.
        file = resources.files("eom_dynamics") / "config" / f"{source}.yaml" if packaged else path
        parameters = {"robot_file": str(Path(str(file)).resolve())}
    else:
        parameters = {"robot_description": _urdf(source, options), "urdf": options.urdf_section()}
    written = folder / "robot.yaml"
    given = {name: value for name, value in parameters.items() if value}
    written.write_text(yaml.safe_dump({"/**": {"ros__parameters": given}}), encoding="utf-8")
    return written


def _urdf(source: str, options: RobotOptions) -> str:
    if source.endswith(".xacro"):
        return expand_xacro(Path(source), dict(options.xacro_arguments))
    return Path(source).read_text(encoding="utf-8") if source.endswith(".urdf") else source
