# SPDX-License-Identifier: Apache-2.0
"""What a robot is, and how one is read from a file or from ROS 2 parameters."""

from .loading import load_robot, packaged_robots
from .model import Frame, Joint, Limits, Mimic, Robot
from .parameters import robot_from_parameters
from .urdf_section import robot_from_urdf

__all__ = [
    "Frame",
    "Joint",
    "Limits",
    "Mimic",
    "Robot",
    "load_robot",
    "packaged_robots",
    "robot_from_parameters",
    "robot_from_urdf",
]
