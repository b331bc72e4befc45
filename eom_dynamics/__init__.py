# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics with time derivatives, and flatness-based feedforward for elastic-joint arms."""

from .actuators import (
    ElasticArm,
    Feedforward,
    FlatState,
    MotorSeries,
    chain_gains,
    derivatives_needed,
    flat_state,
    linearizing_effort,
    linearizing_snap,
    motor_pd_effort,
    motor_series,
)
from .dynamics import Dynamics
from .equations import EquationsOfMotion, equations_of_motion
from .exceptions import (
    EomDynamicsError,
    RobotDescriptionError,
    RobotDescriptionWarning,
    StateError,
    StiffnessError,
    TrajectoryError,
)
from .robot import Joint, Robot, load_robot, packaged_robots, robot_from_parameters

__version__ = "0.1.0"

__all__ = [
    "Dynamics",
    "ElasticArm",
    "EomDynamicsError",
    "EquationsOfMotion",
    "Feedforward",
    "FlatState",
    "Joint",
    "MotorSeries",
    "Robot",
    "RobotDescriptionError",
    "RobotDescriptionWarning",
    "StateError",
    "StiffnessError",
    "TrajectoryError",
    "chain_gains",
    "derivatives_needed",
    "equations_of_motion",
    "flat_state",
    "linearizing_effort",
    "linearizing_snap",
    "load_robot",
    "motor_pd_effort",
    "motor_series",
    "packaged_robots",
    "robot_from_parameters",
]
