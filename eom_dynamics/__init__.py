# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics with time derivatives, and flatness-based feedforward for elastic-joint arms."""

from .actuators import ElasticArm, Feedforward
from .dynamics import Dynamics
from .equations import EquationsOfMotion, equations_of_motion
from .exceptions import EomDynamicsError, RobotDescriptionError, RobotDescriptionWarning, StateError
from .robot import Joint, Robot, load_robot, packaged_robots, robot_from_parameters

__version__ = "0.1.0"

__all__ = [
    "Dynamics",
    "ElasticArm",
    "EomDynamicsError",
    "EquationsOfMotion",
    "Feedforward",
    "Joint",
    "Robot",
    "RobotDescriptionError",
    "RobotDescriptionWarning",
    "StateError",
    "equations_of_motion",
    "load_robot",
    "packaged_robots",
    "robot_from_parameters",
]
