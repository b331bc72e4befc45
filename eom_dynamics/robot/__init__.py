# SPDX-License-Identifier: Apache-2.0
"""Robot model, with readers for files and ROS 2 parameters."""

from . import solids
from .inertia import Inertial
from .model import Frame, Joint, Limits, Mimic, Robot
from .payload import Payload
from .readers.loading import load_robot, packaged_robots
from .readers.parameter_tree import robot_from_parameters, robot_from_urdf

__all__ = [
    "Frame",
    "Inertial",
    "Joint",
    "Limits",
    "Mimic",
    "Payload",
    "Robot",
    "load_robot",
    "packaged_robots",
    "robot_from_parameters",
    "robot_from_urdf",
    "solids",
]
